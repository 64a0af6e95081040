"""
Options of the group protocols after the classic one (Kafka's ``GroupCoordinatorConfig``).
"""

from __future__ import annotations

from typing import Final

from barnabas.storage.config.option_values import InvalidValue, Update, Validator
from barnabas.storage.config.options import Int, Names, Options, Text, option, section
from barnabas.storage.units import INT_MAX, MINUTES, SECONDS

NOW: Final = Update.CLUSTER_WIDE
_MIGRATION_POLICIES: Final = ("bidirectional", "disabled", "downgrade", "upgrade")


@section
class ConsumerProtocolOptions(Options):
    """
    Members of consumer groups (KIP-848). A group may have its own timeouts within the limits.
    """

    group_consumer_session_timeout_ms: Int = option(
        45 * SECONDS, "Remove a member that sends no heartbeat for this long.", at_least=1
    )
    group_consumer_min_session_timeout_ms: Int = option(
        45 * SECONDS, "The least consumer.session.timeout.ms of a group.", at_least=1
    )
    group_consumer_max_session_timeout_ms: Int = option(
        60 * SECONDS, "The largest consumer.session.timeout.ms of a group.", at_least=1
    )
    group_consumer_heartbeat_interval_ms: Int = option(
        5 * SECONDS, "The interval of a member's heartbeats.", at_least=1
    )
    group_consumer_min_heartbeat_interval_ms: Int = option(
        5 * SECONDS, "The least consumer.heartbeat.interval.ms of a group.", at_least=1
    )
    group_consumer_max_heartbeat_interval_ms: Int = option(
        15 * SECONDS, "The largest consumer.heartbeat.interval.ms of a group.", at_least=1
    )
    group_consumer_assignment_interval_ms: Int = option(
        1 * SECONDS, "The least time between two assignments.", at_least=0, update=NOW
    )
    group_consumer_min_assignment_interval_ms: Int = option(
        0, "The least consumer.assignment.interval.ms of a group.", at_least=0
    )
    group_consumer_max_assignment_interval_ms: Int = option(
        15 * SECONDS, "The largest consumer.assignment.interval.ms of a group.", at_least=0
    )
    group_consumer_max_size: Int = option(
        INT_MAX, "The most members of a consumer group.", at_least=1
    )
    group_consumer_assignors: Names = option(
        ("uniform", "range"),
        "The assignors that a member may ask for; the first one is the default.",
        one_of=("uniform", "range"),
    )
    group_consumer_migration_policy: Text = option(
        "bidirectional",
        "Which groups change their protocol while they have members.",
        validator=Validator(
            "bidirectional, disabled, downgrade, upgrade, in any case",
            lambda text: text.lower() in _MIGRATION_POLICIES,
            "String must be one of (case insensitive): DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL",
        ),
    )
    group_consumer_regex_refresh_interval_ms: Int = option(
        10 * MINUTES,
        "The longest time after which regular expressions are matched again.",
        at_least=10 * SECONDS,
        internal=True,
    )


@section
class ShareProtocolOptions(Options):
    """
    Members of share groups (KIP-932). A group may have its own timeouts within the limits.
    """

    group_share_session_timeout_ms: Int = option(
        45 * SECONDS, "Remove a member that sends no heartbeat for this long.", at_least=1
    )
    group_share_min_session_timeout_ms: Int = option(
        45 * SECONDS, "The least share.session.timeout.ms of a group.", at_least=1
    )
    group_share_max_session_timeout_ms: Int = option(
        60 * SECONDS, "The largest share.session.timeout.ms of a group.", at_least=1
    )
    group_share_heartbeat_interval_ms: Int = option(
        5 * SECONDS, "The interval of a member's heartbeats.", at_least=1
    )
    group_share_min_heartbeat_interval_ms: Int = option(
        5 * SECONDS, "The least share.heartbeat.interval.ms of a group.", at_least=1
    )
    group_share_max_heartbeat_interval_ms: Int = option(
        15 * SECONDS, "The largest share.heartbeat.interval.ms of a group.", at_least=1
    )
    group_share_assignment_interval_ms: Int = option(
        1 * SECONDS, "The least time between two assignments.", at_least=0, update=NOW
    )
    group_share_min_assignment_interval_ms: Int = option(
        0, "The least share.assignment.interval.ms of a group.", at_least=0
    )
    group_share_max_assignment_interval_ms: Int = option(
        15 * SECONDS, "The largest share.assignment.interval.ms of a group.", at_least=0
    )
    group_share_max_size: Int = option(
        200, "The most members of a share group.", at_least=1, at_most=1000
    )
    group_share_assignors: Names = option(
        ("simple",), "The assignor of share groups.", one_of=("simple",)
    )
    group_share_initialize_retry_interval_ms: Int = option(
        30 * SECONDS,
        "The time after which partitions that are not initialized yet are asked for again.",
        at_least=1,
        internal=True,
    )


