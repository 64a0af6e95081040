from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline import report
from barnabas.pipeline.jobs.report.frames import partitions_frame, segments_frame
from barnabas.pipeline.jobs.report.page import as_page
from barnabas.pipeline.jobs.report.text import as_text
from barnabas.protocol.records.record import SimpleRecord
from tests.support.log_directory import WrittenDirectory, append
from tests.support.segments import FIRST_TIMESTAMP

pytestmark = [pytest.mark.spark, pytest.mark.prove]

LATEST_MS = (2**63 - 1) // 1000
"""
Spark and Arrow count in us.
"""


FAR_MS = [253_402_300_800_000, 1_700_000_000_000_000_000, 2**62]


def test_times_after_the_year_9999_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    """
    The text has numbers, and frames the latest possible time. Such times come from producers that
    count in ns.
    """
    directory = WrittenDirectory(tmp_path)
    for partition, far_ms in enumerate(FAR_MS):
        log = directory.log("events", partition, message_timestamp_after_max_ms=2**63 - 1)
        for ms in (FIRST_TIMESTAMP, far_ms, FIRST_TIMESTAMP + 1):
            append(log, [SimpleRecord(ms, b"k", b"v")])
            log.roll()
    directory.stop()

    facts = report(spark, str(tmp_path), ["events"], at_ms=FIRST_TIMESTAMP)

    shown = [min(far_ms, LATEST_MS) for far_ms in FAR_MS]
    for ms in shown:
        assert f" to {ms} ms" in as_text(facts)
    assert f"{FAR_MS[0]} ms" in as_page(facts)
    last = "unix_millis(lastTimestamp) as last"
    partitions = partitions_frame(spark, facts).sort("partition").selectExpr(last)
    assert shown == [row.last for row in partitions.collect()]
    segments = segments_frame(spark, facts).where("baseOffset = 1").sort("partition")
    assert shown == [row.last for row in segments.selectExpr(last).collect()]
