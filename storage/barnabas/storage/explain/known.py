"""
What has to be known of a broker and its topics to explain their logs.

Settings are kept in the metadata of the cluster, and in the configuration of the broker. The server
reads both; here it is said what is asked of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.state_files.file_names import TopicPartition


class ExplainError(Exception):
    """
    What was asked cannot be answered; the sentence says why, and what could be asked.
    """


class FilesChanged(ExplainError):
    """
    A broker has removed or renamed a file while it was looked at: who looks again, sees what is
    there now.
    """


def unreadable(sentence: str, error: Exception) -> ExplainError:
    """
    What to raise when *error* came in the way of reading a log.
    """
    is_gone = isinstance(error, FileNotFoundError) or isinstance(error.__cause__, FileNotFoundError)
    return (FilesChanged if is_gone else ExplainError)(f"{sentence} cannot be read: {error}")


class Setting(NamedTuple):
    """
    The value of an option, as text, and who gave it.
    """

    name: str
    value: str
    source: str


@struct
class TopicSettings:
    """
    What the logs of a topic go by.
    """

    config: LogConfig
    """What counts, with what is only supposed (``--set``)."""
    stored: LogConfig
    """What counts without suppositions."""
    settings: Mapping[str, Setting]
    """All options of ``config`` by name."""
    supposed_in_vain: tuple[str, ...] = ()
    """Why suppositions change nothing, a sentence each."""
    note: str = ""
    """Why the topic may have other settings than these; nothing if it has not."""


@struct(kw_only=True)
class BrokerTimes:
    """
    How often the broker does what it does with all logs; in ms.
    """

    retention_check_interval_ms: int
    cleaner_enabled: bool
    cleaner_backoff_ms: int
    settings: Mapping[str, Setting]
    """The same by the names of the options, with who gave them."""


class Cluster(Protocol):
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
        How many replicas a partition has; None if the metadata does not know it.
        """
