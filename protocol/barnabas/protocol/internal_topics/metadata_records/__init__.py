"""
Records of ``__cluster_metadata``: what the cluster is made of (Kafka's KRaft).

The key of a record is null. Its value begins with three unsigned varints: the version of this frame
(1), the type and the version of what follows. All types are flexible in all their versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.internal_topics.metadata_records.cluster import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    ProducerIdsRecord,
    ZkMigrationStateRecord,
)
from barnabas.protocol.internal_topics.metadata_records.nodes import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from barnabas.protocol.internal_topics.metadata_records.security import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from barnabas.protocol.internal_topics.metadata_records.topics import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

__all__ = [
    "RECORDS",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "ControllerEndpoint",
    "ControllerFeature",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "EntityData",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UserScramCredentialRecord",
    "ZkMigrationStateRecord",
]

_CLASSES: Final[list[type[Message]]] = [
    globals()[name] for name in __all__ if name.endswith("Record")
]
RECORDS: Final[Mapping[int, type[Message]]] = {cls.api.key: cls for cls in _CLASSES}
"""
By the type of the record.
"""
