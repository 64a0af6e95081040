"""
A member of a consumer group of either protocol, as a process of its own: it can be closed, or
killed.

Run as ``python -m tests.interop.consumer_member BOOTSTRAP GROUP PROTOCOL TOPIC INSTANCE``. TOPIC
may be a pattern that begins with ``^``; INSTANCE may be ``-``. It prints a line for each change of
what it is assigned (``assigned t:0,t:2``), and for each record (``read t 0 17``), whose offset it
commits afterwards. SIGTERM closes the consumer properly.
"""

from __future__ import annotations

import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException

from tests.interop.group_member import HEARTBEAT_MS, SESSION_TIMEOUT_MS, Stop


def main(bootstrap: str, group: str, protocol: str, topic: str, instance: str) -> None:
    """
    Read, and commit, until the process is told to stop.
    """
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 500,
        "reconnect.backoff.max.ms": 200,
    }
    if protocol == "classic":
        settings |= {
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        }
    if instance != "-":
        settings["group.instance.id"] = instance
    stop = Stop()
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    told = ""
    while not stop.asked:
        message = consumer.poll(0.05)
        names = sorted(f"{each.topic}:{each.partition}" for each in consumer.assignment())
        assigned = ",".join(names) or "-"
        if assigned != told:
            told = assigned
            print("assigned", assigned, flush=True)
        if message is None or message.error():
            continue
        print("read", message.topic(), message.partition(), message.offset(), flush=True)
        try:
            consumer.commit(message=message, asynchronous=False)
        except KafkaException as error:
            print(error, file=sys.stderr)
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
