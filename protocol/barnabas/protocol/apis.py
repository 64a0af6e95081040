"""
The APIs of the wire: their keys and versions.

They are apart from their messages because a broker lists all APIs and loads the messages of a few:
``messages`` imports the module of an API, which has its name, on first use.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.codec.schema import Api

PRODUCE: Final = Api(0, versions=range(3, 14), flexible=9, also_advertised=range(3))
FETCH: Final = Api(1, versions=range(4, 19), flexible=12)
LIST_OFFSETS: Final = Api(2, versions=range(1, 12), flexible=6)
METADATA: Final = Api(3, versions=range(14), flexible=9)
OFFSET_COMMIT: Final = Api(8, versions=range(2, 11), flexible=8)
OFFSET_FETCH: Final = Api(9, versions=range(1, 11), flexible=6)
FIND_COORDINATOR: Final = Api(10, versions=range(7), flexible=3)
JOIN_GROUP: Final = Api(11, versions=range(10), flexible=6)
HEARTBEAT: Final = Api(12, versions=range(5), flexible=4)
LEAVE_GROUP: Final = Api(13, versions=range(6), flexible=4)
SYNC_GROUP: Final = Api(14, versions=range(6), flexible=4)
DESCRIBE_GROUPS: Final = Api(15, versions=range(7), flexible=5)
LIST_GROUPS: Final = Api(16, versions=range(6), flexible=3)
SASL_HANDSHAKE: Final = Api(17, versions=range(2))
API_VERSIONS: Final = Api(18, versions=range(5), flexible=3)
CREATE_TOPICS: Final = Api(19, versions=range(2, 8), flexible=5)
DELETE_TOPICS: Final = Api(20, versions=range(1, 7), flexible=4)
DELETE_RECORDS: Final = Api(21, versions=range(3), flexible=2)
# Version 6 (KIP-939) is unstable in Kafka 4.3, and brokers do not list it.
INIT_PRODUCER_ID: Final = Api(22, versions=range(6), flexible=2)
OFFSET_FOR_LEADER_EPOCH: Final = Api(23, versions=range(2, 5), flexible=4)
ADD_PARTITIONS_TO_TXN: Final = Api(24, versions=range(6), flexible=3)
ADD_OFFSETS_TO_TXN: Final = Api(25, versions=range(5), flexible=3)
END_TXN: Final = Api(26, versions=range(6), flexible=3)
WRITE_TXN_MARKERS: Final = Api(27, versions=range(1, 3), flexible=1)
TXN_OFFSET_COMMIT: Final = Api(28, versions=range(6), flexible=3)
DESCRIBE_ACLS: Final = Api(29, versions=range(1, 4), flexible=2)
CREATE_ACLS: Final = Api(30, versions=range(1, 4), flexible=2)
DELETE_ACLS: Final = Api(31, versions=range(1, 4), flexible=2)
DESCRIBE_CONFIGS: Final = Api(32, versions=range(1, 5), flexible=4)
ALTER_CONFIGS: Final = Api(33, versions=range(3), flexible=2)
ALTER_REPLICA_LOG_DIRS: Final = Api(34, versions=range(1, 3), flexible=2)
DESCRIBE_LOG_DIRS: Final = Api(35, versions=range(1, 6), flexible=2)
SASL_AUTHENTICATE: Final = Api(36, versions=range(3), flexible=2)
CREATE_PARTITIONS: Final = Api(37, versions=range(4), flexible=2)
CREATE_DELEGATION_TOKEN: Final = Api(38, versions=range(1, 4), flexible=2)
RENEW_DELEGATION_TOKEN: Final = Api(39, versions=range(1, 3), flexible=2)
EXPIRE_DELEGATION_TOKEN: Final = Api(40, versions=range(1, 3), flexible=2)
DESCRIBE_DELEGATION_TOKEN: Final = Api(41, versions=range(1, 4), flexible=2)
DELETE_GROUPS: Final = Api(42, versions=range(3), flexible=2)
ELECT_LEADERS: Final = Api(43, versions=range(3), flexible=2)
INCREMENTAL_ALTER_CONFIGS: Final = Api(44, versions=range(2), flexible=1)
ALTER_PARTITION_REASSIGNMENTS: Final = Api(45, versions=range(2), flexible=0)
LIST_PARTITION_REASSIGNMENTS: Final = Api(46, versions=range(1), flexible=0)
OFFSET_DELETE: Final = Api(47, versions=range(1))
DESCRIBE_CLIENT_QUOTAS: Final = Api(48, versions=range(2), flexible=1)
ALTER_CLIENT_QUOTAS: Final = Api(49, versions=range(2), flexible=1)
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = Api(50, versions=range(1), flexible=0)
ALTER_USER_SCRAM_CREDENTIALS: Final = Api(51, versions=range(1), flexible=0)
DESCRIBE_QUORUM: Final = Api(55, versions=range(3), flexible=0)
UPDATE_FEATURES: Final = Api(57, versions=range(3), flexible=0)
DESCRIBE_CLUSTER: Final = Api(60, versions=range(3), flexible=0)
DESCRIBE_PRODUCERS: Final = Api(61, versions=range(1), flexible=0)
UNREGISTER_BROKER: Final = Api(64, versions=range(1), flexible=0)
DESCRIBE_TRANSACTIONS: Final = Api(65, versions=range(1), flexible=0)
LIST_TRANSACTIONS: Final = Api(66, versions=range(3), flexible=0)
CONSUMER_GROUP_HEARTBEAT: Final = Api(68, versions=range(2), flexible=0)
CONSUMER_GROUP_DESCRIBE: Final = Api(69, versions=range(2), flexible=0)
# Kafka answers these without a receiver of metrics, too, but lists them only with one (KIP-714).
GET_TELEMETRY_SUBSCRIPTIONS: Final = Api(71, versions=range(1), flexible=0, is_listed=False)
PUSH_TELEMETRY: Final = Api(72, versions=range(1), flexible=0, is_listed=False)
LIST_CONFIG_RESOURCES: Final = Api(74, versions=range(2), flexible=0)
DESCRIBE_TOPIC_PARTITIONS: Final = Api(75, versions=range(1), flexible=0)
SHARE_GROUP_HEARTBEAT: Final = Api(76, versions=range(1, 2), flexible=0)
SHARE_GROUP_DESCRIBE: Final = Api(77, versions=range(1, 2), flexible=0)
SHARE_FETCH: Final = Api(78, versions=range(1, 3), flexible=0)
SHARE_ACKNOWLEDGE: Final = Api(79, versions=range(1, 3), flexible=0)
INITIALIZE_SHARE_GROUP_STATE: Final = Api(83, versions=range(1), flexible=0)
READ_SHARE_GROUP_STATE: Final = Api(84, versions=range(1), flexible=0)
WRITE_SHARE_GROUP_STATE: Final = Api(85, versions=range(2), flexible=0)
DELETE_SHARE_GROUP_STATE: Final = Api(86, versions=range(1), flexible=0)
READ_SHARE_GROUP_STATE_SUMMARY: Final = Api(87, versions=range(2), flexible=0)
STREAMS_GROUP_HEARTBEAT: Final = Api(88, versions=range(1), flexible=0)
STREAMS_GROUP_DESCRIBE: Final = Api(89, versions=range(1), flexible=0)
DESCRIBE_SHARE_GROUP_OFFSETS: Final = Api(90, versions=range(2), flexible=0)
ALTER_SHARE_GROUP_OFFSETS: Final = Api(91, versions=range(1), flexible=0)
DELETE_SHARE_GROUP_OFFSETS: Final = Api(92, versions=range(1), flexible=0)

_BY_NAME: Final = {name: api for name, api in globals().items() if isinstance(api, Api)}

APIS: Final = {api.key: api for api in _BY_NAME.values()}
"""
All of them, by key.
"""

MODULES: Final = {api.key: name.lower() for name, api in _BY_NAME.items()}
"""
The modules of ``messages``, by API key.
"""
