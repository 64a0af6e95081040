"""
The settings of a broker and its topics.

They are in the metadata of the cluster and in the configuration of the broker. The server reads
both and implements ``ClusterSettings``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.fs.interface import Files
from barnabas.storage.topic_partition import TopicPartition


class ExplainError(Exception):
    """
    The question has no answer. The sentence gives the reason, and a question that has one.
    """


class FilesChanged(ExplainError):
    """
    A broker has removed or renamed a file during the reading. A second reading may succeed.
    """


def unreadable(sentence: str, error: Exception) -> ExplainError:
    """
    The exception for an *error* that a log could not be read for.
    """
    is_gone = isinstance(error, FileNotFoundError) or isinstance(error.__cause__, FileNotFoundError)
    return (FilesChanged if is_gone else ExplainError)(f"{sentence} cannot be read: {error}")


class Setting(NamedTuple):
    """
    The value of an option, as text, and its source.
    """

    name: str
    value: str
    source: str


@struct
class TopicSettings:
    """
    The configuration of the logs of a topic.
    """

    config: LogConfig
    """The configuration with the suppositions of ``--set``."""
    stored: LogConfig
    """The configuration without them."""
    settings: Mapping[str, Setting]
    """All options of ``config`` by name."""
    supposed_in_vain: tuple[str, ...] = ()
    """A sentence for each supposition that changes nothing."""
    note: str = ""
    """A sentence if the topic may have other settings than these."""


@struct(kw_only=True)
class BrokerTimes:
    """
    The intervals of the broker for all logs, in ms.
    """

    retention_check_interval_ms: int
    cleaner_enabled: bool
    cleaner_backoff_ms: int
    settings: Mapping[str, Setting]
    """The same by the names of the options, with their sources."""


class ClusterSettings(Protocol):
    """
    The settings of a broker and of its topics.
    """

    @property
    def data_dirs(self) -> Collection[Path]:
        """
        The log directories.
        """

    @property
    def times(self) -> BrokerTimes: ...

    def settings_of(self, topic: str) -> TopicSettings: ...

    def replicas_of(self, partition: TopicPartition) -> int | None:
        """
        The number of replicas of a partition; None if the metadata does not know it.
        """


ReadCluster: TypeAlias = Callable[[argparse.Namespace, Files, Clock], ClusterSettings]
"""
Reads the settings of the broker by the options of a command; raises ``ConfigError`` if one of them
is wrong.
"""
