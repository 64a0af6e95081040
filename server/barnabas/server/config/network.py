"""
Options of listeners, connections and requests.
"""

from __future__ import annotations

from typing import Final

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

PROVIDERS: Final = "config.providers"
"""The option whose parameters are options with names of their own (KIP-297)."""
PROTOCOL_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"


@section
class NetworkOptions(Options):
    """
    Listeners, and limits for connections and requests.
    """

    listeners: Names = option(
        ("PLAINTEXT://127.0.0.1:9092",),
        "The addresses to listen on, as NAME://HOST:PORT; an empty host means every interface.",
    )
    advertised_listeners: Names | None = option(
        None, "The addresses that clients connect to; by default the listeners."
    )
    listener_security_protocol_map: Text = option(
        PROTOCOL_MAP, "The security protocol of each listener name, as NAME:PROTOCOL."
    )
    inter_broker_listener_name: Text | None = option(
        None, "The listener for connections between brokers of Apache Kafka."
    )
    socket_request_max_bytes: Int = option(
        100 * MiB, "The largest request; a larger one closes its connection.", at_least=1
    )
    socket_send_buffer_bytes: Int = option(
        100 * KiB,
        "SO_SNDBUF of a client's socket, raised for large responses; -1 is the system's default.",
    )
    socket_receive_buffer_bytes: Int = option(
        100 * KiB,
        "SO_RCVBUF of a client's socket, raised for large requests; -1 is the system's default.",
    )
    socket_listen_backlog_size: Int = option(
        50, "The most connections that wait to be accepted.", at_least=1
    )
    queued_max_requests: Int = option(
        500,
        "The most requests of all connections that are read before earlier requests of the same "
        "connection are answered.",
        at_least=1,
    )
    queued_max_request_bytes: Long = option(
        -1,
        "The memory for requests in progress and for responses that are not read; -1 is "
        "a 64th of the machine's, at most 512 MiB and at least socket.request.max.bytes.",
    )
    max_connections: Int = option(
        INT_MAX,
        "The most connections of the broker, and of a listener that has a limit of its own; "
        "further ones wait until another one closes.",
        at_least=0,
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip: Int = option(
        INT_MAX,
        "The most connections of one address.",
        at_least=0,
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides: Text = option(
        "",
        "Exceptions to max.connections.per.ip, as HOST:COUNT separated by commas.",
        update=Update.CLUSTER_WIDE,
    )
    max_connection_creation_rate: Int = option(
        INT_MAX,
        "The most new connections in a second, of the broker and of each listener, which may have "
        "another one of its own; further ones wait, unread.",
        at_least=0,
        update=Update.CLUSTER_WIDE,
    )
    connections_max_idle_ms: Long = option(
        10 * MINUTES, "Close a connection that is idle for this long; -1 never does."
    )
    fetch_max_bytes: Int = option(
        55 * MiB, "The most bytes of records in one fetch response.", at_least=1024
    )
    request_timeout_ms: Int = option(30 * SECONDS, "The timeout of the broker's own requests.")
    max_request_partition_size_limit: Int = option(
        2000, "The most partitions in a DescribeTopicPartitions response.", at_least=1
    )
    max_incremental_fetch_session_cache_slots: Int = option(
        1000, "The most incremental fetch sessions.", at_least=0
    )


@section
class ClusterOptions(Options):
    """
    The identity of the node, and the metadata log of the cluster.
    """

    node_id: Int = option(1, "The id of this node.", at_least=0)
    broker_id: Int = option(-1, "The older name of node.id; -1 if it is not used.")
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
    config_providers: Names = option(
        (),
        "The names of providers, from which values of options are read at the start: "
        "${name:path:key}. One that is stored has no effect.",
        update=Update.CLUSTER_WIDE,
    )
    metadata_log_dir: Text | None = option(
        None, "The directory of the metadata log; by default the first log directory."
    )
    metadata_log_segment_bytes: Int = option(
        1024 * MiB, "The size at which a segment of the metadata log is rolled.", at_least=8 * MiB
    )
    metadata_log_segment_ms: Long = option(
        7 * DAYS, "The age at which a segment of the metadata log is rolled."
    )
    metadata_log_max_record_bytes_between_snapshots: Long = option(
        20 * MiB,
        "The bytes after the last metadata snapshot that make the next one due.",
        at_least=1,
    )
    metadata_log_max_snapshot_interval_ms: Long = option(
        60 * MINUTES, "The longest time between metadata snapshots; 0 means no limit.", at_least=0
    )
    metadata_max_retention_bytes: Long = option(
        100 * MiB, "The most bytes of metadata log and snapshots before the newest one."
    )
    metadata_max_retention_ms: Long = option(
        7 * DAYS, "The longest age of metadata log and snapshots before the newest one."
    )
    metadata_max_idle_interval_ms: Int = option(
        0,
        "The interval of empty records in an idle metadata log; 0 writes none.",
        at_least=0,
    )
    internal_metadata_log_segment_bytes: Int | None = option(
        None,
        "As metadata.log.segment.bytes, for tests.",
        at_least=1000,
        internal=True,
    )
