"""
The families of ``/metrics``.

Where Apache Kafka has the same metric, the name is the one that Prometheus' JMX exporter gives it
with its rules for Kafka (``kafka_<domain>_<type>_<name>`` in lower case, ``PerSec`` becomes
``_total``); a metric of a listener has the name that Strimzi's rules give it. The lag of groups,
which no broker of Kafka knows, is named as by kafka_exporter. Everything else begins with
``barnabas_``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"


class Family(NamedTuple):
    """
    Samples of one name.
    """

    name: str
    """Of a counter without ``_total``."""
    kind: str
    help: str
    labels: tuple[str, ...] = ()
    mbean: str = ""
    """What Kafka calls it; empty if it has none."""

    @property
    def sample(self) -> str:
        """
        The name of its samples, without the suffixes of a histogram.
        """
        return f"{self.name}_total" if self.kind == COUNTER else self.name


class Own(NamedTuple):
    """
    The family in which a metric of ``barnabas.server.metrics`` appears.
    """

    family: Family
    labels: tuple[str, ...] = ()
    """The names that its labels have there."""
    fixed: tuple[tuple[str, str], ...] = ()
    """Labels that all its samples have."""


def _own(family: Family, *labels: str, **fixed: str) -> Own:
    return Own(family._replace(labels=(*labels, *fixed)), labels, tuple(fixed.items()))


_CLEANER: Final = "kafka.log:type=LogCleaner,name="
_CLEANER_MANAGER: Final = "kafka.log:type=LogCleanerManager,name="
_SESSIONS: Final = "kafka.server:type=FetchSessionCache,name="
_SOCKETS: Final = "kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*: "

OWN: Final[dict[str, Own]] = {
    "requests": _own(
        Family(
            "kafka_network_requestmetrics_requests",
            COUNTER,
            "Requests received.",
            mbean="kafka.network:type=RequestMetrics,name=RequestsPerSec,request=*",
        ),
        "request",
    ),
    "errors": _own(
        Family(
            "kafka_network_requestmetrics_errors",
            COUNTER,
            "Errors in responses, of requests or of single partitions.",
            mbean="kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=*,error=*",
        ),
        "request",
        "error",
    ),
    "network_bytes_in": _own(
        Family(
            "kafka_server_socket_server_metrics_incoming_byte",
            COUNTER,
            "Bytes received from clients.",
            mbean=_SOCKETS + "incoming-byte-total",
        )
    ),
    "network_bytes_out": _own(
        Family(
            "kafka_server_socket_server_metrics_outgoing_byte",
            COUNTER,
            "Bytes sent to clients.",
            mbean=_SOCKETS + "outgoing-byte-total",
        )
    ),
    "connections": _own(
        Family(
            "kafka_server_socket_server_metrics_connection_count",
            GAUGE,
            "Connections that are open.",
            mbean=_SOCKETS + "connection-count",
        )
    ),
    "connections_accepted": _own(
        Family(
            "kafka_server_socket_server_metrics_connection_creation",
            COUNTER,
            "Connections accepted.",
            mbean=_SOCKETS + "connection-creation-total",
        )
    ),
    "connections_refused": _own(
        Family(
            "barnabas_connections_refused",
            COUNTER,
            "Connections that were closed at once, since there were too many.",
        )
    ),
    "authentications": _own(
        Family(
            "kafka_server_socket_server_metrics_successful_authentication",
            COUNTER,
            "Clients that have authenticated.",
            mbean=_SOCKETS + "successful-authentication-total",
        ),
        "listener",
    ),
    "authentications_failed": _own(
        Family(
            "kafka_server_socket_server_metrics_failed_authentication",
            COUNTER,
            "Clients that failed to authenticate.",
            mbean=_SOCKETS + "failed-authentication-total",
        ),
        "listener",
    ),
    "authorizations_denied": _own(
        Family(
            "barnabas_authorizations_denied",
            COUNTER,
            "What clients were not allowed to do.",
        ),
        "resource",
        "operation",
    ),
    "certificate_seconds_left": _own(
        Family(
            "barnabas_certificate_left_seconds",
            GAUGE,
            "How long the certificate of a listener is valid.",
        ),
        "listener",
    ),
    "requests_throttled": _own(
        Family(
            "barnabas_requests_throttled",
            COUNTER,
            "Requests that came over a quota.",
        ),
        "quota",
    ),
    "connections_throttled": _own(
        Family(
            "barnabas_connections_throttled",
            COUNTER,
            "Connections that came over a limit of their rate.",
        ),
        "quota",
    ),
    "throttle_time_ms": _own(
        Family(
            "barnabas_throttle_time_milliseconds",
            COUNTER,
            "How long clients over a quota had to wait.",
        ),
        "quota",
    ),
    "request_memory_bytes": _own(
        Family(
            "kafka_network_socketserver_memorypoolused",
            GAUGE,
            "Bytes of requests that are not answered, and of answers that are not read.",
            mbean="kafka.network:type=SocketServer,name=MemoryPoolUsed",
        )
    ),
    "fetch_sessions": _own(
        Family(
            "kafka_server_fetchsessioncache_numincrementalfetchsessions",
            GAUGE,
            "Fetch sessions.",
            mbean=_SESSIONS + "NumIncrementalFetchSessions",
        )
    ),
    "fetch_session_partitions": _own(
        Family(
            "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
            GAUGE,
            "Partitions in fetch sessions.",
            mbean=_SESSIONS + "NumIncrementalFetchPartitionsCached",
        )
    ),
    "fetch_session_evictions": _own(
        Family(
            "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
            COUNTER,
            "Fetch sessions that lost their place to others.",
            mbean=_SESSIONS + "IncrementalFetchSessionEvictionsPerSec",
        )
    ),
    "share_sessions": _own(Family("barnabas_share_sessions", GAUGE, "Share sessions.")),
    "share_session_partitions": _own(
        Family("barnabas_share_session_partitions", GAUGE, "Partitions in share sessions.")
    ),
    "share_partitions": _own(
        Family("barnabas_share_partitions", GAUGE, "Share-partitions that are served.")
    ),
    "fetches_waiting": _own(
        Family(
            "kafka_server_delayedoperationpurgatory_purgatorysize",
            GAUGE,
            "Fetches that wait for bytes.",
            mbean="kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,"
            "delayedOperation=Fetch",
        ),
        delayedOperation="Fetch",
    ),
    "partitions": _own(
        Family(
            "kafka_server_replicamanager_partitioncount",
            GAUGE,
            "Partitions that are served.",
            mbean="kafka.server:type=ReplicaManager,name=PartitionCount",
        )
    ),
    "log_directories_offline": _own(
        Family(
            "kafka_log_logmanager_offlinelogdirectorycount",
            GAUGE,
            "Log directories that have failed.",
            mbean="kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
        )
    ),
    "log_cleaner_recopy_percent": _own(
        Family(
            "kafka_log_logcleaner_cleaner_recopy_percent",
            GAUGE,
            "Percent of the bytes read in the last cleanings that were written again.",
            mbean=_CLEANER + "cleaner-recopy-percent",
        )
    ),
    "log_cleaner_max_clean_time_secs": _own(
        Family(
            "kafka_log_logcleaner_max_clean_time_secs",
            GAUGE,
            "The longest of the last cleanings of each thread, in seconds.",
            mbean=_CLEANER + "max-clean-time-secs",
        )
    ),
    "log_cleaner_max_buffer_utilization_percent": _own(
        Family(
            "kafka_log_logcleaner_max_buffer_utilization_percent",
            GAUGE,
            "The highest load of a table of keys in the last cleanings.",
            mbean=_CLEANER + "max-buffer-utilization-percent",
        )
    ),
    "log_cleaner_max_compaction_delay_secs": _own(
        Family(
            "kafka_log_logcleaner_max_compaction_delay_secs",
            GAUGE,
            "The seconds past max.compaction.lag.ms of the log that was last selected.",
            mbean=_CLEANER + "max-compaction-delay-secs",
        )
    ),
    "log_cleaner_dead_thread_count": _own(
        Family(
            "kafka_log_logcleaner_deadthreadcount",
            GAUGE,
            "Cleaner threads that have ended because of an error.",
            mbean=_CLEANER + "DeadThreadCount",
        )
    ),
    "log_cleaner_max_dirty_percent": _own(
        Family(
            "kafka_log_logcleanermanager_max_dirty_percent",
            GAUGE,
            "The highest dirty ratio of a log at the last check.",
            mbean=_CLEANER_MANAGER + "max-dirty-percent",
        )
    ),
    "log_cleaner_time_since_last_run_ms": _own(
        Family(
            "kafka_log_logcleanermanager_time_since_last_run_ms",
            GAUGE,
            "The time since the last check of the cleaner.",
            mbean=_CLEANER_MANAGER + "time-since-last-run-ms",
        )
    ),
    "log_cleaner_uncleanable_partitions_count": _own(
        Family(
            "kafka_log_logcleanermanager_uncleanable_partitions_count",
            GAUGE,
            "Partitions whose cleaning has failed: they wait for the next start.",
            mbean=_CLEANER_MANAGER + "uncleanable-partitions-count,logDirectory=*",
        ),
        "logDirectory",
    ),
    "log_cleaner_uncleanable_bytes": _own(
        Family(
            "kafka_log_logcleanermanager_uncleanable_bytes",
            GAUGE,
            "The cleanable bytes of these partitions.",
            mbean=_CLEANER_MANAGER + "uncleanable-bytes,logDirectory=*",
        ),
        "logDirectory",
    ),
}
"""
By the name in ``barnabas.server.metrics``.
"""

BROKER_STATE: Final = Family(
    "kafka_server_kafkaserver_brokerstate",
    GAUGE,
    "1 starting, 2 recovering logs, 3 serving, 6 and 7 stopping.",
    mbean="kafka.server:type=KafkaServer,name=BrokerState",
)
BUILD: Final = Family("barnabas_build", GAUGE, "1, with the version of the broker.", ("version",))
LATENCY: Final = Family(
    "kafka_network_requestmetrics_totaltimems",
    HISTOGRAM,
    "Milliseconds from a request to its answer, with the waits for records and fsyncs.",
    ("request",),
    "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=*",
)
MEMORY_LEFT: Final = Family(
    "kafka_network_socketserver_memorypoolavailable",
    GAUGE,
    "Bytes that requests and answers may still hold.",
    mbean="kafka.network:type=SocketServer,name=MemoryPoolAvailable",
)
REQUESTS_QUEUED: Final = Family(
    "kafka_network_requestchannel_requestqueuesize",
    GAUGE,
    "Requests that stand behind an unanswered one of their connection.",
    mbean="kafka.network:type=RequestChannel,name=RequestQueueSize",
)
OPEN_FILES: Final = Family("barnabas_log_files_open", GAUGE, "Files of logs that are open.")
MOST_OPEN_FILES: Final = Family(
    "barnabas_log_files_max", GAUGE, "The most files of logs that are open at a time."
)

_TOPIC_METRICS: Final = "kafka.server:type=BrokerTopicMetrics,name={}, and with topic=*"
MESSAGES_IN: Final = Family(
    "kafka_server_brokertopicmetrics_messagesin",
    COUNTER,
    "Records appended.",
    ("topic",),
    _TOPIC_METRICS.format("MessagesInPerSec"),
)
BYTES_IN: Final = Family(
    "kafka_server_brokertopicmetrics_bytesin",
    COUNTER,
    "Bytes of batches appended.",
    ("topic",),
    _TOPIC_METRICS.format("BytesInPerSec"),
)
BYTES_OUT: Final = Family(
    "kafka_server_brokertopicmetrics_bytesout",
    COUNTER,
    "Bytes of batches sent to consumers.",
    ("topic",),
    _TOPIC_METRICS.format("BytesOutPerSec"),
)

_PARTITION: Final = ("topic", "partition")
_LOG: Final = "kafka.log:type=Log,name={},topic=*,partition=*"
LOG_SIZE: Final = Family(
    "kafka_log_log_size", GAUGE, "Bytes of the segments of a log.", _PARTITION, _LOG.format("Size")
)
LOG_SEGMENTS: Final = Family(
    "kafka_log_log_numlogsegments",
    GAUGE,
    "Segments of a log.",
    _PARTITION,
    _LOG.format("NumLogSegments"),
)
LOG_START: Final = Family(
    "kafka_log_log_logstartoffset",
    GAUGE,
    "The first offset of a log.",
    _PARTITION,
    _LOG.format("LogStartOffset"),
)
LOG_END: Final = Family(
    "kafka_log_log_logendoffset",
    GAUGE,
    "The offset of the next record.",
    _PARTITION,
    _LOG.format("LogEndOffset"),
)
OFFLINE_PARTITIONS: Final = Family(
    "kafka_server_replicamanager_offlinereplicacount",
    GAUGE,
    "Partitions that could not be opened.",
    mbean="kafka.server:type=ReplicaManager,name=OfflineReplicaCount",
)
RETENTION: Final = Family(
    "barnabas_retention_deleted_segments", COUNTER, "Segments that retention has deleted."
)
CLEANINGS: Final = Family("barnabas_log_cleaner_cleanings", COUNTER, "Logs compacted.")
CLEANER_READ: Final = Family(
    "barnabas_log_cleaner_read_bytes", COUNTER, "Bytes that the cleaner has read."
)
CLEANER_WRITTEN: Final = Family(
    "barnabas_log_cleaner_written_bytes", COUNTER, "Bytes that the cleaner has written again."
)

_GROUPS: Final = "kafka.coordinator.group:type=GroupMetadataManager,name="
GROUPS: Final = Family(
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    GAUGE,
    "Groups of all protocols.",
    mbean=_GROUPS + "NumGroups",
)
OFFSETS: Final = Family(
    "kafka_coordinator_group_groupmetadatamanager_numoffsets",
    GAUGE,
    "Committed offsets.",
    mbean=_GROUPS + "NumOffsets",
)
LOADING: Final = Family(
    "barnabas_coordinator_partitions_loading",
    GAUGE,
    "Partitions of coordinators that are not replayed yet.",
)
_GROUP_LABELS: Final = ("consumergroup", "topic", "partition")
LAG: Final = Family(
    "kafka_consumergroup_lag",
    GAUGE,
    "Records between the committed offset of a group and the high watermark.",
    _GROUP_LABELS,
)
LAG_BYTES: Final = Family(
    "barnabas_consumergroup_lag_bytes",
    GAUGE,
    "About how many bytes these records have: segments count whole, and a part in proportion.",
    _GROUP_LABELS,
)
LAG_SECONDS: Final = Family(
    "barnabas_consumergroup_lag_seconds",
    GAUGE,
    "The age of the batch with the first of these records, if the page cache has it.",
    _GROUP_LABELS,
)
GROUP_OFFSET: Final = Family(
    "kafka_consumergroup_current_offset",
    GAUGE,
    "The committed offset of a group.",
    _GROUP_LABELS,
)
FORECAST_BYTES: Final = Family(
    "barnabas_consumergroup_forecast_unread_bytes",
    GAUGE,
    "Bytes of the log that retention will delete before the group has read them; 0 for none.",
    _GROUP_LABELS,
)
FORECAST_RECORDS: Final = Family(
    "barnabas_consumergroup_forecast_unread_records",
    GAUGE,
    "Their records. Share groups have these forecasts as well.",
    _GROUP_LABELS,
)
FORECAST_SECONDS: Final = Family(
    "barnabas_consumergroup_forecast_unread_seconds",
    GAUGE,
    "Seconds until that begins, where there are any.",
    _GROUP_LABELS,
)

PROCESS: Final = (
    Family("process_virtual_memory_bytes", GAUGE, "Virtual memory size in bytes."),
    Family("process_resident_memory_bytes", GAUGE, "Resident memory size in bytes."),
    Family("process_start_time_seconds", GAUGE, "When the process began, in seconds since 1970."),
    Family("process_cpu_seconds", COUNTER, "Seconds of processor time, user and system."),
    Family("process_open_fds", GAUGE, "Open file descriptors."),
    Family("process_max_fds", GAUGE, "The most file descriptors that the system allows."),
)

FAMILIES: Final[tuple[Family, ...]] = (
    BROKER_STATE,
    BUILD,
    *(own.family for own in OWN.values()),
    LATENCY,
    MEMORY_LEFT,
    REQUESTS_QUEUED,
    OPEN_FILES,
    MOST_OPEN_FILES,
    OFFLINE_PARTITIONS,
    MESSAGES_IN,
    BYTES_IN,
    BYTES_OUT,
    LOG_SIZE,
    LOG_SEGMENTS,
    LOG_START,
    LOG_END,
    RETENTION,
    CLEANINGS,
    CLEANER_READ,
    CLEANER_WRITTEN,
    LOADING,
    GROUPS,
    OFFSETS,
    LAG,
    LAG_BYTES,
    LAG_SECONDS,
    GROUP_OFFSET,
    FORECAST_BYTES,
    FORECAST_RECORDS,
    FORECAST_SECONDS,
    *PROCESS,
)
"""
All of them, in the order of the answer.
"""
