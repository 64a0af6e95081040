"""
Options of consumer, share and streams groups (Kafka's ``GroupConfig``).

A group has its own value of an option, or that of the broker's option of the same meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, TypeAlias

from barnabas.storage.config.option_values import ConfigError, Validator
from barnabas.storage.config.options import (
    Bool,
    Int,
    Options,
    Text,
    option,
    section,
    table,
)
from barnabas.storage.units import SECONDS

_DURATION: Final = re.compile(
    r"by_duration:\+?P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]{0,9})?S)?)?",
    re.IGNORECASE,
)
_RESETS: Final = ("earliest", "latest")

_NO_LIMIT: Final = ""
_STANDBYS: Final = "streams.num.standby.replicas"
_MOST_STANDBYS: Final = "group.streams.max.standby.replicas"
_BOUNDED: Final = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.assignment.interval.ms",
)
"""
Options for which the broker has a least and a largest value.
"""


def _is_reset(text: str) -> bool:
    return text.lower() in _RESETS or _DURATION.fullmatch(text) is not None


@section
class ConsumerGroupOptions(Options):
    """
    Consumer groups (KIP-848).
    """

    consumer_session_timeout_ms: Int = option(
        45 * SECONDS,
        "Remove a member that sends no heartbeat for this long.",
        at_least=1,
        synonyms=("group.consumer.session.timeout.ms",),
    )
    consumer_heartbeat_interval_ms: Int = option(
        5 * SECONDS,
        "The interval of a member's heartbeats.",
        at_least=1,
        synonyms=("group.consumer.heartbeat.interval.ms",),
    )
    consumer_assignment_interval_ms: Int = option(
        1 * SECONDS,
        "The least time between two assignments.",
        at_least=0,
        synonyms=("group.consumer.assignment.interval.ms",),
    )


@section
class ShareGroupOptions(Options):
    """
    Share groups (KIP-932).
    """

    share_session_timeout_ms: Int = option(
        45 * SECONDS,
        "Remove a member that sends no heartbeat for this long.",
        at_least=1,
        synonyms=("group.share.session.timeout.ms",),
    )
    share_heartbeat_interval_ms: Int = option(
        5 * SECONDS,
        "The interval of a member's heartbeats.",
        at_least=1,
        synonyms=("group.share.heartbeat.interval.ms",),
    )
    share_record_lock_duration_ms: Int = option(
        30 * SECONDS,
        "The time for which a member holds an acquired record.",
        at_least=1000,
        synonyms=("group.share.record.lock.duration.ms",),
    )
    share_delivery_count_limit: Int = option(
        5,
        "The most delivery attempts of a record.",
        at_least=2,
        synonyms=("group.share.delivery.count.limit",),
    )
    share_partition_max_record_locks: Int = option(
        2000,
        "The most records of a partition that are acquired at a time.",
        at_least=100,
        synonyms=("group.share.partition.max.record.locks",),
    )
    share_auto_offset_reset: Text = option(
        "latest",
        "The first offset of a new group: earliest, latest or by_duration:PnDTnHnMn.nS.",
        validator=Validator(
            "earliest, latest, by_duration:PnDTnHnMn.nS",
            _is_reset,
            "The value must be either 'earliest', 'latest' or of the format"
            " 'by_duration:<PnDTnHnMn.nS>'.",
        ),
    )
    share_isolation_level: Text = option(
        "read_uncommitted",
        "Whether records of open transactions are delivered.",
        one_of=("read_committed", "read_uncommitted"),
    )
    share_renew_acknowledge_enable: Bool = option(
        True, "Whether a member may renew the lock of a record."
    )
    share_assignment_interval_ms: Int = option(
        1 * SECONDS,
        "The least time between two assignments.",
        at_least=0,
        synonyms=("group.share.assignment.interval.ms",),
    )


@section
class StreamsGroupOptions(Options):
    """
    Streams groups (KIP-1071).
    """

    streams_session_timeout_ms: Int = option(
        45 * SECONDS,
        "Remove a member that sends no heartbeat for this long.",
        at_least=1,
        synonyms=("group.streams.session.timeout.ms",),
    )
    streams_heartbeat_interval_ms: Int = option(
        5 * SECONDS,
        "The interval of a member's heartbeats.",
        at_least=1,
        synonyms=("group.streams.heartbeat.interval.ms",),
    )
    streams_num_standby_replicas: Int = option(
        0,
        "The standby replicas of a task.",
        at_least=0,
        synonyms=("group.streams.num.standby.replicas",),
    )
    streams_initial_rebalance_delay_ms: Int = option(
        3 * SECONDS,
        "The delay of an empty group's first rebalance, for more members to join.",
        at_least=0,
        synonyms=("group.streams.initial.rebalance.delay.ms",),
    )
    streams_assignment_interval_ms: Int = option(
        1 * SECONDS,
        "The least time between two assignments.",
        at_least=0,
        synonyms=("group.streams.assignment.interval.ms",),
    )


@table
class GroupConfig(ConsumerGroupOptions, ShareGroupOptions, StreamsGroupOptions):
    """
    The configuration of a group.

    Invariants:

    1. Every value is in its option's range.
    """

    kind: ClassVar[str] = "group config name:"

    def check_limits(self, broker: Options) -> None:
        """
        See whether the values are within what the broker allows to any group, and fit together.

        Args:
            broker: has options named like those here, for the least and the largest values.

        Raises:
            ConfigError: they are not.
        """
        for name in _BOUNDED:
            value = getattr(self, name.replace(".", "_"))
            least, most = _limits(name)
            if value < getattr(broker, least.replace(".", "_"), value):
                raise ConfigError(f"{name} must be greater than or equal to {least}")
            if value > getattr(broker, most.replace(".", "_"), value):
                raise ConfigError(f"{name} must be less than or equal to {most}")
        if self.streams_num_standby_replicas > getattr(broker, _MOST_STANDBYS.replace(".", "_")):
            raise ConfigError(f"{_STANDBYS} must be less than or equal to {_MOST_STANDBYS}")
        for kind in ("consumer", "share", "streams"):
            timeout = getattr(self, f"{kind}_session_timeout_ms")
            if timeout <= getattr(self, f"{kind}_heartbeat_interval_ms"):
                raise ConfigError(
                    f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"
                )


GroupConfigOf: TypeAlias = Callable[[str], GroupConfig]
"""
Returns the configuration of a group, the same object as long as nothing has changed.
"""


def within_limits(stored: Mapping[str, str], broker: Options) -> dict[str, str]:
    """
    The options of a group, those outside of what the broker allows now at its limits.
    """
    texts = dict(stored)
    limits = {name: _limits(name) for name in _BOUNDED}
    limits[_STANDBYS] = (_NO_LIMIT, _MOST_STANDBYS)
    for name in texts.keys() & limits.keys():
        least, most = limits[name]
        value = int(texts[name])
        value = max(value, getattr(broker, least.replace(".", "_"), value))
        texts[name] = str(min(value, getattr(broker, most.replace(".", "_"), value)))
    return texts


def _limits(name: str) -> tuple[str, str]:
    """
    The broker's options with the least and the largest value of an option.
    """
    kind, _, what = name.partition(".")
    return f"group.{kind}.min.{what}", f"group.{kind}.max.{what}"
