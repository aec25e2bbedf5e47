"""A response in one piece: uvicorn writes its head and its body by a system call each, which costs more than our code.

What uvicorn does for a response is known for one version of it. Any other, and any other server, is spoken to as the
ASGI specification has it.
"""

from collections.abc import Sequence
from itertools import chain

import uvicorn
from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

KNOWN_UVICORN = "0.54."

_IS_KNOWN = uvicorn.__version__.startswith(KNOWN_UVICORN)


def write_whole(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
    """Writes the response to a POST, or leaves it alone and returns False.

    The headers must be sound, with names in lower case, and tell the length of the body.
    """
    cycle = getattr(send, "__self__", None)
    if not (_IS_KNOWN and type(cycle) is RequestResponseCycle and _is_ordinary(cycle)):
        return False
    lines = b"".join(b"%s: %s\r\n" % header for header in chain(cycle.default_headers, headers))
    cycle.response_started = True
    cycle.waiting_for_100_continue = False
    cycle.chunked_encoding = False
    cycle.transport.write(b"%s%s\r\n%s" % (STATUS_LINE[status], lines, body))
    cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


def _is_ordinary(cycle: RequestResponseCycle) -> bool:
    """Whether there is nothing to wait for, nothing else to tell, and the connection stays."""
    return (
        cycle.keep_alive
        and not cycle.response_started
        and not cycle.disconnected
        and not cycle.flow.write_paused
        and not cycle.access_log
    )
