"""
Copies a topic with Faust, and counts values in a table: an offset is committed after its copy is
acknowledged.
"""

import sys

import faust

bootstrap, source, target = sys.argv[1:]
app = faust.App(
    "copier",
    broker=f"kafka://{bootstrap}",
    topic_partitions=4,
    topic_replication_factor=1,
    broker_commit_interval=0.5,
    broker_session_timeout=2.0,
    broker_heartbeat_interval=0.5,
    store="memory://",
    web_enabled=False,
)
numbers = app.topic(source, value_type=bytes, value_serializer="raw")
copies = app.topic(target, value_type=bytes, value_serializer="raw")
seen = app.Table("seen", default=int)


@app.on_rebalance_complete.connect
async def hold(_: faust.App, **__: object) -> None:
    """
    Let no record flow until Faust has sought the committed offsets. Faust lets them flow then.

    Faust 0.15.3 has agents process records while an app with a table seeks. The seek sets the
    offset that was read last back to the committed one. The next record then looks like the end of
    a gap. Faust commits a gap before it has processed the records in it. A kill loses them.
    """
    app.consumer.stop_flow()


@app.agent(numbers)
async def copy(values):
    async for value in values:
        await copies.send(value=value)
        seen[value] += 1


sys.argv[1:] = ["worker", "--without-web", "--loglevel", "info"]
app.main()
