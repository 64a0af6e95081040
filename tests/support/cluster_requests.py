"""
Requests about the cluster as a whole, in few words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.protocol.codec.schema import Message
from tests.support.build import api_request

TIMEOUT_MS = 10_000

Partitions = tuple[str, list[int]]
"""
A topic and partitions of it.
"""
Entity = Mapping[str, str | None]


def topic_pages(*topics: str, after: tuple[str, int] | None = None, limit: int = 2000) -> Message:
    return api_request(
        "describe_topic_partitions",
        topics=[{"name": name} for name in topics],
        response_partition_limit=limit,
        cursor=after and {"topic_name": after[0], "partition_index": after[1]},
    )


def sizes(topics: Sequence[Partitions] | None) -> Message:
    return api_request("describe_log_dirs", topics=_of("topic", "partitions", topics))


def resources(*types: int) -> Message:
    return api_request("list_config_resources", resource_types=types)


def quorum(*topics: Partitions) -> Message:
    return api_request(
        "describe_quorum",
        topics=[
            {"topic_name": name, "partitions": [{"partition_index": p} for p in asked]}
            for name, asked in topics
        ],
    )


def election(kind: int, *topics: Partitions, everything: bool = False) -> Message:
    """
    Elections of preferred leaders (0) or unclean ones (1).
    """
    asked = None if everything else _of("topic", "partitions", topics)
    return api_request(
        "elect_leaders", election_type=kind, topic_partitions=asked, timeout_ms=TIMEOUT_MS
    )


def moves(*partitions: tuple[str, int, list[int] | None], factor: bool = True) -> Message:
    """
    Move partitions to other brokers; without brokers, cancel the move.
    """
    topics: dict[str, list[dict[str, Any]]] = {}
    for name, index, replicas in partitions:
        topics.setdefault(name, []).append({"partition_index": index, "replicas": replicas})
    return api_request(
        "alter_partition_reassignments",
        timeout_ms=TIMEOUT_MS,
        allow_replication_factor_change=factor,
        topics=_of("name", "partitions", topics.items()),
    )


def moving(topics: Sequence[Partitions] | None = None) -> Message:
    asked = _of("name", "partition_indexes", topics)
    return api_request("list_partition_reassignments", timeout_ms=TIMEOUT_MS, topics=asked)


def quotas(*filters: tuple[str, int, str | None], strict: bool = False) -> Message:
    """
    The quotas that match filters of entity type, match type and name.
    """
    components = [
        {"entity_type": kind, "match_type": how, "match": name} for kind, how, name in filters
    ]
    return api_request("describe_client_quotas", components=components, strict=strict)


def new_quotas(
    *entries: tuple[Entity, Sequence[tuple[str, float | None]]], validate: bool = False
) -> Message:
    """
    Change quotas of entities; ``None`` removes one.
    """
    return api_request(
        "alter_client_quotas",
        entries=[
            {
                "entity": _of("entity_type", "entity_name", entity.items()),
                "ops": [
                    {"key": key, "value": value or 0.0, "remove": value is None}
                    for key, value in changes
                ],
            }
            for entity, changes in entries
        ],
        validate_only=validate,
    )


def users(*names: str) -> Message:
    users = [{"name": name} for name in names] or None
    return api_request("describe_user_scram_credentials", users=users)


def new_credentials(
    *wanted: tuple[str, int, int], without: Sequence[tuple[str, int]] = ()
) -> Message:
    """
    Set SCRAM credentials (user, mechanism, iterations), and remove some.
    """
    secret = {"salt": b"salt", "salted_password": b"salted password"}
    return api_request(
        "alter_user_scram_credentials",
        deletions=_of("name", "mechanism", without),
        upsertions=[
            {"name": name, "mechanism": mechanism, "iterations": iterations, **secret}
            for name, mechanism, iterations in wanted
        ],
    )


def acls(**otherwise: Any) -> Message:
    everything: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return api_request("describe_acls", **everything | otherwise)


def new_acl(topic: str, **otherwise: Any) -> Message:
    reading = {
        "resource_type": 2,
        "resource_name": topic,
        "principal": "User:*",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return api_request("create_acls", creations=[reading | otherwise])


def no_acl(topic: str | None, **otherwise: Any) -> Message:
    those = {
        "resource_type_filter": 2,
        "resource_name_filter": topic,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return api_request("delete_acls", filters=[those | otherwise])


def features(*wanted: tuple[str, int, int], validate: bool = False) -> Message:
    """
    Change feature levels: 1 is an upgrade, 2 a safe and 3 an unsafe downgrade.
    """
    updates = [
        {"feature": name, "max_version_level": level, "upgrade_type": upgrade_type}
        for name, level, upgrade_type in wanted
    ]
    return api_request(
        "update_features", timeout_ms=TIMEOUT_MS, feature_updates=updates, validate_only=validate
    )


def relocation(*wanted: tuple[str, str, int]) -> Message:
    dirs = [
        {"path": path, "topics": [{"name": name, "partitions": [index]}]}
        for path, name, index in wanted
    ]
    return api_request("alter_replica_log_dirs", dirs=dirs)


def _of(first: str, second: str, pairs: Iterable[tuple[Any, Any]] | None) -> Any:
    return pairs if pairs is None else [{first: a, second: b} for a, b in pairs]
