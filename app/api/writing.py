"""Hot replies, written by as few and as cheap system calls as can be.

uvicorn writes the head and the body of a response by a call each, at once. To write costs more than all that we do for
a request, the more so when it wakes the caller's process. So a hot reply is one piece, and the replies of one round of
the event loop are written one right after the other: a caller that was woken by the first finds the others there.

What uvicorn does for a response is known for one version of it. Any other, and any other server, is spoken to as the
ASGI specification has it.
"""

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import uvicorn
from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

KNOWN_UVICORN = "0.54."

Headers = Sequence[tuple[bytes, bytes]]

_is_known = uvicorn.__version__.startswith(KNOWN_UVICORN)


class Reply(NamedTuple):
    """A whole response, and the request that it is for."""

    cycle: RequestResponseCycle
    data: bytes


class ReplyWriter:
    """Writes the replies of each round together."""

    def __init__(self) -> None:
        self._replies: list[Reply] = []
        self._written: asyncio.Future[None] | None = None

    async def write(self, send: Send, status: int, headers: Headers, body: bytes) -> bool:
        """Writes the response to a POST, or leaves it alone and returns False.

        The headers must be sound, with names in lower case, and tell the length of the body.
        """
        cycle = getattr(send, "__self__", None)
        if not (_is_known and type(cycle) is RequestResponseCycle and _is_ordinary(cycle)):
            return False
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        cycle.chunked_encoding = False
        lines = b"".join([b"%s: %s\r\n" % header for header in chain(cycle.default_headers, headers)])
        self._replies.append(Reply(cycle, b"%s%s\r\n%s" % (STATUS_LINE[status], lines, body)))
        if self._written is None:
            loop = asyncio.get_running_loop()
            self._written = loop.create_future()
            loop.call_soon(self._flush, self._written)
        await self._written
        return True

    def _flush(self, written: asyncio.Future[None]) -> None:
        replies, self._replies, self._written = self._replies, [], None
        for cycle, data in replies:
            cycle.transport.write(data)
            cycle.response_complete = True
            cycle.message_event.set()
            cycle.on_response()
        # Who waited may have been told to end meanwhile.
        if not written.done():
            written.set_result(None)


def _is_ordinary(cycle: RequestResponseCycle) -> bool:
    """Whether there is nothing to wait for, nothing else to tell, and the connection stays."""
    return (
        cycle.keep_alive
        and not cycle.response_started
        and not cycle.disconnected
        and not cycle.flow.write_paused
        and not cycle.access_log
    )
