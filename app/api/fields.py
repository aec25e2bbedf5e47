"""The types of the fields in requests: what they may hold, and how a value that cannot be is refused."""

import base64
import binascii
import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from app.api.json_body import RawJson
from app.domain.errors import ContentTooLarge
from app.domain.identifiers import NAME_MAX_LENGTH, TASK_ID_MAX_LENGTH, TENANT_MAX_LENGTH, is_name

MAX_PAYLOAD_BYTES = 256 * 1024
MAX_META_BYTES = 16 * 1024
MAX_RESULT_BYTES = 256 * 1024
MAX_ERROR_BYTES = 8 * 1024
MAX_SECONDS = 100 * 365 * 86400
MIN_INT32, MAX_INT32 = -(2**31), 2**31 - 1
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)

NAME_PATTERN = "^[A-Za-z0-9._:-]+$"
_INSTANT = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6})\d*)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _check_name(text: str) -> str:
    if not is_name(text):
        raise ValueError("a name has 1 to 255 characters of A-Z a-z 0-9 . _ : - and is not '.' or '..'")
    return text


def _check_type_name(text: str) -> str:
    return text and _check_name(text)


def _check_task_id(text: str) -> str:
    if not is_name(text, TASK_ID_MAX_LENGTH):
        raise ValueError("an id has 1 to 64 characters of A-Z a-z 0-9 . _ : - and is not '.' or '..'")
    return text


def _check_tenant(text: str) -> str:
    if not is_name(text, TENANT_MAX_LENGTH):
        raise ValueError("a tenant has 1 to 64 characters of A-Z a-z 0-9 . _ : - and is not '.' or '..'")
    return text


def _check_text(text: str) -> str:
    if _UNSTORABLE.search(text):
        raise ValueError("NUL and lone surrogates cannot be stored")
    return text


def _cut_error(text: str) -> str:
    """Reporting a failure never fails: what cannot be stored is replaced, and what is too long is cut."""
    storable = _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return storable.encode()[:MAX_ERROR_BYTES].decode(errors="ignore")


def parse_instant(value: Any) -> datetime:
    """An RFC 3339 time with its offset, in UTC; the offset is needed because the server's zone is nobody's business."""
    if isinstance(value, datetime):
        return value
    match = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("expecting an RFC 3339 time such as 2026-01-31T12:00:00Z")
    date, time, fraction, offset = match.groups()
    try:
        zone = "+00:00" if offset in "Zz" else offset
        instant = datetime.fromisoformat(f"{date}T{time}.{(fraction or '0').ljust(6, '0')}{zone}").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError("there is no such time") from error
    if instant < EARLIEST:
        raise ValueError("times before 1970 are not taken")
    return instant


def check_size(what: str, data: bytes, limit: int) -> None:
    if len(data) > limit:
        raise ContentTooLarge(f"{what} has {len(data)} bytes; the limit is {limit}.")


def _check_payload(raw: RawJson) -> RawJson:
    check_size("payload", raw, MAX_PAYLOAD_BYTES)
    return raw


def check_result(raw: bytes) -> None:
    check_size("result", raw, MAX_RESULT_BYTES)
    _check_storable(raw)


def check_meta(raw: bytes) -> None:
    if not raw.startswith(b"{"):
        raise ValueError("expecting a JSON object")
    check_size("meta", raw, MAX_META_BYTES)
    _check_storable(raw)


def _check_storable(raw: bytes) -> None:
    # Only an escape can smuggle them in: as they are, JSON does not allow them.
    if raw.find(b"\\u") >= 0:
        try:
            _check_texts(json.loads(raw))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _check_result(raw: RawJson) -> RawJson:
    check_result(raw)
    return raw


def _check_meta(raw: RawJson) -> RawJson:
    check_meta(raw)
    return raw


def _check_texts(value: object) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            _check_text(name)
            _check_texts(item)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)


def _null_to_none(value: object) -> object:
    """`null` is the same as absent, also where the value is kept raw."""
    return None if value == b"null" else value


def decode_base64(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("expecting standard base64 with padding") from error
    check_size("payload_base64", data, MAX_PAYLOAD_BYTES)
    return data


Name = Annotated[
    str, AfterValidator(_check_name), Field(json_schema_extra={"pattern": NAME_PATTERN, "maxLength": NAME_MAX_LENGTH})
]
TypeName = Annotated[
    str,
    AfterValidator(_check_type_name),
    Field(json_schema_extra={"pattern": "^[A-Za-z0-9._:-]*$", "maxLength": NAME_MAX_LENGTH}),
]
TaskId = Annotated[
    str,
    AfterValidator(_check_task_id),
    Field(json_schema_extra={"pattern": NAME_PATTERN, "maxLength": TASK_ID_MAX_LENGTH}),
]
Tenant = Annotated[
    str,
    AfterValidator(_check_tenant),
    Field(json_schema_extra={"pattern": NAME_PATTERN, "maxLength": TENANT_MAX_LENGTH}),
]
Text = Annotated[str, AfterValidator(_check_text)]
Label = Annotated[Text, Field(min_length=1, max_length=128)]
ContentType = Annotated[Text, Field(min_length=1, max_length=255)]
LeaseToken = Annotated[Text, Field(min_length=1, max_length=512)]
ErrorText = Annotated[str, AfterValidator(_cut_error)]
Instant = Annotated[datetime, BeforeValidator(parse_instant), WithJsonSchema({"type": "string", "format": "date-time"})]
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)]
Int32 = Annotated[int, Field(ge=MIN_INT32, le=MAX_INT32)]
Count = Annotated[int, Field(ge=0, le=MAX_INT32)]
PayloadJson = Annotated[RawJson, AfterValidator(_check_payload)]
ResultJson = Annotated[Annotated[RawJson, AfterValidator(_check_result)] | None, BeforeValidator(_null_to_none)]
MetaJson = Annotated[Annotated[RawJson, AfterValidator(_check_meta)] | None, BeforeValidator(_null_to_none)]
Base64 = Annotated[str, Field(json_schema_extra={"format": "byte"})]
