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
        ),
        "listener",
    ),
    "connections_accepted": _own(
        Family(
            "kafka_server_socket_server_metrics_connection_creation",
            COUNTER,
            "Connections accepted.",
            mbean=_SOCKETS + "connection-creation-total",
        ),
        "listener",
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

_BY_LISTENER: Final = ("listener",)
CONNECTION_RATE: Final = Family(
    "kafka_server_socket_server_metrics_connection_creation_rate",
    GAUGE,
    "Connections accepted in a second, between this scrape and one at least 30 s ago.",
    _BY_LISTENER,
    _SOCKETS + "connection-creation-rate",
)
NETWORK_IDLE: Final = Family(
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    GAUGE,
    "The share of the time for which the event loop had no work, over the same time.",
    mbean="kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
)
HANDLERS_IDLE: Final = Family(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    GAUGE,
    "The same: requests are handled by the event loop.",
    mbean="kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
)
DISK_READ: Final = Family(
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    GAUGE,
    "Bytes that the process has read from disks, on Linux.",
    mbean="kafka.server:type=KafkaServer,name=linux-disk-read-bytes",
)
DISK_WRITTEN: Final = Family(
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    GAUGE,
    "Bytes that the process has written to disks, on Linux.",
    mbean="kafka.server:type=KafkaServer,name=linux-disk-write-bytes",
)

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

PRODUCES: Final = Family(
    "kafka_server_brokertopicmetrics_totalproducerequests",
    COUNTER,
    "Batches that were to be appended.",
    ("topic",),
    _TOPIC_METRICS.format("TotalProduceRequestsPerSec"),
)
FAILED_PRODUCES: Final = Family(
    "kafka_server_brokertopicmetrics_failedproducerequests",
    COUNTER,
    "Those that failed, other than by their size, a checksum or a broken disk.",
    ("topic",),
    _TOPIC_METRICS.format("FailedProduceRequestsPerSec"),
)
FETCHES: Final = Family(
    "kafka_server_brokertopicmetrics_totalfetchrequests",
    COUNTER,
    "Partitions that fetches have asked for.",
    ("topic",),
    _TOPIC_METRICS.format("TotalFetchRequestsPerSec"),
)
FAILED_FETCHES: Final = Family(
    "kafka_server_brokertopicmetrics_failedfetchrequests",
    COUNTER,
    "Those that failed with an error that nobody expects.",
    ("topic",),
    _TOPIC_METRICS.format("FailedFetchRequestsPerSec"),
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
NEWEST_OFFSET: Final = Family(
    "kafka_topic_partition_current_offset",
    GAUGE,
    "The offset of the next record, under the name of kafka_exporter.",
    _PARTITION,
)
OLDEST_OFFSET: Final = Family(
    "kafka_topic_partition_oldest_offset",
    GAUGE,
    "The first offset of a log, under the name of kafka_exporter.",
    _PARTITION,
)
REPLICAS: Final = Family(
    "kafka_cluster_partition_replicascount",
    GAUGE,
    "Replicas of a partition: 1.",
    _PARTITION,
    "kafka.cluster:type=Partition,name=ReplicasCount,topic=*,partition=*",
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

_REPLICAS: Final = "kafka.server:type=ReplicaManager,name="
_CONTROLLER: Final = "kafka.controller:type=KafkaController,name="
_OF_A_CLUSTER: Final = "kafka.server:type=raft-metrics: "


def _of_replicas(name: str, kind: str, text: str) -> Family:
    suffix = "PerSec" if kind == COUNTER else ""
    return Family(
        f"kafka_server_replicamanager_{name.lower()}",
        kind,
        text,
        mbean=f"{_REPLICAS}{name}{suffix}",
    )


def _of_controller(name: str, text: str) -> Family:
    return Family(
        f"kafka_controller_kafkacontroller_{name.lower()}", GAUGE, text, mbean=_CONTROLLER + name
    )


def _of_raft(name: str, text: str, *labels: str) -> Family:
    return Family(
        f"kafka_server_raftmetrics_{name.replace('-', '_')}",
        GAUGE,
        text,
        labels,
        _OF_A_CLUSTER + name,
    )


def _of_topic(name: str, text: str, mbean: str = "") -> Family:
    return Family(name, GAUGE, text, ("topic",), mbean)


LEADERS: Final = _of_replicas("LeaderCount", GAUGE, "Partitions that this broker leads: all.")
AT_MIN_ISR: Final = _of_replicas(
    "AtMinIsrPartitionCount", GAUGE, "Partitions with the fewest replicas allowed: all."
)
GLOBAL_TOPICS: Final = _of_controller("GlobalTopicCount", "Topics.")
GLOBAL_PARTITIONS: Final = _of_controller("GlobalPartitionCount", "Partitions of all topics.")
GLOBAL_OFFLINE: Final = _of_controller(
    "OfflinePartitionsCount", "Partitions that could not be opened."
)
RAFT_LEADER: Final = _of_raft("current-leader", "The node that leads the metadata log: this one.")
RAFT_VOTE: Final = _of_raft("current-vote", "The node that this one has voted for: itself.")
RAFT_EPOCH: Final = _of_raft("current-epoch", "The epoch of the metadata log, one for each start.")
RAFT_HIGH_WATERMARK: Final = _of_raft(
    "high-watermark", "The offset behind the last committed record of the metadata log."
)
RAFT_END: Final = _of_raft("log-end-offset", "The offset of the next record of the metadata log.")
RAFT_STATE: Final = _of_raft(
    "current-state", "1, with the role of this node: leader.", "current_state"
)
BROKERS: Final = Family("kafka_brokers", GAUGE, "Brokers of the cluster: 1.")

ONE_NODE: Final[dict[Family, int]] = {
    _of_replicas("UnderReplicatedPartitions", GAUGE, "Partitions that lack replicas: 0."): 0,
    _of_replicas("UnderMinIsrPartitionCount", GAUGE, "Partitions with too few replicas: 0."): 0,
    _of_replicas("ReassigningPartitions", GAUGE, "Partitions that change their replicas: 0."): 0,
    _of_replicas("IsrShrinks", COUNTER, "Replicas that fell behind: 0."): 0,
    _of_replicas("IsrExpands", COUNTER, "Replicas that caught up: 0."): 0,
    _of_replicas("FailedIsrUpdates", COUNTER, "Changes of replicas that failed: 0."): 0,
    _of_controller("ActiveControllerCount", "Whether this node is the active controller: 1."): 1,
    _of_controller("ActiveBrokerCount", "Brokers that are not fenced: 1."): 1,
    _of_controller("FencedBrokerCount", "Brokers that are fenced: 0."): 0,
    _of_controller(
        "PreferredReplicaImbalanceCount", "Partitions that another replica should lead: 0."
    ): 0,
    Family(
        "kafka_controller_controllerstats_uncleanleaderelections",
        COUNTER,
        "Elections of a leader that lacked records: 0.",
        mbean="kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    ): 0,
    Family(
        "kafka_server_brokertopicmetrics_producemessageconversions",
        COUNTER,
        "Batches of old formats appended: 0, for none is supported.",
        mbean="kafka.server:type=BrokerTopicMetrics,name=ProduceMessageConversionsPerSec",
    ): 0,
    Family(
        "kafka_server_brokertopicmetrics_fetchmessageconversions",
        COUNTER,
        "Batches converted to old formats for consumers: 0.",
        mbean="kafka.server:type=BrokerTopicMetrics,name=FetchMessageConversionsPerSec",
    ): 0,
    BROKERS: 1,
}
"""
The families whose values are the same for every cluster of one node.
"""

TOPIC_PARTITIONS: Final = _of_topic("kafka_topic_partitions", "Partitions of a topic.")
_OF_PARTITIONS: Final = "kafka.cluster:type=Partition,name={},topic=*,partition=*"
WHOLE_TOPICS: Final = (
    TOPIC_PARTITIONS,
    _of_topic("kafka_topic_partition_replicas", "The replicas of all partitions of a topic."),
    _of_topic("kafka_topic_partition_in_sync_replica", "Those in sync: all."),
    _of_topic("kafka_topic_partition_leader_is_preferred", "Partitions with the right leader."),
    _of_topic(
        "kafka_cluster_partition_atminisr",
        "Partitions of a topic with the fewest replicas allowed: all.",
        _OF_PARTITIONS.format("AtMinIsr"),
    ),
)
"""
The families whose value is the number of partitions of a topic.
"""
SOUND_TOPICS: Final = (
    _of_topic(
        "kafka_topic_partition_under_replicated_partition", "Partitions lacking replicas: 0."
    ),
    _of_topic(
        "kafka_cluster_partition_underreplicated",
        "The same, under the name of Kafka.",
        _OF_PARTITIONS.format("UnderReplicated"),
    ),
    _of_topic(
        "kafka_cluster_partition_underminisr",
        "Partitions of a topic with too few replicas: 0.",
        _OF_PARTITIONS.format("UnderMinIsr"),
    ),
)
"""
The families whose value is 0 for every topic.
"""

FAMILIES: Final[tuple[Family, ...]] = (
    BROKER_STATE,
    BUILD,
    *(own.family for own in OWN.values()),
    CONNECTION_RATE,
    NETWORK_IDLE,
    HANDLERS_IDLE,
    DISK_READ,
    DISK_WRITTEN,
    LATENCY,
    MEMORY_LEFT,
    REQUESTS_QUEUED,
    OPEN_FILES,
    MOST_OPEN_FILES,
    OFFLINE_PARTITIONS,
    MESSAGES_IN,
    BYTES_IN,
    BYTES_OUT,
    PRODUCES,
    FAILED_PRODUCES,
    FETCHES,
    FAILED_FETCHES,
    LOG_SIZE,
    LOG_SEGMENTS,
    LOG_START,
    LOG_END,
    NEWEST_OFFSET,
    OLDEST_OFFSET,
    REPLICAS,
    *WHOLE_TOPICS,
    *SOUND_TOPICS,
    LEADERS,
    AT_MIN_ISR,
    GLOBAL_TOPICS,
    GLOBAL_PARTITIONS,
    GLOBAL_OFFLINE,
    *ONE_NODE,
    RAFT_LEADER,
    RAFT_VOTE,
    RAFT_EPOCH,
    RAFT_HIGH_WATERMARK,
    RAFT_END,
    RAFT_STATE,
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
