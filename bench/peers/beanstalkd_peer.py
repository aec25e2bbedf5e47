"""beanstalkd: put, then reserve and delete, a connection a caller; its protocol is a few lines of text."""

import asyncio
import json
from urllib.parse import urlsplit

from turns import PAYLOAD, Options, calls_per_second, read_options, report

DATA = json.dumps(PAYLOAD).encode()
PUT = b"put 0 0 60 %d\r\n%s\r\n" % (len(DATA), DATA)


class Client:
    """One connection, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def put(self) -> None:
        """Enqueue a job."""
        await self._ask(PUT)

    async def process(self) -> None:
        """Reserve a job and delete it."""
        reply = await self._ask(b"reserve\r\n")
        _, job, length = reply.split()
        await self._reader.readexactly(int(length) + 2)
        await self._ask(b"delete %s\r\n" % job)

    async def _ask(self, request: bytes) -> bytes:
        self._writer.write(request)
        reply = await self._reader.readuntil(b"\r\n")
        if not reply.startswith((b"INSERTED", b"RESERVED", b"DELETED")):
            raise RuntimeError(reply.decode())
        return reply


async def main(options: Options) -> None:
    """Measure enqueue and process."""
    at = urlsplit(options.url)
    opened = await asyncio.gather(*(asyncio.open_connection(at.hostname, at.port) for _ in range(options.callers)))
    clients = [Client(*streams) for streams in opened]
    for _ in range(0, options.backlog, len(clients)):
        await asyncio.gather(*(client.put() for client in clients))
    enqueue = sum(await asyncio.gather(*(calls_per_second(client.put, 1, options.seconds) for client in clients)))
    process = sum(await asyncio.gather(*(calls_per_second(client.process, 1, options.seconds) for client in clients)))
    report(enqueue=enqueue, process=process)


if __name__ == "__main__":
    asyncio.run(main(read_options()))
