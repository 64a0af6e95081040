"""
Reporting, as a function.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.common import partitions_of
from barnabas.pipeline.jobs.report.facts import Report
from barnabas.pipeline.jobs.report.history import History, check_moment
from barnabas.pipeline.jobs.report.making import Scope, make_report
from barnabas.pipeline.logs.filesystems import local_path
from barnabas.server.dynamic_config.known_cluster import read_cluster
from barnabas.storage.clock import Clock, SystemClock
from barnabas.storage.explain.logs import ReadOnlyLogs
from barnabas.storage.fs.disk import DiskFiles


def report(
    spark: SparkSession,
    path: str,
    topics: Iterable[str] = (),
    *,
    headers_only: bool = False,
    at_ms: int | None = None,
    config: str | Path | None = None,
    history: str | Path | None = None,
    clock: Clock | None = None,
) -> Report:
    """
    Report on logs: what is in them, and how long records really stay.

    ``partitions_frame`` and ``segments_frame`` of ``barnabas.pipeline.jobs.report.frames`` make
    DataFrames of it, and ``history_frame`` makes one of all runs with the same *history*.

    Args:
        path: log directories, with commas between them.
        topics: topics, or partitions as in ``orders-0``; by default all topics that are not
            internal.
        headers_only: whether to read the headers of batches and no records.
        at_ms: the time of the report, in ms since 1970; now by default.
        config: the ``server.properties`` of the broker.
        history: a directory to which the figures of the report are added, as one snapshot of its
            time. A second report of the same time changes that snapshot and adds none.
        clock: says what time it is, unless *at_ms* does.

    Raises:
        ConfigError: the configuration of the broker is not acceptable.
        ExplainError: a topic is not there, or a log cannot be read.
        HistoryError: a file of the history is no snapshot.
        InUse: another run adds to the history.
        InvalidOption: a path is a URL, or no calendar has the time of a report with a history.
        JobFailed: a query of Spark failed.
    """
    files, clock = DiskFiles(), clock or SystemClock()
    cluster = read_cluster(
        Namespace(
            data_dirs=[local_path(directory.strip()) for directory in path.split(",")],
            config=None if config is None else local_path(config),
            assignments=[],
        ),
        files,
        clock,
    )
    partitions = partitions_of(ReadOnlyLogs(cluster, files, clock), topics)
    now_ms = clock.now_ms() if at_ms is None else at_ms
    kept = None if history is None else History(history, files)
    if kept is not None:
        # What is wrong is said before a report is made, which takes long.
        check_moment(now_ms)
        kept.runs()
    scope = Scope(partitions, with_keys=not headers_only, now_ms=now_ms)
    made = make_report(spark, cluster, scope, files=files, clock=clock)
    if kept is not None:
        kept.add(made)
    return made
