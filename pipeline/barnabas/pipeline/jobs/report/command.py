"""
``barnabas spark report``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.pipeline.jobs.common import add_logs, add_spark, ended, partitions_of, session_of

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.report.facts import Report
    from barnabas.pipeline.jobs.report.history import History
    from barnabas.pipeline.jobs.report.making import Scope
    from barnabas.storage.clock import Clock
    from barnabas.storage.explain.known import ClusterSettings, ReadCluster
    from barnabas.storage.fs.interface import Files
    from barnabas.storage.topic_partition import TopicPartition


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
    parser.add_argument(
        "--history",
        metavar="DIR",
        help="add the figures to those of earlier runs there, and compare them: for a daily report",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be read")
    add_spark(parser)


def run(options: argparse.Namespace, read_cluster: ReadCluster, clock: Clock | None = None) -> int:
    """
    Say what is going to be read, and unless that is all, make the report; the exit status is 0, or
    1 if a log cannot be read, or 2 if the question makes no sense.
    """
    return ended(lambda: _report(options, read_cluster, clock))


def _report(options: argparse.Namespace, read_cluster: ReadCluster, clock: Clock | None) -> None:
    # --help, and an environment without Spark, should not wait for the import of it.
    from barnabas.pipeline.logs.filesystems import local_path  # noqa: PLC0415  # see above
    from barnabas.storage.clock import SystemClock  # noqa: PLC0415  # see above
    from barnabas.storage.fs.disk import DiskFiles  # noqa: PLC0415  # see above

    files, clock = DiskFiles(), clock or SystemClock()
    page = None if options.html is None else local_path(options.html)
    history = _history(options, files)
    cluster = read_cluster(options, files, clock)
    report = _reported(options, cluster, history, files, clock)
    if report is not None:
        _show(report, page, history)


def _history(options: argparse.Namespace, files: Files) -> History | None:
    """
    Where the figures are added.

    Raises:
        InvalidOption: figures are asked for that are not those of the logs.
    """
    if options.history is None:
        return None
    from barnabas.pipeline.errors import InvalidOption  # noqa: PLC0415  # see _report
    from barnabas.pipeline.jobs.report.history import History  # noqa: PLC0415  # see _report

    if options.assignments:
        raise InvalidOption(
            "--history keeps what is so, and --set asks what would be so: give one of them. The"
            " settings of the broker come with --config."
        )
    return History(options.history, files)


def _reported(
    options: argparse.Namespace,
    cluster: ClusterSettings,
    history: History | None,
    files: Files,
    clock: Clock,
) -> Report | None:
    """
    The report, whose figures are in the history; None if only a plan was asked for.
    """
    from barnabas.pipeline.jobs.report.making import (  # noqa: PLC0415  # see _report
        Scope,
        make_report,
    )
    from barnabas.storage.explain.logs import ReadOnlyLogs  # noqa: PLC0415  # see _report
    from barnabas.storage.explain.units import parse_moment  # noqa: PLC0415  # see _report

    now_ms = clock.now_ms() if options.at is None else parse_moment(options.at)
    partitions = partitions_of(ReadOnlyLogs(cluster, files, clock), options.targets)
    scope = Scope(partitions, not options.headers_only, now_ms)
    print(_plan(options, cluster, scope, files) + _kept(history, now_ms), file=sys.stderr)
    if options.dry_run:
        return None
    with session_of(options) as spark:
        report = make_report(spark, cluster, scope, files=files, clock=clock)
    if history is not None:
        history.add(report)
    return report


def _kept(history: History | None, now_ms: int) -> str:
    """
    Where the figures go, as a sentence. What is wrong there is said before a report is made.
    """
    if history is None:
        return ""
    from barnabas.pipeline.jobs.report.history import check_moment  # noqa: PLC0415  # see _report
    from barnabas.storage.units import counted  # noqa: PLC0415  # see _report

    check_moment(now_ms)
    runs = history.runs()
    where = f" The figures go to {history.path}, which has those of {counted(len(runs), 'run')}"
    again = ", this moment among them: it is written again" if now_ms in runs else ""
    return f"{where}{again}."


def _plan(options: argparse.Namespace, cluster: ClusterSettings, scope: Scope, files: Files) -> str:
    from barnabas.storage.explain.units import (  # noqa: PLC0415  # see _report
        moment,
        rounded_size,
    )
    from barnabas.storage.units import counted  # noqa: PLC0415  # see _report

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


def _size(
    cluster: ClusterSettings, partitions: Sequence[TopicPartition], files: Files
) -> tuple[int, int]:
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


def _show(report: Report, page: Path | None, history: History | None) -> None:
    from barnabas.pipeline.jobs.report.page import as_page  # noqa: PLC0415  # see _report
    from barnabas.pipeline.jobs.report.text import as_text  # noqa: PLC0415  # see _report
    from barnabas.pipeline.jobs.report.trends import (  # noqa: PLC0415  # see _report
        trend_lines,
        trends_of,
    )

    snapshots = [] if history is None else history.snapshots(with_deletions=False)
    if page is not None:
        page.write_text(as_page(report, snapshots), encoding="utf-8")
    print(as_text(report), end="")
    for line in trend_lines(trends_of(report, snapshots)):
        print(line)
