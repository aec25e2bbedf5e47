"""Rows of Arrow batches as the JSON of enqueue requests: column by column, and without a model for each row."""

import math
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from json import JSONDecodeError, JSONDecoder
from typing import Any, cast

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


class EncodedRow(msgspec.Struct, frozen=True, gc=False):
    """A task as it is sent, and whose it is."""

    key: str
    tenant: str | None
    body: bytes


class RefusedRow(msgspec.Struct, frozen=True, gc=False):
    """A row that is no task, and why; in the body, a value that cannot be sent is the text that it was."""

    key: str
    reason: str
    body: bytes


class Bad(msgspec.Struct, frozen=True, gc=False):
    """Why a value cannot be sent, and the value as text, for whoever repairs the row."""

    reason: str
    fragment: bytes = b""


Fragment = bytes | Bad
Encode = Callable[[bytes, Any], Fragment]
# What is wrong with each row that cannot be sent, by its place in the batch.
Faults = dict[int, list[Bad]]


class RowEncoder:
    """Encodes the rows of one partition, in their order."""

    def __init__(self, options: SinkOptions, partition: int) -> None:
        self._options = options
        self._occurrences = Occurrences(partition)
        self._window = f',"dedupe_seconds":{options.dedupe_seconds!r}'.encode()
        self._queue = b"" if options.queue is None else b',"queue":' + _to_json(options.queue)

    def encode(self, batch: pa.RecordBatch) -> list[EncodedRow | RefusedRow]:
        """The rows of a batch, made column by column: what is done for each row is what costs."""
        faults: Faults = {}
        contents = self._contents(batch, faults)
        keys = self._keys(batch, faults, contents)
        tenants = self._tenants(batch, faults)
        window = self._window
        bodies = [
            b'{"dedupe_key":' + key + window + content + b"}"
            for key, content in zip(self._dedupe_keys(keys), contents, strict=True)
        ]
        rows: list[EncodedRow | RefusedRow] = list(map(EncodedRow, keys, tenants, bodies))
        for place, found in faults.items():
            rows[place] = _refused(keys[place], contents[place], found)
        return rows

    def _dedupe_keys(self, keys: list[str]) -> list[bytes]:
        job = self._options.job
        if self._options.key is None:
            # Short, and of letters, digits and dots only.
            return [f'"{job}:{key}"'.encode() for key in keys]
        return [_to_json(dedupe_key(job, key)) for key in keys]

    def _contents(self, batch: pa.RecordBatch, faults: Faults) -> list[bytes]:
        """What each row says of its task, with a comma before each field."""
        # A key column that is named as a field is sent as that, too.
        names = [name for name in batch.schema.names if name in COLUMNS and name not in (TENANT, QUEUE)]
        columns = [self._queues(batch, faults), *(_fragments(name, batch.column(name), faults) for name in names)]
        return list(map(b"".join, zip(*columns, strict=True)))

    def _queues(self, batch: pa.RecordBatch, faults: Faults) -> list[bytes]:
        """Each row's own queue, or the job's."""
        if QUEUE not in batch.schema.names:
            return [self._queue] * batch.num_rows
        return [own or self._queue for own in _fragments(QUEUE, batch.column(QUEUE), faults)]

    def _tenants(self, batch: pa.RecordBatch, faults: Faults) -> list[str | None]:
        """Each row's own tenant, or the job's."""
        if TENANT not in batch.schema.names:
            return [self._options.tenant] * batch.num_rows
        tenants = batch.column(TENANT).to_pylist()
        for place, tenant in enumerate(tenants):
            if tenant is not None and not _is_tenant(tenant):
                faults.setdefault(place, []).append(_bad(f',"{TENANT}":'.encode(), "is no name", tenant))
        return [self._options.tenant if tenant is None else tenant for tenant in tenants]

    def _keys(self, batch: pa.RecordBatch, faults: Faults, contents: list[bytes]) -> list[str]:
        """Who each row is: what its key column says, else what is in it."""
        # The tenant is no part of the body, but of who the row is.
        identified = contents
        if TENANT in batch.schema.names:
            owners = [
                b"" if tenant is None else b"\x00" + tenant.encode() for tenant in batch.column(TENANT).to_pylist()
            ]
            identified = list(map(bytes.__add__, contents, owners))
        if self._options.key is None:
            return self._occurrences.identify_many(identified)
        keys = batch.column(self._options.key).to_pylist()
        for place in [place for place, key in enumerate(keys) if key is None]:
            faults.setdefault(place, []).append(Bad("the key is NULL"))
            [keys[place]] = self._occurrences.identify_many([identified[place]])
        return list(map(str, keys))


def _refused(key: str, content: bytes, faults: list[Bad]) -> RefusedRow:
    # What cannot be sent is told beside the content, not in it: it is no part of who the row is.
    fields = content + b"".join(bad.fragment for bad in faults)
    return RefusedRow(key, "; ".join(bad.reason for bad in faults), b"{" + fields[1:] + b"}")


@lru_cache(maxsize=1024)
def _is_tenant(tenant: object) -> bool:
    return isinstance(tenant, str) and is_name(tenant, TENANT_MAX_LENGTH)


def _fragments(name: str, column: pa.Array, faults: Faults) -> list[bytes]:
    """`,"name":value` for each row; nothing for NULL, and for what cannot be sent."""
    encode, values = _prepare(name, column)
    prefix = f',"{name}":'.encode()
    fragments = [b"" if value is None else encode(prefix, value) for value in values]
    if set(map(type, fragments)) == {bytes}:
        return cast(list[bytes], fragments)
    for place, part in enumerate(fragments):
        if isinstance(part, Bad):
            faults.setdefault(place, []).append(part)
    return [b"" if isinstance(part, Bad) else part for part in fragments]


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
    return prefix + value if is_json(value) else _bad(prefix, "is not JSON", value.decode(errors="replace"))


def _number(prefix: bytes, value: float) -> Fragment:
    return prefix + _to_json(value) if math.isfinite(value) else _bad(prefix, "is not finite", str(value))


def _bad(prefix: bytes, reason: str, text: str) -> Bad:
    return Bad(f"{prefix[2:-2].decode()} {reason}", prefix + _to_json(text))


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
