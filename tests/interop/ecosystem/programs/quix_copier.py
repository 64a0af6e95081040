"""
Copies a topic with Quix Streams, in transactions.
"""

import sys

from quixstreams import Application

bootstrap, source, target = sys.argv[1:]
app = Application(
    bootstrap,
    consumer_group="copier",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    commit_interval=0.3,
    consumer_extra_config={"session.timeout.ms": 2000, "heartbeat.interval.ms": 500},
    # Each start takes a new transactional id: what a killed one left open ends by time only.
    producer_extra_config={"transaction.timeout.ms": 3000},
)
copies = app.topic(target, value_serializer="bytes")
app.dataframe(app.topic(source, value_deserializer="bytes")).to_topic(copies)
app.run()
