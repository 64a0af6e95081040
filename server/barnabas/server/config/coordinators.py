"""
Options of consumer groups, offsets and transactions.
"""

from __future__ import annotations

from barnabas.storage.config.option_values import Update
from barnabas.storage.config.options import (
    Bool,
    Int,
    Long,
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
        0, "How long the first join of an empty group waits for more members."
    )
    group_min_session_timeout_ms: Int = option(
        6 * SECONDS, "The shortest session timeout that a member may ask for."
    )
    group_max_session_timeout_ms: Int = option(
        30 * MINUTES, "The longest session timeout that a member may ask for."
    )
    group_max_size: Int = option(INT_MAX, "How many members a group may have.", at_least=1)
    offset_metadata_max_bytes: Int = option(4 * KiB, "The longest metadata of a committed offset.")
    offsets_retention_minutes: Int = option(
        7 * DAYS // MINUTES, "Forget offsets of a group that was empty for this long.", at_least=1
    )
    offsets_retention_check_interval_ms: Long = option(
        10 * MINUTES, "How often stale offsets are looked for.", at_least=1
    )
    offsets_commit_timeout_ms: Int = option(5 * SECONDS, "How long a commit may take.", at_least=1)
    offsets_load_buffer_size: Int = option(
        5 * MiB, "How much of the offsets topic is read at a time when it is replayed.", at_least=1
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


@section
class TransactionOptions(Options):
    """
    Transactions and the topic that keeps them.
    """

    transaction_max_timeout_ms: Int = option(
        15 * MINUTES, "The longest transaction timeout that a producer may ask for.", at_least=1
    )
    transactional_id_expiration_ms: Int = option(
        7 * DAYS, "Forget a transactional id that was idle for this long.", at_least=1
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: Int = option(
        10 * SECONDS, "How often transactions past their timeout are looked for.", at_least=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: Int = option(
        60 * MINUTES, "How often idle transactional ids are looked for.", at_least=1
    )
    transaction_partition_verification_enable: Bool = option(
        True,
        "Whether a transactional append is checked against the coordinator.",
        update=NOW,
    )
    transaction_two_phase_commit_enable: Bool = option(
        False, "Whether producers may take part in two-phase commits."
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
        5 * MiB, "How much of __transaction_state is read at a time when replayed.", at_least=1
    )
