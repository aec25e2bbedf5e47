"""Hot replies: one piece each, and those of a round of the event loop one right after the other."""

import asyncio
import logging
from typing import Any, cast

import pytest
from starlette.types import Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.api.writing import ReplyWriter

BODY = b'{"id":"a"}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"10"), (b"x-request-id", b"same")]


class Wire:
    """A connection that notes what is written to it, and by whom."""

    def __init__(self, log: list[tuple[str, bytes]], name: str) -> None:
        self._log = log
        self._name = name

    def write(self, data: bytes) -> None:
        self._log.append((self._name, data))

    def is_closing(self) -> bool:
        return False


class Answered:
    """A request of the server's, with what was written for it."""

    def __init__(self, log: list[tuple[str, bytes]], name: str = "one") -> None:
        wire = cast(asyncio.Transport, Wire(log, name))
        self.completed = 0
        self.cycle = RequestResponseCycle(
            scope=cast(Any, {"method": "POST"}),
            transport=wire,
            flow=FlowControl(wire),
            logger=logging.getLogger(),
            access_logger=logging.getLogger(),
            access_log=False,
            default_headers=[(b"date", b"today")],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self._complete,
        )

    @property
    def send(self) -> Send:
        return cast(Send, self.cycle.send)

    def _complete(self) -> None:
        self.completed += 1


async def test_a_reply_is_one_write_of_what_the_server_would_write() -> None:
    log: list[tuple[str, bytes]] = []
    ours, theirs = Answered(log, "ours"), Answered(log, "theirs")
    assert await ReplyWriter().write(ours.send, 201, HEADERS, BODY)
    await theirs.cycle.send({"type": "http.response.start", "status": 201, "headers": HEADERS})
    await theirs.cycle.send({"type": "http.response.body", "body": BODY, "more_body": False})
    [whole] = [data for name, data in log if name == "ours"]
    assert whole == b"".join(data for name, data in log if name == "theirs")
    for state in ("response_started", "response_complete", "chunked_encoding", "expected_content_length"):
        assert getattr(ours.cycle, state) == getattr(theirs.cycle, state), state
    assert ours.cycle.message_event.is_set()
    assert ours.completed == theirs.completed == 1


async def test_replies_of_a_round_are_written_after_all_of_them_are_ready() -> None:
    log: list[tuple[str, bytes]] = []
    writer = ReplyWriter()

    async def answer(name: str) -> None:
        log.append((name, b"ready"))
        await writer.write(Answered(log, name).send, 200, HEADERS, BODY)

    await asyncio.gather(*(answer(name) for name in "abc"))
    assert [name for name, data in log if data == b"ready"] == ["a", "b", "c"]
    assert [name for name, _ in log[3:]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("state", "value"),
    [("keep_alive", False), ("disconnected", True), ("response_started", True), ("access_log", True)],
)
async def test_what_is_out_of_the_ordinary_is_left_to_the_server(state: str, value: bool) -> None:
    log: list[tuple[str, bytes]] = []
    answered = Answered(log)
    setattr(answered.cycle, state, value)
    assert not await ReplyWriter().write(answered.send, 200, HEADERS, BODY)
    assert log == []


async def test_another_server_is_left_alone() -> None:
    async def send(message: object) -> None:
        raise AssertionError(message)

    assert not await ReplyWriter().write(send, 200, HEADERS, BODY)
