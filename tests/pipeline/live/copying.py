"""
A Spark program of its own that copies one topic to another, as a stream, to its end.

Run as ``python -m tests.pipeline.live.copying BOOTSTRAP FROM TO DIRECTORY``.
"""

from __future__ import annotations

import os
import sys

from barnabas.pipeline import register
from barnabas.pipeline.spark.session import spark_session

PATIENCE = 120


def main(bootstrap: str, source: str, target: str, directory: str) -> None:
    broker = {"kafka.bootstrap.servers": bootstrap, "kafka.request.timeout.ms": "20000"}
    with spark_session("local[2,3]", "512m") as spark:
        register(spark)
        rows = (
            spark.readStream.format("barnabas")
            .options(**broker, subscribe=source, maxOffsetsPerTrigger="100")
            .option("startingOffsets", "earliest")
            .load()
        )
        query = (
            rows.select("key", "value", "partition")
            .writeStream.format("barnabas")
            .options(**broker, topic=target, checkpointLocation=directory)
            .trigger(availableNow=True)
            .start()
        )
        if not query.awaitTermination(PATIENCE):
            sys.exit("the query does not end")


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    main(*sys.argv[1:])
