"""
Options of listeners, connections and requests.
"""

from __future__ import annotations

from barnabas.storage.config.option_values import Update
from barnabas.storage.config.options import (
    Int,
    Long,
    Names,
    Options,
    Text,
    option,
    section,
)
from barnabas.storage.units import DAYS, INT_MAX, MINUTES, SECONDS, KiB, MiB

PROTOCOL_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"


@section
class NetworkOptions(Options):
    """
    Where the broker listens, what it tells clients of it, and how much it takes from them.
    """

    listeners: Names = option(
        ("PLAINTEXT://127.0.0.1:9092",),
        "Where the broker listens, as NAME://HOST:PORT; an empty host means every interface.",
    )
    advertised_listeners: Names | None = option(
        None, "What clients are told to connect to; unless set, the listeners."
    )
    listener_security_protocol_map: Text = option(
        PROTOCOL_MAP, "The security protocol of each listener name, as NAME:PROTOCOL."
    )
    inter_broker_listener_name: Text | None = option(
        None, "The listener that Apache Kafka's brokers would use among themselves."
    )
    socket_request_max_bytes: Int = option(
        100 * MiB, "The largest request taken; a larger one closes its connection.", at_least=1
    )
    socket_send_buffer_bytes: Int = option(
        100 * KiB,
        "SO_SNDBUF of client sockets, until one gets many records; -1 leaves the system's default.",
    )
    socket_receive_buffer_bytes: Int = option(
        100 * KiB,
        "SO_RCVBUF of client sockets, until one sends a larger request; -1 leaves the system's "
        "default.",
    )
    socket_listen_backlog_size: Int = option(
        50, "How many connections may wait to be accepted.", at_least=1
    )
    queued_max_requests: Int = option(
        500,
        "How many requests may be taken, over all connections, before the earlier ones of their "
        "connection are answered.",
        at_least=1,
    )
    queued_max_request_bytes: Long = option(
        -1,
        "The memory of requests that are not answered and of answers that are not read; -1 means "
        "a 64th of the machine's, at most 512 MiB, but never less than socket.request.max.bytes.",
    )
    max_connections: Int = option(
        INT_MAX,
        "How many connections the broker serves; further ones wait until another one ends.",
        at_least=0,
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip: Int = option(
        INT_MAX,
        "How many connections one address may hold.",
        at_least=0,
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides: Text = option(
        "",
        "Exceptions to max.connections.per.ip, as HOST:COUNT separated by commas.",
        update=Update.CLUSTER_WIDE,
    )
    connections_max_idle_ms: Long = option(
        10 * MINUTES, "Close a connection that has been silent for this long; -1 never does."
    )
    fetch_max_bytes: Int = option(
        55 * MiB, "The most bytes of records in one fetch response.", at_least=1024
    )
    request_timeout_ms: Int = option(
        30 * SECONDS, "How long the broker waits for its own requests to be answered."
    )
    max_request_partition_size_limit: Int = option(
        2000, "How many partitions one DescribeTopicPartitions response holds.", at_least=1
    )
    max_incremental_fetch_session_cache_slots: Int = option(
        1000, "How many incremental fetch sessions are kept.", at_least=0
    )


@section
class ClusterOptions(Options):
    """
    Who this node is, and the log of the cluster's metadata.
    """

    node_id: Int = option(1, "The id of this node.", at_least=0)
    broker_id: Int = option(-1, "The older name of node.id; -1 means that it is not used.")
    broker_rack: Text | None = option(None, "The rack that this node reports to clients.")
    process_roles: Names = option(
        ("broker", "controller"),
        "The roles of this node; it always plays both.",
        one_of=("broker", "controller"),
    )
    controller_listener_names: Names = option(
        ("CONTROLLER",),
        "Listeners of Apache Kafka's controllers; they are not opened, for there is one node.",
    )
    controller_quorum_voters: Names = option(
        (), "The controllers of Apache Kafka, as ID@HOST:PORT; recorded in quorum-state."
    )
    metadata_log_dir: Text | None = option(
        None, "Where the metadata log lies; unless set, in the first log directory."
    )
    metadata_log_segment_bytes: Int = option(
        1024 * MiB, "Roll a segment of the metadata log at this size.", at_least=8 * MiB
    )
    metadata_log_segment_ms: Long = option(7 * DAYS, "Roll a segment of the metadata log after.")
    metadata_log_max_record_bytes_between_snapshots: Long = option(
        20 * MiB, "Write a metadata snapshot once this many bytes came after the last.", at_least=1
    )
    metadata_log_max_snapshot_interval_ms: Long = option(
        60 * MINUTES, "Write a metadata snapshot at least this often; 0 never does.", at_least=0
    )
    metadata_max_retention_bytes: Long = option(
        100 * MiB, "Keep at most this much of metadata log and snapshots behind the newest."
    )
    metadata_max_retention_ms: Long = option(
        7 * DAYS, "Keep metadata log and snapshots behind the newest for this long."
    )
    metadata_max_idle_interval_ms: Int = option(
        0,
        "Write an empty record when the metadata log was idle for this long; 0 never does.",
        at_least=0,
    )
    internal_metadata_log_segment_bytes: Int | None = option(
        None, "Roll a segment of the metadata log at this size, without a minimum.", internal=True
    )
