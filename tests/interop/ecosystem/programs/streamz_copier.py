"""
Copies a topic with streamz: a batch's offsets are committed after its copies are acknowledged.
"""

import sys

from confluent_kafka import Producer
from streamz import Stream
from tornado.ioloop import IOLoop

bootstrap, source, target = sys.argv[1:]
producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})


def copy(values: list[bytes]) -> None:
    for value in values:
        producer.produce(target, value)
    producer.flush()


batches = Stream.from_kafka_batched(
    source,
    {"bootstrap.servers": bootstrap, "group.id": "copier", "auto.offset.reset": "earliest"},
    poll_interval=0.2,
    npartitions=4,
    asynchronous=True,
)
batches.sink(copy)
batches.start()
IOLoop.current().start()