@section
class StreamsProtocolOptions(Options):
    """
    Members of streams groups (KIP-1071). A group may have its own timeouts within the limits.
    """

    group_streams_session_timeout_ms: Int = option(
        45 * SECONDS, "Remove a member that sends no heartbeat for this long.", at_least=1
    )
    group_streams_min_session_timeout_ms: Int = option(
        45 * SECONDS, "The least streams.session.timeout.ms of a group.", at_least=1
    )
    group_streams_max_session_timeout_ms: Int = option(
        60 * SECONDS, "The largest streams.session.timeout.ms of a group.", at_least=1
    )
    group_streams_heartbeat_interval_ms: Int = option(
        5 * SECONDS, "The interval of a member's heartbeats.", at_least=1
    )
    group_streams_min_heartbeat_interval_ms: Int = option(
        5 * SECONDS, "The least streams.heartbeat.interval.ms of a group.", at_least=1
    )
    group_streams_max_heartbeat_interval_ms: Int = option(
        15 * SECONDS, "The largest streams.heartbeat.interval.ms of a group.", at_least=1
    )
    group_streams_assignment_interval_ms: Int = option(
        1 * SECONDS, "The least time between two assignments.", at_least=0, update=NOW
    )
    group_streams_min_assignment_interval_ms: Int = option(
        0, "The least streams.assignment.interval.ms of a group.", at_least=0
    )
    group_streams_max_assignment_interval_ms: Int = option(
        15 * SECONDS, "The largest streams.assignment.interval.ms of a group.", at_least=0
    )
    group_streams_max_size: Int = option(
        INT_MAX, "The most members of a streams group.", at_least=1
    )
    group_streams_num_standby_replicas: Int = option(
        0, "The standby replicas of a task.", at_least=0
    )
    group_streams_max_standby_replicas: Int = option(
        2, "The largest streams.num.standby.replicas of a group.", at_least=0
    )
    group_streams_initial_rebalance_delay_ms: Int = option(
        3 * SECONDS,
        "The delay of an empty group's first assignment, for more members to join.",
        at_least=0,
    )


def check_limits(config: Options) -> None:
    """
    See whether the defaults of all groups are within the limits of single groups.

    Raises:
        InvalidValue: they are not.
    """
    for kind in ("consumer", "share", "streams"):
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
            least, value, most = (
                _value(config, f"group.{kind}.{limit}{what}") for limit in ("min.", "", "max.")
            )
            if most < least:
                raise InvalidValue(
                    f"group.{kind}.max.{what}", most, f"must not be below group.{kind}.min.{what}"
                )
            if not least <= value <= most:
                raise InvalidValue(
                    f"group.{kind}.{what}",
                    value,
                    f"must be within group.{kind}.min.{what} ({least}) and"
                    f" group.{kind}.max.{what} ({most})",
                )
        heartbeat = _value(config, f"group.{kind}.heartbeat.interval.ms")
        if heartbeat >= _value(config, f"group.{kind}.session.timeout.ms"):
            raise InvalidValue(
                f"group.{kind}.heartbeat.interval.ms",
                heartbeat,
                f"must be less than group.{kind}.session.timeout.ms",
            )
    standbys = _value(config, "group.streams.num.standby.replicas")
    if standbys > _value(config, "group.streams.max.standby.replicas"):
        raise InvalidValue(
            "group.streams.num.standby.replicas",
            standbys,
            "must not be above group.streams.max.standby.replicas",
        )


def _value(config: Options, name: str) -> int:
    value: int = getattr(config, name.replace(".", "_"))
    return value
