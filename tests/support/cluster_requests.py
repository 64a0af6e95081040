"""
Requests about the cluster as a whole, in few words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.protocol.messages import (
    alter_client_quotas,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_acls,
    delete_acls,
    describe_acls,
    describe_client_quotas,
    describe_quorum,
    describe_user_scram_credentials,
    elect_leaders,
    list_partition_reassignments,
    update_features,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest


def topic_pages(
    *topics: str, after: tuple[str, int] | None = None, limit: int = 2000
) -> DescribeTopicPartitionsRequest:
    """
    A request for a page of topics: of all, if none is named.
    """
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in topics],
        response_partition_limit=limit,
        cursor=None if after is None else Cursor(topic_name=after[0], partition_index=after[1]),
    )


def sizes(topics: Sequence[tuple[str, list[int]]] | None) -> DescribeLogDirsRequest:
    """
    A request for the sizes of logs.
    """
    wanted = None
    if topics is not None:
        wanted = [DescribableLogDirTopic(topic=name, partitions=p) for name, p in topics]
    return DescribeLogDirsRequest(topics=wanted)


def resources(*types: int) -> ListConfigResourcesRequest:
    """
    A request for what has configs.
    """
    return ListConfigResourcesRequest(resource_types=list(types))


def quorum(*topics: tuple[str, list[int]]) -> describe_quorum.DescribeQuorumRequest:
    """
    A request for the state of a quorum.
    """
    return describe_quorum.DescribeQuorumRequest(
        topics=[
            describe_quorum.RequestTopicData(
                topic_name=name,
                partitions=[describe_quorum.RequestPartitionData(partition_index=p) for p in asked],
            )
            for name, asked in topics
        ]
    )


def election(
    kind: int, *topics: tuple[str, list[int]], everything: bool = False
) -> elect_leaders.ElectLeadersRequest:
    """
    A request for elections: 0 of preferred leaders, 1 of unclean ones.
    """
    asked = [elect_leaders.TopicPartitions(topic=name, partitions=p) for name, p in topics]
    return elect_leaders.ElectLeadersRequest(
        election_type=kind, topic_partitions=None if everything else asked, timeout_ms=10_000
    )


def moves(
    *partitions: tuple[str, int, list[int] | None], factor: bool = True
) -> alter_partition_reassignments.AlterPartitionReassignmentsRequest:
    """
    A request to have partitions on other brokers, or, without any, to leave them where they were.
    """
    topics: dict[str, list[alter_partition_reassignments.ReassignablePartition]] = {}
    for name, index, replicas in partitions:
        topics.setdefault(name, []).append(
            alter_partition_reassignments.ReassignablePartition(
                partition_index=index, replicas=replicas
            )
        )
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(
        timeout_ms=10_000,
        allow_replication_factor_change=factor,
        topics=[
            alter_partition_reassignments.ReassignableTopic(name=name, partitions=p)
            for name, p in topics.items()
        ],
    )


def moving(
    topics: Sequence[tuple[str, list[int]]] | None = None,
) -> list_partition_reassignments.ListPartitionReassignmentsRequest:
    """
    A request for the moves that are under way.
    """
    asked = None
    if topics is not None:
        asked = [
            list_partition_reassignments.ListPartitionReassignmentsTopics(
                name=name, partition_indexes=p
            )
            for name, p in topics
        ]
    return list_partition_reassignments.ListPartitionReassignmentsRequest(
        timeout_ms=10_000, topics=asked
    )


Entity = Mapping[str, str | None]


def quotas(
    *filters: tuple[str, int, str | None], strict: bool = False
) -> describe_client_quotas.DescribeClientQuotasRequest:
    """
    A request for the quotas that match filters: types of entities, types of matches and names.
    """
    return describe_client_quotas.DescribeClientQuotasRequest(
        components=[
            describe_client_quotas.ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in filters
        ],
        strict=strict,
    )


def new_quotas(
    *entries: tuple[Entity, Sequence[tuple[str, float | None]]], validate: bool = False
) -> alter_client_quotas.AlterClientQuotasRequest:
    """
    A request to give entities other quotas; ``None`` takes one away.
    """
    return alter_client_quotas.AlterClientQuotasRequest(
        entries=[
            alter_client_quotas.RequestEntryData(
                entity=[
                    alter_client_quotas.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.items()
                ],
                ops=[
                    alter_client_quotas.OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in changes
                ],
            )
            for entity, changes in entries
        ],
        validate_only=validate,
    )


def users(*names: str) -> describe_user_scram_credentials.DescribeUserScramCredentialsRequest:
    """
    A request for the credentials of some users, or of all.
    """
    return describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
        users=[describe_user_scram_credentials.UserName(name=name) for name in names] or None
    )


def new_credentials(
    *wanted: tuple[str, int, int], without: Sequence[tuple[str, int]] = ()
) -> alter_user_scram_credentials.AlterUserScramCredentialsRequest:
    """
    A request to set credentials (user, mechanism, iterations) and to remove some.
    """
    return alter_user_scram_credentials.AlterUserScramCredentialsRequest(
        deletions=[
            alter_user_scram_credentials.ScramCredentialDeletion(name=name, mechanism=mechanism)
            for name, mechanism in without
        ],
        upsertions=[
            alter_user_scram_credentials.ScramCredentialUpsertion(
                name=name,
                mechanism=mechanism,
                iterations=iterations,
                salt=b"salt",
                salted_password=b"salted password",
            )
            for name, mechanism, iterations in wanted
        ],
    )


def acls(**otherwise: Any) -> describe_acls.DescribeAclsRequest:
    """
    A request for all access control lists, with some fields *otherwise*.
    """
    everything: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return describe_acls.DescribeAclsRequest(**everything | otherwise)


def new_acl(topic: str, **otherwise: Any) -> create_acls.CreateAclsRequest:
    """
    A request to allow everybody to read a topic, with some fields *otherwise*.
    """
    reading: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": topic,
        "principal": "User:*",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return create_acls.CreateAclsRequest(creations=[create_acls.AclCreation(**reading | otherwise)])


def no_acl(topic: str, **otherwise: Any) -> delete_acls.DeleteAclsRequest:
    """
    A request to delete the access control lists of a topic, with some fields *otherwise*.
    """
    those: dict[str, Any] = {
        "resource_type_filter": 2,
        "resource_name_filter": topic,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return delete_acls.DeleteAclsRequest(
        filters=[delete_acls.DeleteAclsFilter(**those | otherwise)]
    )


def features(
    *wanted: tuple[str, int, int], validate: bool = False
) -> update_features.UpdateFeaturesRequest:
    """
    A request for other levels of features: 1 is an upgrade, 2 a safe and 3 an unsafe downgrade.
    """
    return update_features.UpdateFeaturesRequest(
        timeout_ms=10_000,
        feature_updates=[
            update_features.FeatureUpdateKey(
                feature=name, max_version_level=level, upgrade_type=upgrade_type
            )
            for name, level, upgrade_type in wanted
        ],
        validate_only=validate,
    )


def relocation(*wanted: tuple[str, str, int]) -> alter_replica_log_dirs.AlterReplicaLogDirsRequest:
    """
    A request to have logs in directories: directory, topic and partition.
    """
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(
        dirs=[
            alter_replica_log_dirs.AlterReplicaLogDir(
                path=path,
                topics=[
                    alter_replica_log_dirs.AlterReplicaLogDirTopic(name=name, partitions=[index])
                ],
            )
            for path, name, index in wanted
        ]
    )
