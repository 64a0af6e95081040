"""
``barnabas spark replay``.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from barnabas.pipeline.jobs.archive.arguments import add_archive, existing_archive_of
from barnabas.pipeline.jobs.common import add_spark, ended, named_values, session_of

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.replay.sending import ReplayTarget
    from barnabas.storage.explain.known import ReadCluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    What may be asked.
    """
    parser.description = (
        "Send a topic in an archive to an empty topic of a broker: key, value, headers, timestamp"
        " and order of each record as they were. It may be killed at any instant and run again."
    )
    parser.add_argument("topic", metavar="TOPIC", help="as it is called in the archive")
    parser.add_argument(
        "--from",
        required=True,
        dest="archive",
        metavar="DIR",
        help="the archive, also a URL; with --catalog a NAMESPACE.TABLE",
    )
    add_archive(parser)
    parser.add_argument("-b", "--bootstrap-server", required=True, metavar="HOST:PORT")
    parser.add_argument("--to", metavar="TOPIC", help="if it is not to be called as it was")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        dest="client_options",
        metavar="NAME=VALUE",
        help="of librdkafka, such as security.protocol=SASL_SSL; may be repeated",
    )
    parser.add_argument(
        "--records-per-transaction", type=int, default=10_000, metavar="N", help="10000"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be sent")
    add_spark(parser)


def run(options: argparse.Namespace, _: ReadCluster) -> int:
    """
    Say what is going to be sent, and unless that is all, send it; the exit status is 0, or 1 if it
    cannot be sent, or 2 if the question makes no sense.
    """
    return ended(lambda: _replay(options))


def _replay(options: argparse.Namespace) -> None:
    # --help, and an environment without Spark, should not wait for the import of it.
    from barnabas.pipeline.jobs.progress import ProgressBar  # noqa: PLC0415  # see _replay
    from barnabas.pipeline.jobs.replay.job import replay  # noqa: PLC0415  # see _replay
    from barnabas.storage.clock import SystemClock  # noqa: PLC0415  # see _replay
    from barnabas.storage.units import counted  # noqa: PLC0415  # see _replay

    target = _target(options)
    plan, left_bytes = _plan(options, target)
    print(plan, end="", file=sys.stderr)
    if options.dry_run:
        return
    with (
        session_of(options) as spark,
        closing(ProgressBar("sent", left_bytes, sys.stderr, SystemClock())) as bar,
    ):
        sent = replay(
            spark,
            existing_archive_of(options, options.archive, spark),
            options.topic,
            target.bootstrap,
            to=target.topic,
            client=target.client,
            records_per_transaction=target.records_per_transaction,
            advanced=bar.advance,
        )
    print(f"Sent {counted(sum(sent.values()), 'record')} to {target.topic}.")


def _target(options: argparse.Namespace) -> ReplayTarget:
    from barnabas.pipeline.errors import InvalidOption  # noqa: PLC0415  # see _replay
    from barnabas.pipeline.jobs.replay.sending import ReplayTarget  # noqa: PLC0415  # see _replay

    client = named_values(options.client_options)
    if options.records_per_transaction < 1:
        raise InvalidOption("--records-per-transaction is at least 1")
    return ReplayTarget(
        options.bootstrap_server,
        options.to or options.topic,
        options.records_per_transaction,
        client,
    )


def _plan(options: argparse.Namespace, target: ReplayTarget) -> tuple[str, int]:
    """
    A line for all, and one for each partition; and the bytes of the log that are to be sent.
    """
    from barnabas.pipeline.jobs.replay.job import checked_target, partitions_of  # noqa: PLC0415  # see _replay
    from barnabas.pipeline.jobs.replay.sending import consumer_of, sent_before  # noqa: PLC0415  # as above
    from barnabas.pipeline.jobs.replay.watching import bytes_before  # noqa: PLC0415  # see _replay
    from barnabas.storage.units import counted  # noqa: PLC0415  # see _replay

    archive = existing_archive_of(options, options.archive)
    partitions = partitions_of(archive, options.topic)
    checked_target(target, partitions)
    lines = [
        f"Send {counted(len(partitions), 'partition')} of {options.topic} in {archive.name} to"
        f" {target.topic} at {target.bootstrap}, on {options.master}, in transactions of"
        f" {counted(target.records_per_transaction, 'record')}."
    ]
    left_bytes = 0
    for partition in partitions:
        first, end = partition.offsets.start, partition.offsets.end
        with closing(consumer_of(partition, target)) as consumer:
            start = sent_before(consumer, partition, target)
        before = "" if start in (None, first) else f"; {first} to {start - 1} were sent before"
        start = first if start is None else start
        left_bytes += bytes_before(partition.files, end) - bytes_before(partition.files, start)
        what = f"offsets {start} to {end - 1} of the archive" if start < end else "nothing"
        lines.append(f"  {target.topic}-{partition.topic_partition.partition}: {what}{before}")
    return "".join(f"{line}\n" for line in lines), left_bytes
