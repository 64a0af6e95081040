"""
Options of consumer groups, offsets and transactions, and those of all coordinators together.
"""

from __future__ import annotations

from barnabas.coordination.config.group_protocols import (
    ConsumerProtocolOptions,
    ShareProtocolOptions,
    StreamsProtocolOptions,
)
from barnabas.coordination.config.share import ShareCoordinatorOptions, SharePartitionOptions
from barnabas.storage.config.option_values import Update
from barnabas.storage.config.options import (
    Bool,
    Int,
    Long,
    Names,
    Options,
    Short,
    option,
    section,
)
from barnabas.storage.units import DAYS, INT_MAX, MINUTES, SECONDS, KiB, MiB

NOW = Update.CLUSTER_WIDE


@section
class GroupOptions(Options):
    """
    Members of classic consumer groups, and committed offsets.
    """

    group_initial_rebalance_delay_ms: Int = option(
        0, "The delay of an empty group's first rebalance, for more members to join."
    )
    group_min_session_timeout_ms: Int = option(
        6 * SECONDS, "The shortest session timeout of a member."
    )
    group_max_session_timeout_ms: Int = option(
        30 * MINUTES, "The longest session timeout of a member."
    )
    group_max_size: Int = option(INT_MAX, "The most members of a group.", at_least=1)
    offset_metadata_max_bytes: Int = option(
        4 * KiB, "The most bytes of a committed offset's metadata."
    )
    offsets_retention_minutes: Int = option(
        7 * DAYS // MINUTES,
        "Delete the offsets of a group that is empty for this long.",
        at_least=1,
    )
    offsets_retention_check_interval_ms: Long = option(
        10 * MINUTES, "The interval of checks for expired offsets.", at_least=1
    )
    offsets_commit_timeout_ms: Int = option(
        5 * SECONDS, "The timeout of an offset commit.", at_least=1
    )
    offsets_load_buffer_size: Int = option(
        5 * MiB, "The bytes of a read when __consumer_offsets is loaded.", at_least=1
    )
    offsets_topic_num_partitions: Int = option(
        50, "The partitions of __consumer_offsets; fixed once it exists.", at_least=1
    )
    offsets_topic_segment_bytes: Int = option(
        100 * MiB, "The segment size of __consumer_offsets.", at_least=1
    )
    offsets_topic_replication_factor: Short = option(
        1, "The replication factor of __consumer_offsets; there is one node.", at_least=1
    )
    offsets_topic_compression_codec: Int = option(
        0, "The codec of batches in __consumer_offsets, by its number."
    )

    group_coordinator_rebalance_protocols: Names = option(
        ("classic", "consumer", "streams"),
        "The protocols that members of groups may use; classic has to be among them. Share groups"
        " follow the feature share.version alone.",
        one_of=("classic", "consumer", "share", "streams"),
    )


@section
class TransactionOptions(Options):
    """
    Transactions and the topic that keeps them.
    """

    transaction_max_timeout_ms: Int = option(
        15 * MINUTES, "The longest transaction timeout of a producer.", at_least=1
    )
    transactional_id_expiration_ms: Int = option(
        7 * DAYS, "Remove a transactional id that is idle for this long.", at_least=1
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: Int = option(
        10 * SECONDS, "The interval of checks for transactions past their timeout.", at_least=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: Int = option(
        60 * MINUTES, "The interval of checks for idle transactional ids.", at_least=1
    )
    transaction_partition_verification_enable: Bool = option(
        True,
        "Whether the coordinator verifies transactional appends.",
        update=NOW,
    )
    transaction_two_phase_commit_enable: Bool = option(
        False, "Whether producers may use two-phase commit."
    )
    transaction_state_log_num_partitions: Int = option(
        50, "The partitions of __transaction_state; fixed once it exists.", at_least=1
    )
    transaction_state_log_segment_bytes: Int = option(
        100 * MiB, "The segment size of __transaction_state.", at_least=1
    )
    transaction_state_log_replication_factor: Short = option(
        1, "The replication factor of __transaction_state; there is one node.", at_least=1
    )
    transaction_state_log_min_isr: Int = option(
        1, "The min.insync.replicas of __transaction_state.", at_least=1
    )
    transaction_state_log_load_buffer_size: Int = option(
        5 * MiB, "The bytes of a read when __transaction_state is loaded.", at_least=1
    )


@section
class CoordinationOptions(
    GroupOptions,
    ConsumerProtocolOptions,
    ShareProtocolOptions,
    StreamsProtocolOptions,
    TransactionOptions,
    SharePartitionOptions,
    ShareCoordinatorOptions,
):
    """
    The sections that coordinators read.
    """
