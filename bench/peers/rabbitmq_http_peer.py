"""RabbitMQ over its HTTP API: publish, then get with an immediate ack, a connection a caller."""

import asyncio
import base64
import json
from urllib.parse import parse_qs, urlsplit

from turns import PAYLOAD, Options, calls_per_second, read_options, report

QUEUE = "bench-http"
PUBLISH = {
    "properties": {"delivery_mode": 2},
    "routing_key": QUEUE,
    "payload": json.dumps(PAYLOAD),
    "payload_encoding": "string",
}
GET = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}


class Client:
    """One connection, one request at a time; the server closes it now and then."""

    def __init__(self, host: str, port: int) -> None:
        self._at = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def publish(self) -> None:
        """Enqueue a message."""
        await self.ask("POST", "exchanges/%2F/amq.default/publish", PUBLISH)

    async def process(self) -> None:
        """Take a message."""
        await self.ask("POST", f"queues/%2F/{QUEUE}/get", GET)

    async def ask(self, method: str, path: str, body: object) -> None:
        """Make a request and see that it is not refused."""
        content, key = json.dumps(body).encode(), base64.b64encode(b"guest:guest").decode()
        head = (
            f"{method} /api/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        try:
            reply = await self._exchange(head.encode() + content)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._streams = None
            reply = await self._exchange(head.encode() + content)
        if not reply.startswith(b"http/1.1 2"):
            raise RuntimeError(reply.decode())

    async def _exchange(self, request: bytes) -> bytes:
        """Send a request and return the reply's head."""
        self._streams = self._streams or await asyncio.open_connection(*self._at)
        reader, writer = self._streams
        writer.write(request)
        reply = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"content-length:" in reply:
            await reader.readexactly(int(reply.split(b"content-length:")[1].split(b"\r\n")[0]))
        return reply


async def main(options: Options) -> None:
    """Measure enqueue and process."""
    at = urlsplit(options.url)
    port = int(parse_qs(at.query)["management"][0])
    clients = [Client(at.hostname or "", port) for _ in range(options.callers)]
    await clients[0].ask("PUT", f"queues/%2F/{QUEUE}", {"durable": True})
    for _ in range(0, options.backlog, len(clients)):
        await asyncio.gather(*(client.publish() for client in clients))
    enqueue = sum(await asyncio.gather(*(calls_per_second(client.publish, 1, options.seconds) for client in clients)))
    process = sum(await asyncio.gather(*(calls_per_second(client.process, 1, options.seconds) for client in clients)))
    report(enqueue=enqueue, process=process)


if __name__ == "__main__":
    asyncio.run(main(read_options()))
