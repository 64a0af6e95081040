"""
What the jobs of ``barnabas spark`` have in common as commands: some of what may be asked, and how
they end.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from barnabas.storage.explain.command import add_log_directories
from barnabas.storage.readonly.command_line import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    allow_many_files,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.storage.clock import Clock
    from barnabas.storage.explain.known import ReadCluster
    from barnabas.storage.explain.logs import ReadOnlyLogs
    from barnabas.storage.topic_partition import TopicPartition


def add_logs(parser: argparse.ArgumentParser) -> None:
    """
    Which logs it is about.
    """
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TOPIC[-PARTITION]",
        help="such as orders or orders-0; if none is named, all topics that are not internal",
    )
    add_log_directories(parser)


def add_spark(parser: argparse.ArgumentParser) -> None:
    """
    Where Spark runs.
    """
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="URL",
        help="where Spark runs, such as spark://host:7077; here by default",
    )
    parser.add_argument("--memory", default="1g", help="of Spark's driver, such as 2g")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark, such as spark.executor.memory=2g; may be repeated",
    )


def session_of(options: argparse.Namespace) -> AbstractContextManager[SparkSession]:
    """
    The session that ``add_spark`` was asked for.

    Raises:
        InvalidOption: a setting of Spark does not look like one.
        JobFailed, NoJava: as ``spark_session``.
    """
    from barnabas.pipeline.spark.session import spark_session  # noqa: PLC0415  # see ended

    settings = named_values(options.conf, "--conf")
    return spark_session(options.master, options.memory, settings)


def add_source_options(parser: argparse.ArgumentParser, example: str) -> None:
    """
    What the source is told; ``named_values`` reads it. What the logs hold is read as it is,
    whatever may be set for a broker.
    """
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        dest="source_options",
        metavar="NAME=VALUE",
        help=f"of the source, such as {example}; may be repeated",
    )
    parser.set_defaults(assignments=[])


def named_values(assignments: Iterable[str], argument: str = "--option") -> dict[str, str]:
    """
    What was given as ``--option NAME=VALUE``, or as another *argument*.

    Raises:
        InvalidOption: one of them looks otherwise.
    """
    from barnabas.pipeline.errors import InvalidOption  # noqa: PLC0415  # see ended

    values = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidOption(f"{argument} {assignment}: it must look like NAME=VALUE")
        values[name.strip()] = value.strip()
    return values


def size_of(name: str, text: str | None, default: int) -> int:
    """
    The bytes that the option *name* says, or the *default* if it was not given.

    Raises:
        InvalidOption: it is no size, or none at all.
    """
    from barnabas.pipeline.errors import InvalidOption  # noqa: PLC0415  # see ended
    from barnabas.pipeline.spark_values import parse_size  # noqa: PLC0415  # see ended

    if text is None:
        return default
    with suppress(ValueError):
        size = parse_size(text)
        if size > 0:
            return size
    raise InvalidOption(f"{name} is a size of at least 1, as in 64m or 67108864, not {text!r}.")


def assigned_logs(
    options: argparse.Namespace,
    read_cluster: ReadCluster,
    clock: Clock,
    *,
    without_gone: bool = False,
) -> tuple[str, str]:
    """
    The log directories, and the source's ``assign`` for the partitions that ``add_logs`` was told.

    Args:
        without_gone: whether those that are not there are left out, as long as another one is.

    Raises:
        ConfigError: the configuration of the broker is not acceptable.
        ExplainError: a topic is not there.
    """
    from barnabas.storage.explain.logs import ReadOnlyLogs  # noqa: PLC0415  # see ended
    from barnabas.storage.fs.disk import DiskFiles  # noqa: PLC0415  # see ended

    files = DiskFiles()
    cluster = read_cluster(options, files, clock)
    logs = ReadOnlyLogs(cluster, files, clock)
    there = [name for name in options.targets if without_gone and _finds(logs, name)]
    assigned: dict[str, list[int]] = {}
    for topic, number in partitions_of(logs, there or options.targets):
        assigned.setdefault(topic, []).append(number)
    return ",".join(map(str, cluster.data_dirs)), json.dumps(assigned)


def partitions_of(logs: ReadOnlyLogs, topics: Iterable[str]) -> list[TopicPartition]:
    """
    The partitions that are named, or those of all topics but internal ones.

    Raises:
        ExplainError: one is not there, or none at all.
    """
    from barnabas.storage.explain.known import ExplainError  # noqa: PLC0415  # see ended

    named = list(topics) or [topic for topic in logs.topics if not topic.startswith("__")]
    if not named:
        raise ExplainError("There are no topics in the log directories; name one with --data-dir")
    return sorted({partition for name in named for partition in logs.find(name)})


def _finds(logs: ReadOnlyLogs, name: str) -> bool:
    from barnabas.storage.explain.known import ExplainError  # noqa: PLC0415  # see ended

    try:
        return bool(logs.find(name))
    except ExplainError:
        return False


def ended(job: Callable[[], None]) -> int:
    """
    Do the *job*; the exit status is 0, or 1 if it failed, 2 if the question makes no sense, 130 if
    somebody interrupted it. The first three say why in a line.
    """
    # --help, and an environment without Spark, should not wait for the import of it.
    from barnabas.pipeline.errors import ClientError, InvalidOption, PipelineError  # noqa: PLC0415  # see above
    from barnabas.storage.config.option_values import ConfigError  # noqa: PLC0415  # see above
    from barnabas.storage.errors import KafkaError  # noqa: PLC0415  # see above
    from barnabas.storage.explain.known import ExplainError  # noqa: PLC0415  # see above

    allow_many_files()
    # What the engine logs while a log is opened is not done to it.
    logging.getLogger("barnabas").addHandler(logging.NullHandler())
    try:
        job()
    except (ConfigError, InvalidOption) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (ExplainError, OSError, KafkaError, PipelineError, ClientError) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("barnabas: stopped; whatever is done stays", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0
