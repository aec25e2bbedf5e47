"""A bare ASGI application: parses the request's JSON, and answers with what LeaseMQ would."""

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from bench.route.documents import REPLIES

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    decode(body)
    reply = encode(REPLIES[scope["path"]])
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(reply)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": reply})


def create_app() -> ASGIApp:
    """What the server process runs."""
    return _answer
