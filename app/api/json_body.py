"""Request bodies: JSON read strictly, but payloads kept as the very bytes that the caller sent.

A payload must come back as it was given, numbers exact and keys in order, so it is never parsed and dumped again: the
slice of the body that holds it is cut out.
"""

import json
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from json import JSONDecodeError
from typing import Any

import msgspec
from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from app.domain.errors import InvalidRequest, UnsupportedMediaType

RAW_FIELDS = frozenset({"payload", "meta", "result"})
BATCH_FIELDS = frozenset({"tasks", "items"})

_WHITESPACE = re.compile(r"[ \t\n\r]*")
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array = msgspec.json.Decoder(list[msgspec.Raw])
_value = msgspec.json.Decoder()


class RawJson(bytes):
    """JSON text as a caller wrote it."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {}


def decode_body(body: bytes) -> object:
    """The body as Python values, with `RawJson` for payloads, results and meta. Raises `JSONDecodeError`."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JSONDecodeError("the body is not UTF-8", "", error.start) from error
    try:
        return _decode_item(msgspec.Raw(body), batch=True)
    except (msgspec.DecodeError, ValueError):
        # Lone surrogates are JSON all the same; the standard library reads them, and has the better error messages.
        return _decode_slowly(text)
    except RecursionError as error:
        raise JSONDecodeError("the body is nested too deeply", "", 0) from error


def _decode_item(raw: msgspec.Raw, *, batch: bool) -> object:
    try:
        fields = _object.decode(raw)
    except msgspec.ValidationError:
        return _value.decode(raw)
    return {name: _decode_field(name, value, batch=batch) for name, value in fields.items()}


def _decode_field(name: str, raw: msgspec.Raw, *, batch: bool) -> object:
    if name in RAW_FIELDS:
        return RawJson(bytes(raw).strip())
    if batch and name in BATCH_FIELDS:
        try:
            return [_decode_item(item, batch=False) for item in _array.decode(raw)]
        except msgspec.ValidationError:
            pass
    return _value.decode(raw)


def _decode_slowly(text: str) -> object:
    try:
        value, end = _scan_item(text, _skip(text, 0), batch=True)
    except RecursionError as error:
        raise JSONDecodeError("the body is nested too deeply", "", 0) from error
    if _skip(text, end) != len(text):
        raise JSONDecodeError("data after the end of the JSON value", "", end)
    return value


def _scan_item(text: str, start: int, *, batch: bool) -> tuple[object, int]:
    if text[start : start + 1] != "{":
        return _scan_value(text, start)
    fields: dict[str, object] = {}
    index = _skip(text, start + 1)
    if text[index : index + 1] == "}":
        return fields, index + 1
    while True:
        name, index = _scan_name(text, index)
        fields[name], index = _scan_field(text, name, index, batch=batch)
        more, index = _scan_separator(text, index, "}")
        if not more:
            return fields, index


def _scan_field(text: str, name: str, start: int, *, batch: bool) -> tuple[object, int]:
    if name in RAW_FIELDS:
        _, end = _passing.raw_decode(text, start)
        return RawJson(text[start:end].encode()), end
    if batch and name in BATCH_FIELDS and text[start : start + 1] == "[":
        return _scan_items(text, start)
    return _scan_value(text, start)


def _scan_items(text: str, start: int) -> tuple[list[object], int]:
    items: list[object] = []
    index = _skip(text, start + 1)
    if text[index : index + 1] == "]":
        return items, index + 1
    while True:
        item, index = _scan_item(text, index, batch=False)
        items.append(item)
        more, index = _scan_separator(text, index, "]")
        if not more:
            return items, index


def _scan_name(text: str, start: int) -> tuple[str, int]:
    if text[start : start + 1] != '"':
        raise JSONDecodeError("expecting a property name in double quotes", "", start)
    name, end = _scan_value(text, start)
    colon = _skip(text, end)
    if text[colon : colon + 1] != ":":
        raise JSONDecodeError("expecting ':'", "", colon)
    return name, _skip(text, colon + 1)


def _scan_separator(text: str, start: int, closing: str) -> tuple[bool, int]:
    index = _skip(text, start)
    found = text[index : index + 1]
    if found not in {",", closing} or not found:
        raise JSONDecodeError(f"expecting ',' or '{closing}'", "", index)
    return found == ",", _skip(text, index + 1) if found == "," else index + 1


def _scan_value(text: str, start: int) -> tuple[Any, int]:
    return _strict.raw_decode(text, start)


def _skip(text: str, start: int) -> int:
    match = _WHITESPACE.match(text, start)
    return match.end() if match else start


def _refuse_constant(name: str) -> None:
    raise JSONDecodeError(f"{name} is not JSON", "", 0)


def _parse_int(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:
        raise JSONDecodeError("a number has too many digits", "", 0) from error


_strict = json.JSONDecoder(parse_int=_parse_int, parse_constant=_refuse_constant)
# Only to see where a value ends: its numbers may be of any length.
_passing = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


class JsonRequest(Request):
    """A request whose JSON is read by `decode_body`."""

    async def json(self) -> object:
        return decode_body(await self.body())


class JsonRoute(APIRoute):
    """A route whose body must be declared as JSON: that also keeps web pages out of a server without keys."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()
        takes_body = self.body_field is not None

        async def handle_json(request: Request) -> Response:
            json_request = JsonRequest(request.scope, request.receive)
            if takes_body:
                _require_json(request)
            elif request.method != "GET":
                await _refuse_fields(json_request)
            return await handle(json_request)

        return handle_json


async def _refuse_fields(request: JsonRequest) -> None:
    """A body that says something is refused where nothing can be said, so that a `dry_run` is never ignored."""
    if not (await request.body()).strip():
        return
    _require_json(request)
    try:
        said = await request.json()
    except JSONDecodeError as error:
        raise InvalidRequest(f"malformed JSON: {error.msg}", location=("body",)) from error
    if said is None or said == {}:
        return
    field = next(iter(said)) if isinstance(said, dict) else ""
    raise InvalidRequest("this call takes no body", location=("body", field) if field else ("body",))


def _require_json(request: Request) -> None:
    headers = request.headers
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if has_body and not is_json(headers.get("content-type", "").encode("latin-1")):
        raise UnsupportedMediaType("A body needs Content-Type: application/json, in UTF-8.")


@lru_cache(maxsize=1024)
def is_json(content_type: bytes) -> bool:
    """Whether a body with this header is JSON in UTF-8."""
    media_type, *parameters = content_type.decode("latin-1").lower().split(";")
    named = dict(parameter.strip().partition("=")[::2] for parameter in parameters)
    return media_type.strip() == "application/json" and named.get("charset", "utf-8").strip('"') == "utf-8"
