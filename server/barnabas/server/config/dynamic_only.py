"""
Options that a running Apache Kafka takes, and that have no effect here.

At the start they are logged and ignored. If a client stores one, its type and range are checked as
in Apache Kafka, which may open the directory later.
"""

from __future__ import annotations

from barnabas.storage.config.option_values import Update
from barnabas.storage.config.options import (
    Bool,
    Int,
    Long,
    Options,
    option,
    section,
    table,
)
from barnabas.storage.units import LONG_MAX, GiB, KiB, MiB

NOW = Update.CLUSTER_WIDE


@section
class ThreadOptions(Options):
    """
    Threads and queues, which this broker organises differently.
    """

    num_io_threads: Int = option(8, "Threads that handle requests.", at_least=1, update=NOW)
    num_network_threads: Int = option(
        3, "Threads that read requests of a listener.", at_least=1, update=NOW
    )
    num_replica_fetchers: Int = option(
        1, "Threads that replicate from another broker.", at_least=1, update=NOW
    )


@section
class ReplicationOptions(Options):
    """
    Replication between brokers.
    """

    # These have no default in KafkaConfig, and so none in Kafka's DescribeConfigs.
    leader_replication_throttled_rate: Long | None = option(
        None, "Bytes a second of throttled replication on the leader.", at_least=0, update=NOW
    )
    follower_replication_throttled_rate: Long | None = option(
        None, "Bytes a second of throttled replication on the follower.", at_least=0, update=NOW
    )
    replica_alter_log_dirs_io_max_bytes_per_second: Long | None = option(
        None, "Bytes a second of replicas that move to another directory.", at_least=0, update=NOW
    )
    follower_fetch_last_tiered_offset_enable: Bool = option(
        False, "Whether a follower starts at the end of remote storage.", update=NOW
    )


@section
class CoordinatorOptions(Options):
    """
    Coordinators of consumer, share and streams groups.
    """

    group_coordinator_cached_buffer_max_bytes: Int = option(
        MiB + 12, "The largest buffer that is reused for appends.", at_least=512 * KiB, update=NOW
    )
    share_coordinator_cached_buffer_max_bytes: Int = option(
        MiB + 12, "The largest buffer that is reused for appends.", at_least=512 * KiB, update=NOW
    )


@section
class RemoteStorageOptions(Options):
    """
    Tiered storage.
    """

    remote_fetch_max_wait_ms: Int = option(
        500, "The timeout of a fetch from remote storage.", at_least=1, update=NOW
    )
    remote_list_offsets_request_timeout_ms: Long = option(
        30_000, "The timeout of ListOffsets for remote storage.", at_least=1, update=NOW
    )
    remote_log_index_file_cache_total_size_bytes: Long = option(
        GiB, "The disk space for indexes of remote segments.", at_least=1, update=NOW
    )
    remote_log_manager_copier_thread_pool_size: Int = option(
        10, "Threads that copy to remote storage.", at_least=1, update=NOW
    )
    remote_log_manager_copy_max_bytes_per_second: Long = option(
        LONG_MAX, "Bytes a second to remote storage.", at_least=1, update=NOW
    )
    remote_log_manager_expiration_thread_pool_size: Int = option(
        10, "Threads that delete from remote storage.", at_least=1, update=NOW
    )
    remote_log_manager_fetch_max_bytes_per_second: Long = option(
        LONG_MAX, "Bytes a second from remote storage.", at_least=1, update=NOW
    )
    remote_log_manager_follower_thread_pool_size: Int = option(
        2, "Threads of followers for remote storage.", at_least=1, update=NOW
    )
    remote_log_reader_threads: Int = option(
        10, "Threads that read from remote storage.", at_least=1, update=NOW
    )


@table
class DynamicOnlyOptions(
    ThreadOptions, ReplicationOptions, CoordinatorOptions, RemoteStorageOptions
):
    """
    All of these options. Their values are described, and have no effect.
    """
