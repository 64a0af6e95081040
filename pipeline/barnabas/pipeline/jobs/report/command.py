"""
``barnabas spark report``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.pipeline.jobs.common import add_logs, add_spark, ended, session_of
from barnabas.storage.explain.command import ReadCluster

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.report.facts import Report
    from barnabas.pipeline.jobs.report.making import Scope
    from barnabas.storage.clock import Clock
    from barnabas.storage.explain.known import Cluster
    from barnabas.storage.fs.interface import Files
    from barnabas.storage.state_files.file_names import TopicPartition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    What may be asked.
    """
    parser.description = (
        "Report on logs: segments, batches, codecs, order, gaps, keys, repetitions; and how long"
        " records really stay, beside what retention.ms asks for. Works on the files, whether a"
        " broker runs on them or not, and changes nothing."
    )
    add_logs(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="assignments",
        metavar="NAME=VALUE",
        help="what would be so with this setting of the topics or the broker; may be repeated",
    )
    parser.add_argument(
        "--at",
        metavar="TIME",
        help="what would be so at that time: 2026-01-31T12:00:00Z, or ms since 1970",
    )
    parser.add_argument(
        "--headers-only",
        action="store_true",
        help="read no records but the headers of their batches: much faster, and nothing of keys",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page with plots there")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be read")
    add_spark(parser)


def run(options: argparse.Namespace, read_cluster: ReadCluster) -> int:
    """
    Say what is going to be read, and unless that is all, make the report; the exit status is 0, or
    1 if a log cannot be read, or 2 if the question makes no sense.
    """
    return ended(lambda: _report(options, read_cluster))


def _report(options: argparse.Namespace, read_cluster: ReadCluster) -> None:
    # Whoever asks for --help, or has no Spark, should not wait for it.
    from barnabas.pipeline.logs.filesystems import local_path  # noqa: PLC0415  # see above
    from barnabas.storage.clock import SystemClock  # noqa: PLC0415  # see above
    from barnabas.storage.fs.disk import DiskFiles  # noqa: PLC0415  # see above

    files, clock = DiskFiles(), SystemClock()
    page = None if options.html is None else local_path(options.html)
    report = _reported(options, read_cluster(options, files, clock), files, clock)
    if report is not None:
        _show(report, page)


def _reported(
    options: argparse.Namespace, cluster: Cluster, files: Files, clock: Clock
) -> Report | None:
    """
    The report; None if only a plan was asked for.
    """
    from barnabas.pipeline.jobs.report.making import (  # noqa: PLC0415  # see _report
        Scope,
        make_report,
        partitions_of,
    )
    from barnabas.storage.explain.logs import ReadOnlyLogs  # noqa: PLC0415  # see _report
    from barnabas.storage.explain.units import parse_moment  # noqa: PLC0415  # see _report

    now_ms = clock.now_ms() if options.at is None else parse_moment(options.at)
    partitions = partitions_of(ReadOnlyLogs(cluster, files, clock), options.targets)
    scope = Scope(partitions, not options.headers_only, now_ms)
    print(_plan(options, cluster, scope, files), file=sys.stderr)
    if options.dry_run:
        return None
    with session_of(options) as spark:
        return make_report(spark, cluster, scope, files=files, clock=clock)


def _plan(options: argparse.Namespace, cluster: Cluster, scope: Scope, files: Files) -> str:
    from barnabas.storage.explain.units import (  # noqa: PLC0415  # see _report
        counted,
        moment,
        rounded_size,
    )

    segments, size = _size(cluster, scope.partitions, files)
    what = "and all their records" if scope.with_keys else "but no records"
    where = ", ".join(map(str, cluster.data_dirs))
    page = f" A page goes to {options.html}." if options.html else ""
    return (
        f"Report on {counted(len(scope.partitions), 'partition')} in {where}, as of"
        f" {moment(scope.now_ms)}: reads the headers of all batches, {what}, in"
        f" {counted(segments, 'segment')} of {rounded_size(size)}, on {options.master}."
        f" Nothing is changed.{page}"
    )


def _size(cluster: Cluster, partitions: Sequence[TopicPartition], files: Files) -> tuple[int, int]:
    """
    The number of segments, and their bytes.
    """
    from barnabas.storage.readonly.log_root import LogRoot  # noqa: PLC0415  # see _report
    from barnabas.storage.readonly.partition import PartitionDirectory  # noqa: PLC0415  # as well

    wanted = set(partitions)
    found = [
        segment
        for directory in cluster.data_dirs
        for partition, path in LogRoot(directory, files).logs.items()
        if partition in wanted
        for segment in PartitionDirectory(path, files).segments
    ]
    return len(found), sum(segment.size for segment in found)


def _show(report: Report, page: Path | None) -> None:
    from barnabas.pipeline.jobs.report.page import as_page  # noqa: PLC0415  # see _report
    from barnabas.pipeline.jobs.report.text import as_text  # noqa: PLC0415  # see _report

    if page is not None:
        page.write_text(as_page(report), encoding="utf-8")
    print(as_text(report), end="")
