"""
Copies a topic with tasks of Celery, whose queue is another topic: a thread reads the first topic
and sends a task for each record, and a worker carries the tasks out.
"""

import sys
import threading

from celery import Celery
from confluent_kafka import Consumer, Producer

bootstrap, source, target = sys.argv[1:]
app = Celery("copier", broker=f"confluentkafka://{bootstrap}")
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "wait_time_seconds": 1,
        "kafka_producer_config": {"enable.idempotence": True},
        "kafka_consumer_config": {"session.timeout.ms": 2000, "heartbeat.interval.ms": 500},
    },
)
producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})


@app.task(name="copy")
def copy(value: str) -> None:
    producer.produce(target, value)
    producer.flush()


def feed() -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "feeder",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 2000,
            "heartbeat.interval.ms": 500,
        }
    )
    consumer.subscribe([source])
    while True:
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            copy.delay(message.value().decode())
            consumer.commit(message=message)


threading.Thread(target=feed, daemon=True).start()
app.worker_main(["worker", "--pool=solo", "--without-gossip", "--without-mingle", "-l", "info"])
