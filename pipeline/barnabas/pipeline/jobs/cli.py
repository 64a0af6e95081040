"""
``barnabas spark``: jobs on log directories.

Nothing here needs Spark. The job that was chosen loads it, or says how to install it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.jobs.archive import command as archive
from barnabas.pipeline.jobs.compact import command as compact
from barnabas.pipeline.jobs.replay import command as replay
from barnabas.pipeline.jobs.report import command as report

if TYPE_CHECKING:
    from barnabas.storage.explain.known import ReadCluster

EXIT_FAILED: Final = 1

_EXTRAS: Final = {
    **dict.fromkeys(
        ("confluent_kafka", "matplotlib", "numpy", "pandas", "py4j", "pyarrow", "pyspark"), "spark"
    ),
    "deltalake": "delta",
    "obstore": "objects",
    "pyiceberg": "iceberg",
    "sqlalchemy": "iceberg",
}
"""The extra that brings a package."""


def add_arguments(parser: argparse.ArgumentParser, read_cluster: ReadCluster) -> None:
    """
    The jobs, each a command of its own.
    """
    parser.description = (
        "Jobs on log directories that run on Apache Spark. Each says first what it is going to do;"
        " with --dry-run it says only that."
    )
    jobs = parser.add_subparsers(required=True, metavar="JOB")
    job = jobs.add_parser("archive", help="append closed segments to an archive")
    archive.add_arguments(job)
    job.set_defaults(command=_with_extra(archive.run, read_cluster), parser=job)
    job = jobs.add_parser("compact", help="the latest record of each key, in Parquet")
    compact.add_arguments(job)
    job.set_defaults(command=_with_extra(compact.run, read_cluster), parser=job)
    job = jobs.add_parser("replay", help="send a topic in an archive to a broker")
    replay.add_arguments(job)
    job.set_defaults(command=_with_extra(replay.run, read_cluster), parser=job)
    job = jobs.add_parser("report", help="what is in the logs, and how long it stays")
    report.add_arguments(job)
    job.set_defaults(command=_with_extra(report.run, read_cluster), parser=job)


def _with_extra(
    run: Callable[[argparse.Namespace, ReadCluster], int], read_cluster: ReadCluster
) -> Callable[[argparse.Namespace], int]:
    def command(options: argparse.Namespace) -> int:
        try:
            return run(options, read_cluster)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in _EXTRAS:
                raise
            advice = f"pip install 'barnabas[{_EXTRAS[package]}]'"
            print(f"barnabas: there is no {package} here: {advice}", file=sys.stderr)
            return EXIT_FAILED

    return command
