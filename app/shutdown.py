"""Ending well: waits end before the server waits for them, and background work is over before the pool is closed."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

CLOSE_SECONDS = 2.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def calling_before_shutdown(close: Callable[[], None]) -> Iterator[None]:
    """Calls `close` when a signal asks the process to end, before the server's own handler.

    The server waits for open requests first: a long poll that did not hear of it would hold it up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    handlers = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(close)
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


async def close_in_time(*closers: Callable[[], Awaitable[None]]) -> None:
    """Closes one after the other; what a silent database keeps open ends with the process."""
    for close in closers:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await close()


async def end_tasks(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
