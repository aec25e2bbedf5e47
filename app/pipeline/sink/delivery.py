"""Sends the rows of one partition in batches, and finds the rows that the service refuses."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

import msgspec
import pyarrow as pa

from app.pipeline.sink.client import Client, Reply, problem_of
from app.pipeline.sink.encoding import EncodedRow, RefusedRow, RowEncoder
from app.pipeline.sink.errors import DeliveryError
from app.pipeline.sink.options import MAX_BATCH_BYTES, SinkOptions
from app.pipeline.sink.pace import Pace
from app.pipeline.sink.refused import FIRST, Tally, write_refused

HEAD, TAIL = b'{"tasks":[', b"]}"


class Result(msgspec.Struct, gc=False):
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
        most_rows = self._pace.limit_rows(self._options.batch_rows)
        rows = chain.from_iterable(self._sound(encoder.encode(some)) for some in slices(batches, most_rows))
        under_way: list[EncodedRow] = []
        for batch in cut(rows, most_rows, self._options.batch_bytes):
            # It was made while the service was at work on the one before.
            self._settle(under_way)
            self._pace.take(len(batch))
            self._client.start(_body(batch), batch[0].tenant)
            under_way = batch
        self._settle(under_way)
        self._pace.rest()
        write_refused(self._options, partition, self._refused)
        reasons = tuple(f"{row.key}: {row.reason}" for row in self._refused[:FIRST])
        return Tally(self._rows, self._existed, len(self._refused), reasons)

    def _sound(self, rows: Sequence[EncodedRow | RefusedRow]) -> list[EncodedRow]:
        """The rows that can be sent; the others are kept as refused."""
        self._rows += len(rows)
        sound = [row for row in rows if isinstance(row, EncodedRow) and len(row.body) <= MAX_BATCH_BYTES]
        if len(sound) < len(rows):
            for row in rows:
                if isinstance(row, RefusedRow):
                    self._refused.append(row)
                elif len(row.body) > MAX_BATCH_BYTES:
                    self._refuse(row, f"the row has {len(row.body)} bytes; a request has at most {MAX_BATCH_BYTES}")
        return sound

    def _settle(self, rows: Sequence[EncodedRow]) -> None:
        """Waits for what became of the batch that was started."""
        if rows:
            self._read(self._client.finish(), rows)

    def _send(self, rows: Sequence[EncodedRow]) -> None:
        """All of the rows that the service takes: a batch is taken whole or not at all."""
        if not rows:
            return
        self._read(self._client.post(_body(rows), rows[0].tenant), rows)

    def _read(self, reply: Reply, rows: Sequence[EncodedRow]) -> None:
        """Counts what was taken; what was not is sent again without the rows that are to blame."""
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


def slices(batches: Iterable[pa.RecordBatch], most_rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in pieces that are as large as what is sent, so that each is encoded while the last is sent."""
    for batch in batches:
        for start in range(0, batch.num_rows, most_rows):
            yield batch.slice(start, most_rows)


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


def _body(rows: Sequence[EncodedRow]) -> bytes:
    return HEAD + b",".join([row.body for row in rows]) + TAIL


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
