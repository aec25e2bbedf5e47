"""RabbitMQ over AMQP: durable queue, persistent messages, publisher confirms, then get and ack one by one."""

import asyncio
import itertools
import json
from collections.abc import Iterator

import aio_pika
from turns import PAYLOAD, Options, calls_per_second, read_options, report

QUEUE = "bench-amqp"
CHANNELS = 16
PUBLISHED_AT_ONCE = 500
MESSAGE = aio_pika.Message(json.dumps(PAYLOAD).encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)


async def _publish(channels: Iterator[aio_pika.abc.AbstractChannel]) -> None:
    await next(channels).default_exchange.publish(MESSAGE, routing_key=QUEUE)


async def _process(queues: Iterator[aio_pika.abc.AbstractQueue]) -> None:
    message = await next(queues).get(timeout=30)
    await message.ack()


async def main(options: Options) -> None:
    """Measure enqueue and process."""
    connection = await aio_pika.connect(options.url)
    async with connection:
        opened = [await connection.channel(publisher_confirms=True) for _ in range(CHANNELS)]
        declared = [await channel.declare_queue(QUEUE, durable=True) for channel in opened]
        channels, queues = itertools.cycle(opened), itertools.cycle(declared)
        for _ in range(0, options.backlog, PUBLISHED_AT_ONCE):
            await asyncio.gather(*(_publish(channels) for _ in range(PUBLISHED_AT_ONCE)))
        enqueue = await calls_per_second(lambda: _publish(channels), options.callers, options.seconds)
        process = await calls_per_second(lambda: _process(queues), options.callers, options.seconds)
    report(enqueue=enqueue, process=process)


if __name__ == "__main__":
    asyncio.run(main(read_options()))
