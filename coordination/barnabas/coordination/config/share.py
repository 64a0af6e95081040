"""
Options of share groups and of the share coordinator (Kafka's ``ShareGroupConfig`` and
``ShareCoordinatorConfig``).
"""

from __future__ import annotations

from barnabas.storage.config.option_values import InvalidValue
from barnabas.storage.config.options import Int, Options, Short, option, section
from barnabas.storage.units import HOURS, MINUTES, SECONDS, MiB


@section
class SharePartitionOptions(Options):
    """
    Records that the members of share groups acquire (KIP-932).
    """

    group_share_record_lock_duration_ms: Int = option(
        30 * SECONDS,
        "The time for which a member of a share group holds an acquired record.",
        at_least=1 * SECONDS,
        at_most=1 * HOURS,
    )
    group_share_min_record_lock_duration_ms: Int = option(
        15 * SECONDS,
        "The least that a group may set share.record.lock.duration.ms to.",
        at_least=1 * SECONDS,
        at_most=30 * SECONDS,
    )
    group_share_max_record_lock_duration_ms: Int = option(
        60 * SECONDS,
        "The most that a group may set share.record.lock.duration.ms to.",
        at_least=30 * SECONDS,
        at_most=1 * HOURS,
    )
    group_share_delivery_count_limit: Int = option(
        5, "How often a record is delivered at most.", at_least=2, at_most=10
    )
    group_share_min_delivery_count_limit: Int = option(
        2, "The least that a group may set share.delivery.count.limit to.", at_least=2, at_most=5
    )
    group_share_max_delivery_count_limit: Int = option(
        10, "The most that a group may set share.delivery.count.limit to.", at_least=5, at_most=25
    )
    group_share_partition_max_record_locks: Int = option(
        2000,
        "How many records of a partition a share group has in flight at most.",
        at_least=100,
        at_most=10_000,
    )
    group_share_min_partition_max_record_locks: Int = option(
        100,
        "The least that a group may set share.partition.max.record.locks to.",
        at_least=100,
        at_most=2000,
    )
    group_share_max_partition_max_record_locks: Int = option(
        4000,
        "The most that a group may set share.partition.max.record.locks to.",
        at_least=2000,
        at_most=10_000,
    )
    group_share_max_share_sessions: Int = option(
        2000, "How many share sessions there are at most.", at_least=1
    )

    def check_share_limits(self) -> None:
        """
        See whether each value is within what groups may set.

        Raises:
            InvalidValue: one is not.
        """
        for name in (
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
        ):
            attribute = name.replace(".", "_")
            value = getattr(self, f"group_share_{attribute}")
            for kind, sign in (("min", 1), ("max", -1)):
                bound = getattr(self, f"group_share_{kind}_{attribute}")
                if sign * value < sign * bound:
                    side = "below" if kind == "min" else "above"
                    raise InvalidValue(
                        f"group.share.{name}",
                        value,
                        f"Value must not be {side} group.share.{kind}.{name} ({bound})",
                    )


@section
class ShareCoordinatorOptions(Options):
    """
    The share coordinator and the topic that keeps its state.
    """

    share_coordinator_state_topic_num_partitions: Int = option(
        50, "The partitions of __share_group_state; fixed once it exists.", at_least=1
    )
    share_coordinator_state_topic_replication_factor: Short = option(
        1, "The replication factor of __share_group_state; there is one node.", at_least=1
    )
    share_coordinator_state_topic_min_isr: Short = option(
        1, "The min.insync.replicas of __share_group_state.", at_least=1
    )
    share_coordinator_state_topic_segment_bytes: Int = option(
        100 * MiB, "The segment size of __share_group_state.", at_least=1
    )
    share_coordinator_state_topic_compression_codec: Int = option(
        0, "The codec of batches in __share_group_state, by its number."
    )
    share_coordinator_snapshot_update_records_per_snapshot: Int = option(
        500,
        "How many changes of a share-partition's state are written between two snapshots of it.",
        at_least=0,
        at_most=500,
    )
    share_coordinator_load_buffer_size: Int = option(
        5 * MiB, "The bytes of a read when __share_group_state is loaded.", at_least=1
    )
    share_coordinator_state_topic_prune_interval_ms: Int = option(
        5 * MINUTES,
        "The interval at which records that no state needs are deleted.",
        at_least=1,
        internal=True,
    )
    share_coordinator_cold_partition_snapshot_interval_ms: Int = option(
        5 * MINUTES,
        "The interval of a search for states of that age or older, which get a new snapshot.",
        at_least=1,
        internal=True,
    )
