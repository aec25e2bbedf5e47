"""Sends the rows of one partition in batches, and finds the rows that the service refuses."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec
import pyarrow as pa

from app.pipeline.sink.client import Client, Reply, problem_of
from app.pipeline.sink.encoding import EncodedRow, RefusedRow, RowEncoder
from app.pipeline.sink.errors import DeliveryError
from app.pipeline.sink.options import MAX_BATCH_BYTES, SinkOptions
from app.pipeline.sink.pace import Pace
from app.pipeline.sink.refused import FIRST, Tally, write_refused

HEAD, TAIL = b'{"tasks":[', b"]}"


class Result(msgspec.Struct):
    existed: bool


class Results(msgspec.Struct):
    results: list[Result]


_results = msgspec.json.Decoder(Results)


def deliver(batches: Iterable[pa.RecordBatch], options: SinkOptions, partition: int) -> Tally:
    """Enqueues every row of a partition once, however often this is called with the same rows."""
    client = Client(options)
    try:
        return Delivery(options, client, Pace(options.share_per_second)).run(batches, partition)
    finally:
        client.close()


class Delivery:
    """One partition under way."""

    def __init__(self, options: SinkOptions, client: Client, pace: Pace) -> None:
        self._options = options
        self._client = client
        self._pace = pace
        self._rows = 0
        self._existed = 0
        self._refused: list[RefusedRow] = []

    def run(self, batches: Iterable[pa.RecordBatch], partition: int) -> Tally:
        encoder = RowEncoder(self._options, partition)
        rows = self._sound_rows(row for batch in batches for row in encoder.encode(batch))
        for batch in cut(rows, self._pace.limit_rows(self._options.batch_rows), self._options.batch_bytes):
            self._pace.take(len(batch))
            self._send(batch)
        self._pace.rest()
        write_refused(self._options, partition, self._refused)
        reasons = tuple(f"{row.key}: {row.reason}" for row in self._refused[:FIRST])
        return Tally(self._rows, self._existed, len(self._refused), reasons)

    def _sound_rows(self, rows: Iterable[EncodedRow | RefusedRow]) -> Iterator[EncodedRow]:
        for row in rows:
            self._rows += 1
            if isinstance(row, RefusedRow):
                self._refused.append(row)
            elif len(row.body) > MAX_BATCH_BYTES:
                self._refuse(row, f"the row has {len(row.body)} bytes; a request has at most {MAX_BATCH_BYTES}")
            else:
                yield row

    def _send(self, rows: Sequence[EncodedRow]) -> None:
        """All of the rows that the service takes: a batch is taken whole or not at all."""
        if not rows:
            return
        reply = self._client.post(HEAD + b",".join(row.body for row in rows) + TAIL, rows[0].tenant)
        if reply.status == 200:
            self._existed += _count_existed(reply, len(rows))
        elif faults := _faults(reply, len(rows)):
            for index, reason in faults.items():
                self._refuse(rows[index], reason)
            self._send([row for index, row in enumerate(rows) if index not in faults])
        elif len(rows) == 1:
            self._refuse(rows[0], problem_of(reply).detail)
        else:
            half = len(rows) // 2
            self._send(rows[:half])
            self._send(rows[half:])

    def _refuse(self, row: EncodedRow, reason: str) -> None:
        self._refused.append(RefusedRow(row.key, reason, row.body))


def cut(rows: Iterable[EncodedRow], most_rows: int, most_bytes: int) -> Iterator[list[EncodedRow]]:
    """Batches of one tenant each, within both bounds; a row that is larger than the bound goes alone."""
    batch: list[EncodedRow] = []
    size = 0
    for row in rows:
        added = len(row.body) + 1
        if batch and (len(batch) == most_rows or size + added > most_bytes or row.tenant != batch[0].tenant):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += added
    if batch:
        yield batch


def _count_existed(reply: Reply, rows: int) -> int:
    try:
        results = _results.decode(reply.body).results
    except msgspec.DecodeError as error:
        raise DeliveryError("the service's reply to a batch is none of LeaseMQ's") from error
    if len(results) != rows:
        raise DeliveryError(f"the service answered for {len(results)} of {rows} rows")
    return sum(result.existed for result in results)


def _faults(reply: Reply, rows: int) -> dict[int, str]:
    """The refused rows by their place in the batch, if the service says which."""
    found: dict[int, list[str]] = {}
    for fault in problem_of(reply).errors:
        for before, place in pairwise(fault.loc):
            if before == "tasks" and isinstance(place, int) and place < rows:
                found.setdefault(place, []).append(_reason(fault.loc, fault.msg))
                break
    return {place: "; ".join(reasons) for place, reasons in found.items()}


def _reason(location: Sequence[str | int], message: str) -> str:
    field = location[-1]
    return f"{field}: {message}" if isinstance(field, str) else message
