"""Rows of Arrow batches as the JSON of enqueue requests: column by column, and without a model for each row."""

import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from json import JSONDecodeError, JSONDecoder
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from app.domain.identifiers import TENANT_MAX_LENGTH, is_name
from app.pipeline.sink.columns import COLUMNS, TENANT
from app.pipeline.sink.identity import Occurrences, dedupe_key
from app.pipeline.sink.options import SinkOptions

QUEUE = "queue"
RFC_3339 = "%Y-%m-%dT%H:%M:%SZ"

_raw = msgspec.json.Decoder(msgspec.Raw)
_to_json = msgspec.json.encode


class EncodedRow(NamedTuple):
    """A task as it is sent, and whose it is."""

    key: str
    tenant: str | None
    body: bytes


class RefusedRow(NamedTuple):
    """A row that is no task, and why; the body as far as it could be made."""

    key: str
    reason: str
    body: bytes


class Bad(str):
    """Why a value cannot be sent."""


Fragment = bytes | Bad
Encode = Callable[[bytes, Any], Fragment]


class RowEncoder:
    """Encodes the rows of one partition, in their order."""

    def __init__(self, options: SinkOptions, partition: int) -> None:
        self._options = options
        self._occurrences = Occurrences(partition)
        self._window = f',"dedupe_seconds":{options.dedupe_seconds!r}'.encode()
        self._queue = b"" if options.queue is None else b',"queue":' + _to_json(options.queue)

    def encode(self, batch: pa.RecordBatch) -> Iterator[EncodedRow | RefusedRow]:
        # A key column that is named as a field is sent as that, too.
        names = [name for name in batch.schema.names if name in COLUMNS and name not in (TENANT, QUEUE)]
        columns = [self._queues(batch), *(_fragments(name, batch.column(name)) for name in names)]
        keys = _values(batch, self._options.key)
        tenants = _values(batch, TENANT)
        for fragments, key, tenant in zip(zip(*columns, strict=True), keys, tenants, strict=True):
            yield self._row(fragments, key, tenant)

    def _queues(self, batch: pa.RecordBatch) -> list[Fragment]:
        """Each row's own queue, or the job's."""
        if QUEUE not in batch.schema.names:
            return [self._queue] * batch.num_rows
        return [own or self._queue for own in _fragments(QUEUE, batch.column(QUEUE))]

    def _row(self, fragments: Sequence[Fragment], key: object, tenant: object) -> EncodedRow | RefusedRow:
        good = b"".join([part for part in fragments if isinstance(part, bytes)])
        reasons: list[str] = [part for part in fragments if isinstance(part, Bad)]
        if key is None and self._options.key is not None:
            reasons.append("the key is NULL")
        if tenant is not None and not _is_tenant(tenant):
            reasons.append(f"{TENANT} is no name")
        name = str(key) if key is not None else self._identify(good, tenant)
        if reasons:
            return RefusedRow(name, "; ".join(reasons), b"{" + good[1:] + b"}")
        dedupe = _to_json(dedupe_key(self._options.job, name))
        body = b'{"dedupe_key":' + dedupe + self._window + good + b"}"
        return EncodedRow(name, self._options.tenant if tenant is None else str(tenant), body)

    def _identify(self, good: bytes, tenant: object) -> str:
        # The tenant is no part of the body, but of who the row is.
        return self._occurrences.identify(good if tenant is None else good + b"\x00" + str(tenant).encode())


@lru_cache(maxsize=1024)
def _is_tenant(tenant: object) -> bool:
    return isinstance(tenant, str) and is_name(tenant, TENANT_MAX_LENGTH)


def _values(batch: pa.RecordBatch, name: str | None) -> list[object]:
    if name is None or name not in batch.schema.names:
        return [None] * batch.num_rows
    values: list[object] = batch.column(name).to_pylist()
    return values


def _fragments(name: str, column: pa.Array) -> list[Fragment]:
    """`,"name":value` for each row; nothing for NULL."""
    encode, values = _prepare(name, column)
    prefix = f',"{name}":'.encode()
    return [b"" if value is None else encode(prefix, value) for value in values]


def _prepare(name: str, column: pa.Array) -> tuple[Encode, list[Any]]:
    kind = column.type
    if name in ("payload", "payload_base64") and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return _bytes, column.to_pylist()
    if name in ("payload", "meta"):
        return _json_text, column.cast(pa.binary()).to_pylist()
    if pa.types.is_timestamp(kind):
        column = pc.strftime(column.cast(pa.timestamp("us", "UTC")), format=RFC_3339)
    return (_number if pa.types.is_floating(kind) else _plain), column.to_pylist()


def _bytes(prefix: bytes, value: bytes) -> Fragment:
    return b',"payload_base64":"' + b64encode(value) + b'"'


def _json_text(prefix: bytes, value: bytes) -> Fragment:
    # It must be one whole value: what came after it would be read as further fields of the task.
    return prefix + value if is_json(value) else Bad(f"{prefix[2:-2].decode()} is not JSON")


def _number(prefix: bytes, value: float) -> Fragment:
    return prefix + _to_json(value) if math.isfinite(value) else Bad(f"{prefix[2:-2].decode()} is not finite")


def _plain(prefix: bytes, value: str | int) -> Fragment:
    return prefix + _to_json(value)


def is_json(text: bytes) -> bool:
    """Whether the text is one JSON value, as the service reads it."""
    try:
        _raw.decode(text)
    except msgspec.DecodeError:
        return _is_json_with_surrogates(text)
    return True


def _is_json_with_surrogates(text: bytes) -> bool:
    """Lone surrogates are JSON all the same; only the standard library reads them."""
    if b"\\u" not in text:
        return False
    try:
        _slow.decode(text.decode())
    except (JSONDecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise JSONDecodeError(f"{name} is not JSON", "", 0)


_slow = JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)
