"""
A request of every API that asks who may, about what a client may have and about what it may not.

None changes anything that another one looks at, but for DeleteTopics (``DOOMED``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.messages import (
    alter_configs,
    alter_share_group_offsets,
    delete_share_group_offsets,
    delete_share_group_state,
    describe_share_group_offsets,
    incremental_alter_configs,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    streams_group_describe,
    streams_group_heartbeat,
    write_share_group_state,
)
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest
from barnabas.protocol.messages.describe_producers import TopicRequest as ProducersOf
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.support.cluster_requests import topic_pages
from tests.support.config_requests import SET, change_all
from tests.support.group_requests import offset_delete_request
from tests.support.streams_programs import first_heartbeat, internal, part, topology
from tests.support.topic_requests import creatable
from tests.support.transaction_requests import (
    add_as_broker_request,
    add_offsets_request,
    add_partitions_request,
    commit_in_transaction_request,
    end_request,
    marker,
    markers_request,
)

OPEN: Final = "open"
"""
What a principal may have something to do with: a topic, a group, a transactional id.
"""
OTHER: Final = "other"
"""
The same, for nobody who is not allowed everything.
"""
MISSING: Final = "missing"
INVALID: Final = "in valid"
DOOMED: Final = "doomed"
"""
A topic that is like ``OPEN``, to be deleted.
"""
NAMES: Final = (OPEN, OTHER, MISSING, INVALID)
UNKNOWN_ID: Final = UUID(int=77)
STRANGER: Final = (123_456, 0)
"""
A producer that the broker does not know.
"""

Ids = Mapping[str, UUID]
"""
The ids of the topics of a broker, by name.
"""
BATCH: Final = build_batch([SimpleRecord(0, b"k", b"v")])


def _by_id(ids: Ids) -> list[UUID]:
    return [ids[OPEN], ids[OTHER], UNKNOWN_ID]


def _topics(version: int, first_by_id: int, ids: Ids) -> list[dict[str, Any]]:
    if version >= first_by_id:
        return [{"topic_id": topic_id} for topic_id in _by_id(ids)]
    return [{"name": name} for name in NAMES]


def _produce(version: int, ids: Ids) -> Iterator[Message]:
    topics = [
        TopicProduceData(**topic, partition_data=[PartitionProduceData(index=0, records=BATCH)])
        for topic in _topics(version, 13, ids)
    ]
    yield ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics)
    for name in (OPEN, OTHER):
        for topic_data in (_transactional(version, ids), topics[:2]):
            yield ProduceRequest(
                acks=-1, timeout_ms=5000, topic_data=topic_data, transactional_id=name
            )
    for topic in _topics(version, 13, ids)[:2]:
        # Permissions come before these errors, and a partition that is named twice has one answer.
        wrong = [PartitionProduceData(index=index, records=b"no batch") for index in (0, 5, 5)]
        data = [TopicProduceData(**topic, partition_data=wrong)]
        yield ProduceRequest(acks=-1, timeout_ms=5000, topic_data=data)


def _transactional(version: int, ids: Ids) -> list[TopicProduceData]:
    batch = build_batch(
        [SimpleRecord(0, b"k", b"v")],
        producer_id=STRANGER[0],
        producer_epoch=STRANGER[1],
        base_sequence=0,
        is_transactional=True,
    )
    return [
        TopicProduceData(**topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        for topic in _topics(version, 13, ids)[:2]
    ]


def _fetch(version: int, ids: Ids) -> Iterator[Message]:
    topics = []
    for topic in _topics(version, 13, ids):
        named = {"topic_id": topic["topic_id"]} if version >= 13 else {"topic": topic["name"]}
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics.append(FetchTopic(**named, partitions=[partition]))
    yield FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics, session_epoch=-1)
    follower = {"replica_state": ReplicaState(replica_id=2)} if version >= 15 else {"replica_id": 2}
    yield FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics, session_epoch=-1, **follower)


def _list_offsets(version: int, _ids: Ids) -> Iterator[Message]:
    topics = [
        ListOffsetsTopic(
            name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
        )
        for name in NAMES
    ]
    for isolation_level in (0, 9) if version >= 2 else (0,):
        yield ListOffsetsRequest(replica_id=-1, topics=topics, isolation_level=isolation_level)


def _metadata(version: int, ids: Ids) -> Iterator[Message]:
    flags = {
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": version >= 8,
        "include_cluster_authorized_operations": 8 <= version <= 10,
    }
    if version < 4:
        del flags["allow_auto_topic_creation"]
    yield MetadataRequest(topics=None if version else [], **flags)
    named = [MetadataRequestTopic(name=name) for name in NAMES]
    yield MetadataRequest(topics=named, **flags)
    if version >= 12:
        known = [MetadataRequestTopic(topic_id=each, name=None) for each in _by_id(ids)]
        yield MetadataRequest(topics=known, **flags)


def _offset_commit(version: int, ids: Ids) -> Iterator[Message]:
    for group in (OPEN, OTHER):
        topics = [
            OffsetCommitRequestTopic(
                **topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=5, committed_metadata="m"
                    )
                    for index in (0, 7)
                ],
            )
            for topic in _topics(version, 10, ids)
        ]
        yield OffsetCommitRequest(group_id=group, member_id="", topics=topics)


def _offset_fetch(version: int, ids: Ids) -> Iterator[Message]:
    if version < 8:
        named = [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in NAMES]
        for group in (OPEN, OTHER):
            yield OffsetFetchRequest(group_id=group, topics=named)
            if version >= 2:
                yield OffsetFetchRequest(group_id=group, topics=None)
        return
    topics = [
        OffsetFetchRequestTopics(**topic, partition_indexes=[0])
        for topic in _topics(version, 10, ids)
    ]
    for asked in (topics, None):
        groups = [OffsetFetchRequestGroup(group_id=group, topics=asked) for group in (OPEN, OTHER)]
        yield OffsetFetchRequest(groups=groups)


def _find_coordinator(version: int, _ids: Ids) -> Iterator[Message]:
    for kind in (0, 1, 2, 9) if version >= 4 else (0, 1) if version else (0,):
        if version >= 4:
            yield FindCoordinatorRequest(key_type=kind, coordinator_keys=[OPEN, OTHER])
        else:
            for key in (OPEN, OTHER):
                yield FindCoordinatorRequest(key=key, key_type=kind)


def _join_group(_version: int, _ids: Ids) -> Iterator[Message]:
    for group in (OPEN, OTHER):
        yield JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="nobody",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )


def _sync_group(version: int, _ids: Ids) -> Iterator[Message]:
    for group in (OPEN, OTHER):
        named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
        yield SyncGroupRequest(
            group_id=group, generation_id=1, member_id="nobody", assignments=[], **named
        )
        if named:
            yield SyncGroupRequest(
                group_id=group, generation_id=1, member_id="nobody", assignments=[]
            )


def _heartbeat(_version: int, _ids: Ids) -> Iterator[Message]:
    for group in (OPEN, OTHER):
        yield HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")


def _consumer_group_heartbeat(version: int, _ids: Ids) -> Iterator[Message]:
    for group in (OPEN, OTHER):
        yield ConsumerGroupHeartbeatRequest(group_id=group, member_id="nobody", member_epoch=1)
    for topic in (OPEN, OTHER, MISSING):
        yield ConsumerGroupHeartbeatRequest(
            group_id=OPEN, member_id="nobody", member_epoch=1, subscribed_topic_names=[topic]
        )


def _consumer_group_describe(_version: int, _ids: Ids) -> Iterator[Message]:
    yield ConsumerGroupDescribeRequest(
        group_ids=[OPEN, OTHER, MISSING, ""], include_authorized_operations=True
    )


def _leave_group(version: int, _ids: Ids) -> Iterator[Message]:
    for group in (OPEN, OTHER):
        if version < 3:
            yield LeaveGroupRequest(group_id=group, member_id="nobody")
        else:
            yield LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id="nobody")])


def _describe_groups(version: int, _ids: Ids) -> Iterator[Message]:
    asks = {"include_authorized_operations": True} if version >= 3 else {}
    yield DescribeGroupsRequest(groups=[OPEN, OTHER, MISSING], **asks)


def _list_groups(_version: int, _ids: Ids) -> Iterator[Message]:
    yield ListGroupsRequest()


def _delete_groups(_version: int, _ids: Ids) -> Iterator[Message]:
    yield DeleteGroupsRequest(groups_names=[MISSING, OTHER + MISSING])


def _offset_delete(_version: int, _ids: Ids) -> Iterator[Message]:
    for group in (OPEN, OTHER, MISSING):
        yield offset_delete_request(group, {name: [3] for name in NAMES})


def _create_topics(_version: int, _ids: Ids) -> Iterator[Message]:
    for names in (
        (OPEN, OTHER, "open-new", "new", INVALID),
        # Errors of the names come before permissions.
        ("new", "new", "__cluster_metadata", OPEN),
    ):
        yield CreateTopicsRequest(topics=[creatable(name) for name in names], validate_only=True)


def _delete_topics(version: int, ids: Ids) -> Iterator[Message]:
    if version < 6:
        yield DeleteTopicsRequest(topic_names=[DOOMED, MISSING, INVALID], timeout_ms=5000)
        return
    states = [
        *(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in (MISSING, INVALID)),
        *(DeleteTopicState(name=None, topic_id=each) for each in (ids[DOOMED], UNKNOWN_ID)),
    ]
    yield DeleteTopicsRequest(topics=states, timeout_ms=5000)
    # By name, where it was not deleted by its id.
    named = [DeleteTopicState(name=DOOMED, topic_id=ZERO_UUID)]
    yield DeleteTopicsRequest(topics=named, timeout_ms=5000)


def _delete_records(_version: int, _ids: Ids) -> Iterator[Message]:
    topics = [
        DeleteRecordsTopic(
            name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=0)]
        )
        for name in NAMES
    ]
    yield DeleteRecordsRequest(topics=topics, timeout_ms=5000)


def _init_producer_id(version: int, _ids: Ids) -> Iterator[Message]:
    for name in (None, OPEN, OTHER):
        yield InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    for timeout_ms in (0, -1, 900_001):
        yield InitProducerIdRequest(transactional_id=OPEN, transaction_timeout_ms=timeout_ms)
    if version >= 3:
        # A producer id without an epoch.
        yield InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=5
        )


def _offset_for_leader_epoch(_version: int, _ids: Ids) -> Iterator[Message]:
    topics = [
        OffsetForLeaderTopic(
            topic=name, partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)]
        )
        for name in NAMES
    ]
    yield OffsetForLeaderEpochRequest(topics=topics, replica_id=-1)


def _add_partitions_to_txn(version: int, _ids: Ids) -> Iterator[Message]:
    for names in ((OPEN,), NAMES, ("__consumer_offsets",)):
        partitions = {name: [0, 7] for name in names}
        if version < 4:
            for transactional_id in (OPEN, OTHER):
                yield add_partitions_request(transactional_id, STRANGER, partitions)
            continue
        strangers = [(transactional_id, STRANGER) for transactional_id in (OPEN, OTHER)]
        yield add_as_broker_request(strangers, partitions, verify=True)


def _add_offsets_to_txn(_version: int, _ids: Ids) -> Iterator[Message]:
    for name, group in ((OPEN, OPEN), (OPEN, OTHER), (OTHER, OPEN)):
        yield add_offsets_request(name, STRANGER, group)


def _end_txn(_version: int, _ids: Ids) -> Iterator[Message]:
    for name in (OPEN, OTHER):
        yield end_request(name, STRANGER, commit=False)


def _write_txn_markers(_version: int, _ids: Ids) -> Iterator[Message]:
    yield markers_request(marker(STRANGER, {MISSING: [0]}, commit=False))


def _txn_offset_commit(_version: int, _ids: Ids) -> Iterator[Message]:
    for name, group in ((OPEN, OPEN), (OPEN, OTHER), (OTHER, OPEN), (OPEN, "")):
        offsets = {topic: {0: 5, 7: 5} for topic in NAMES}
        yield commit_in_transaction_request(name, STRANGER, group, offsets)


def _describe_transactions(_version: int, _ids: Ids) -> Iterator[Message]:
    yield DescribeTransactionsRequest(transactional_ids=[OPEN, OTHER, MISSING])


def _list_transactions(version: int, _ids: Ids) -> Iterator[Message]:
    for pattern in (None, f"{OPEN}|{OTHER}") if version >= 2 else (None,):
        yield ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern=pattern
        )


def _describe_acls(_version: int, _ids: Ids) -> Iterator[Message]:
    yield DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter="for nobody",
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def _create_acls(_version: int, _ids: Ids) -> Iterator[Message]:
    creation = AclCreation(
        resource_type=4,
        resource_name="another cluster",
        principal="User:x",
        host="*",
        operation=3,
        permission_type=3,
    )
    yield CreateAclsRequest(creations=[creation])


def _create_delegation_token(version: int, _ids: Ids) -> Iterator[Message]:
    """
    There is no key that tokens are made with.
    """
    for kind in ("User", "Group"):
        renewers = [CreatableRenewers(principal_type=kind, principal_name="x")]
        yield CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1)
        if version >= 3:
            yield CreateDelegationTokenRequest(
                owner_principal_type="User",
                owner_principal_name="x",
                renewers=renewers,
                max_lifetime_ms=-1,
            )


def _describe_delegation_token(_version: int, _ids: Ids) -> Iterator[Message]:
    yield DescribeDelegationTokenRequest(owners=None)
    owner = DescribeDelegationTokenOwner(principal_type="User", principal_name="x")
    yield DescribeDelegationTokenRequest(owners=[owner])


def _delete_acls(_version: int, _ids: Ids) -> Iterator[Message]:
    wanted = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="for nobody",
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    yield DeleteAclsRequest(filters=[wanted])


RESOURCES: Final = (
    *((2, name) for name in NAMES),
    *((32, name) for name in (OPEN, OTHER)),
    (4, "1"),
    (8, "1"),
    (16, "m"),
)

OPTIONS: Final = {
    2: ("retention.ms", "5000"),
    4: ("background.threads", "10"),
    8: ("kafka", "INFO"),
    16: ("interval.ms", "5000"),
    32: ("consumer.session.timeout.ms", "50000"),
}


WRONG_CHANGES: Final[Sequence[tuple[int, str, Sequence[tuple[str, int, str | None]]]]] = (
    # Reported before permissions,
    (2, OPEN, [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]),
    (2, OPEN, [("retention.ms", SET, None)]),
    (99, OPEN, []),
    (4, "7", [("background.threads", SET, "10")]),
    (4, "1", [("node.id", SET, "5")]),
    # and after them.
    (2, OPEN, [("no.such.option", SET, "1")]),
    (16, "", [("no.such.option", SET, "1")]),
    (8, "7", [("no.such.logger", SET, "1")]),
    (4, "", [("min.insync.replicas", SET, "1")]),
)


def _describe_configs(_version: int, _ids: Ids) -> Iterator[Message]:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in RESOURCES
    ]
    yield DescribeConfigsRequest(resources=resources)


def _alter_configs(_version: int, _ids: Ids) -> Iterator[Message]:
    resources = [
        alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[alter_configs.AlterableConfig(name=OPTIONS[kind][0], value=OPTIONS[kind][1])],
        )
        for kind, name in RESOURCES
    ]
    yield alter_configs.AlterConfigsRequest(resources=resources, validate_only=True)


def _incremental_alter_configs(_version: int, _ids: Ids) -> Iterator[Message]:
    changes = (
        (kind, name, [(OPTIONS[kind][0], SET, OPTIONS[kind][1])]) for kind, name in RESOURCES
    )
    yield change_all(*changes, validate=True)
    for wrong in WRONG_CHANGES:
        yield change_all(wrong, validate=True)


def _alter_replica_log_dirs(_version: int, _ids: Ids) -> Iterator[Message]:
    topics = [AlterReplicaLogDirTopic(name=MISSING, partitions=[0, 1])]
    yield AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/no/where", topics=topics)])


def _describe_log_dirs(_version: int, _ids: Ids) -> Iterator[Message]:
    yield DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=OPEN, partitions=[0])])


def _create_partitions(_version: int, _ids: Ids) -> Iterator[Message]:
    topics = [CreatePartitionsTopic(name=name, count=1, assignments=None) for name in NAMES]
    for wanted in (topics, topics[:1] * 2):
        yield CreatePartitionsRequest(topics=wanted, timeout_ms=5000, validate_only=True)


def _elect_leaders(_version: int, _ids: Ids) -> Iterator[Message]:
    topics = [TopicPartitions(topic=MISSING, partitions=[0])]
    yield ElectLeadersRequest(topic_partitions=topics)


def _alter_partition_reassignments(_version: int, _ids: Ids) -> Iterator[Message]:
    topics = [
        ReassignableTopic(
            name=MISSING, partitions=[ReassignablePartition(partition_index=0, replicas=[1])]
        )
    ]
    yield AlterPartitionReassignmentsRequest(topics=topics)


def _list_partition_reassignments(_version: int, _ids: Ids) -> Iterator[Message]:
    yield ListPartitionReassignmentsRequest(topics=None)


def _describe_client_quotas(_version: int, _ids: Ids) -> Iterator[Message]:
    yield DescribeClientQuotasRequest(components=[], strict=False)


def _alter_client_quotas(_version: int, _ids: Ids) -> Iterator[Message]:
    entry = RequestEntryData(
        entity=[EntityData(entity_type="user", entity_name="x")],
        ops=[OpData(key="producer_byte_rate", value=5.0, remove=False)],
    )
    yield AlterClientQuotasRequest(entries=[entry], validate_only=True)


def _describe_user_scram_credentials(_version: int, _ids: Ids) -> Iterator[Message]:
    # Kafka trips over a refusal of all users, and answers nothing.
    yield DescribeUserScramCredentialsRequest(users=[UserName(name="nobody")])


def _alter_user_scram_credentials(_version: int, _ids: Ids) -> Iterator[Message]:
    deletion = ScramCredentialDeletion(name="nobody", mechanism=1)
    yield AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[])


def _describe_quorum(_version: int, _ids: Ids) -> Iterator[Message]:
    partitions = [RequestPartitionData(partition_index=0)]
    topic = RequestTopicData(topic_name="__cluster_metadata", partitions=partitions)
    yield DescribeQuorumRequest(topics=[topic])


def _update_features(_version: int, _ids: Ids) -> Iterator[Message]:
    update = FeatureUpdateKey(feature="no.such.feature", max_version_level=1)
    yield UpdateFeaturesRequest(feature_updates=[update])


def _describe_cluster(_version: int, _ids: Ids) -> Iterator[Message]:
    yield DescribeClusterRequest(include_cluster_authorized_operations=True)


def _describe_producers(_version: int, _ids: Ids) -> Iterator[Message]:
    yield DescribeProducersRequest(
        topics=[ProducersOf(name=name, partition_indexes=[0]) for name in NAMES]
    )


def _unregister_broker(_version: int, _ids: Ids) -> Iterator[Message]:
    yield UnregisterBrokerRequest(broker_id=999)


def _list_config_resources(_version: int, _ids: Ids) -> Iterator[Message]:
    yield ListConfigResourcesRequest()


def _describe_topic_partitions(_version: int, _ids: Ids) -> Iterator[Message]:
    for names in ((), NAMES):
        yield topic_pages(*names)
        yield topic_pages(*names, limit=1)
        yield topic_pages(*names, after=(OPEN, 0), limit=1)


def _share_fetch(_version: int, ids: Ids) -> Iterator[Message]:
    partition = share_fetch.FetchPartition(partition_index=0, acknowledgement_batches=[])
    for group in (OPEN, OTHER):
        yield share_fetch.ShareFetchRequest(
            group_id=group,
            member_id="m",
            share_session_epoch=0,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            max_records=1,
            batch_size=1,
            topics=[
                share_fetch.FetchTopic(topic_id=each, partitions=[partition])
                for each in _by_id(ids)
            ],
            forgotten_topics_data=[],
        )


def _share_acknowledge(version: int, ids: Ids) -> Iterator[Message]:
    # Each needs a session.
    yield from _share_fetch(version, ids)
    partition = share_acknowledge.AcknowledgePartition(
        partition_index=0, acknowledgement_batches=[]
    )
    for group in (OPEN, OTHER):
        yield share_acknowledge.ShareAcknowledgeRequest(
            group_id=group,
            member_id="m",
            share_session_epoch=1,
            topics=[
                share_acknowledge.AcknowledgeTopic(topic_id=each, partitions=[partition])
                for each in _by_id(ids)
            ],
        )


def _initialize_state(_version: int, ids: Ids) -> Iterator[Message]:
    messages = initialize_share_group_state
    data = messages.PartitionData(partition=0, state_epoch=0, start_offset=0)
    yield messages.InitializeShareGroupStateRequest(
        group_id=OPEN,
        topics=[
            messages.InitializeStateData(topic_id=each, partitions=[data]) for each in _by_id(ids)
        ],
    )


def _read_state(_version: int, ids: Ids) -> Iterator[Message]:
    messages = read_share_group_state
    data = messages.PartitionData(partition=0, leader_epoch=0)
    yield messages.ReadShareGroupStateRequest(
        group_id=OPEN,
        topics=[messages.ReadStateData(topic_id=each, partitions=[data]) for each in _by_id(ids)],
    )


def _write_state(_version: int, ids: Ids) -> Iterator[Message]:
    messages = write_share_group_state
    data = messages.PartitionData(
        partition=0, state_epoch=0, leader_epoch=0, start_offset=0, state_batches=[]
    )
    yield messages.WriteShareGroupStateRequest(
        group_id=OPEN,
        topics=[messages.WriteStateData(topic_id=each, partitions=[data]) for each in _by_id(ids)],
    )


def _delete_state(_version: int, ids: Ids) -> Iterator[Message]:
    messages = delete_share_group_state
    data = messages.PartitionData(partition=0)
    yield messages.DeleteShareGroupStateRequest(
        group_id=OPEN,
        topics=[messages.DeleteStateData(topic_id=each, partitions=[data]) for each in _by_id(ids)],
    )


def _read_state_summary(_version: int, ids: Ids) -> Iterator[Message]:
    messages = read_share_group_state_summary
    data = messages.PartitionData(partition=0, leader_epoch=0)
    yield messages.ReadShareGroupStateSummaryRequest(
        group_id=OPEN,
        topics=[
            messages.ReadStateSummaryData(topic_id=each, partitions=[data]) for each in _by_id(ids)
        ],
    )


def _describe_share_offsets(_version: int, _ids: Ids) -> Iterator[Message]:
    messages = describe_share_group_offsets
    named = [
        messages.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0])
        for name in NAMES
    ]
    for topics in (named, None):
        yield messages.DescribeShareGroupOffsetsRequest(
            groups=[
                messages.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)
                for group in (OPEN, OTHER)
            ]
        )


def _share_group_heartbeat(_version: int, _ids: Ids) -> Iterator[Message]:
    messages = share_group_heartbeat
    for group in (OPEN, OTHER):
        yield messages.ShareGroupHeartbeatRequest(
            group_id=group, member_id="nobody", member_epoch=1
        )
    for topic in NAMES:
        yield messages.ShareGroupHeartbeatRequest(
            group_id=OPEN, member_id="nobody", member_epoch=1, subscribed_topic_names=[topic]
        )


def _share_group_describe(_version: int, _ids: Ids) -> Iterator[Message]:
    yield share_group_describe.ShareGroupDescribeRequest(
        group_ids=[OPEN, OTHER, MISSING], include_authorized_operations=True
    )


def _streams_group_heartbeat(_version: int, _ids: Ids) -> Iterator[Message]:
    messages = streams_group_heartbeat
    for group in (OPEN, OTHER):
        yield messages.StreamsGroupHeartbeatRequest(
            group_id=group, member_id="nobody", member_epoch=1, endpoint_information_epoch=0
        )
    for topic in NAMES:
        program = topology(part("0", [topic], changelogs=[internal(f"{topic}-changelog")]))
        yield first_heartbeat(f"program that reads {topic}", program, member_id="nobody")


def _streams_group_describe(_version: int, _ids: Ids) -> Iterator[Message]:
    yield streams_group_describe.StreamsGroupDescribeRequest(
        group_ids=[OPEN, OTHER, MISSING], include_authorized_operations=True
    )


def _alter_share_offsets(_version: int, _ids: Ids) -> Iterator[Message]:
    messages = alter_share_group_offsets
    partition = messages.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    for group in (OPEN, OTHER):
        yield messages.AlterShareGroupOffsetsRequest(
            group_id=group,
            topics=[
                messages.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[partition])
                for name in NAMES
            ],
        )


def _delete_share_offsets(_version: int, _ids: Ids) -> Iterator[Message]:
    messages = delete_share_group_offsets
    for group in (OPEN, OTHER):
        yield messages.DeleteShareGroupOffsetsRequest(
            group_id=group,
            topics=[
                messages.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in NAMES
            ],
        )


Make = Callable[[int, Ids], Iterator[Message]]
MAKERS: Final[Mapping[type[Message], Make]] = {
    ProduceRequest: _produce,
    FetchRequest: _fetch,
    ListOffsetsRequest: _list_offsets,
    MetadataRequest: _metadata,
    OffsetCommitRequest: _offset_commit,
    OffsetFetchRequest: _offset_fetch,
    FindCoordinatorRequest: _find_coordinator,
    JoinGroupRequest: _join_group,
    HeartbeatRequest: _heartbeat,
    ConsumerGroupHeartbeatRequest: _consumer_group_heartbeat,
    ConsumerGroupDescribeRequest: _consumer_group_describe,
    LeaveGroupRequest: _leave_group,
    SyncGroupRequest: _sync_group,
    DescribeGroupsRequest: _describe_groups,
    ListGroupsRequest: _list_groups,
    CreateTopicsRequest: _create_topics,
    DeleteTopicsRequest: _delete_topics,
    DeleteRecordsRequest: _delete_records,
    InitProducerIdRequest: _init_producer_id,
    OffsetForLeaderEpochRequest: _offset_for_leader_epoch,
    AddPartitionsToTxnRequest: _add_partitions_to_txn,
    AddOffsetsToTxnRequest: _add_offsets_to_txn,
    EndTxnRequest: _end_txn,
    WriteTxnMarkersRequest: _write_txn_markers,
    TxnOffsetCommitRequest: _txn_offset_commit,
    DescribeAclsRequest: _describe_acls,
    CreateAclsRequest: _create_acls,
    DeleteAclsRequest: _delete_acls,
    CreateDelegationTokenRequest: _create_delegation_token,
    DescribeDelegationTokenRequest: _describe_delegation_token,
    DescribeConfigsRequest: _describe_configs,
    alter_configs.AlterConfigsRequest: _alter_configs,
    AlterReplicaLogDirsRequest: _alter_replica_log_dirs,
    DescribeLogDirsRequest: _describe_log_dirs,
    CreatePartitionsRequest: _create_partitions,
    DeleteGroupsRequest: _delete_groups,
    ElectLeadersRequest: _elect_leaders,
    incremental_alter_configs.IncrementalAlterConfigsRequest: _incremental_alter_configs,
    AlterPartitionReassignmentsRequest: _alter_partition_reassignments,
    ListPartitionReassignmentsRequest: _list_partition_reassignments,
    OffsetDeleteRequest: _offset_delete,
    DescribeClientQuotasRequest: _describe_client_quotas,
    AlterClientQuotasRequest: _alter_client_quotas,
    DescribeUserScramCredentialsRequest: _describe_user_scram_credentials,
    AlterUserScramCredentialsRequest: _alter_user_scram_credentials,
    DescribeQuorumRequest: _describe_quorum,
    UpdateFeaturesRequest: _update_features,
    DescribeClusterRequest: _describe_cluster,
    DescribeProducersRequest: _describe_producers,
    UnregisterBrokerRequest: _unregister_broker,
    DescribeTransactionsRequest: _describe_transactions,
    ListTransactionsRequest: _list_transactions,
    ListConfigResourcesRequest: _list_config_resources,
    DescribeTopicPartitionsRequest: _describe_topic_partitions,
    share_fetch.ShareFetchRequest: _share_fetch,
    share_acknowledge.ShareAcknowledgeRequest: _share_acknowledge,
    initialize_share_group_state.InitializeShareGroupStateRequest: _initialize_state,
    read_share_group_state.ReadShareGroupStateRequest: _read_state,
    write_share_group_state.WriteShareGroupStateRequest: _write_state,
    delete_share_group_state.DeleteShareGroupStateRequest: _delete_state,
    read_share_group_state_summary.ReadShareGroupStateSummaryRequest: _read_state_summary,
    describe_share_group_offsets.DescribeShareGroupOffsetsRequest: _describe_share_offsets,
    share_group_heartbeat.ShareGroupHeartbeatRequest: _share_group_heartbeat,
    share_group_describe.ShareGroupDescribeRequest: _share_group_describe,
    streams_group_heartbeat.StreamsGroupHeartbeatRequest: _streams_group_heartbeat,
    streams_group_describe.StreamsGroupDescribeRequest: _streams_group_describe,
    alter_share_group_offsets.AlterShareGroupOffsetsRequest: _alter_share_offsets,
    delete_share_group_offsets.DeleteShareGroupOffsetsRequest: _delete_share_offsets,
}
