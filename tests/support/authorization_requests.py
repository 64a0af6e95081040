"""
Requests of every API that checks permissions, about resources that a client may use and others.

No request changes what another one reads, except DeleteTopics (``DOOMED``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.apis import MODULES
from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.messages import REQUESTS
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.support.build import API_KEYS, api_request
from tests.support.cluster_requests import (
    acls,
    election,
    features,
    moves,
    moving,
    new_acl,
    new_credentials,
    new_quotas,
    no_acl,
    quotas,
    sizes,
    users,
)
from tests.support.config_requests import SET, change, change_all, describe_all, replace_all
from tests.support.streams_programs import first_heartbeat, internal, part, topology
from tests.support.topic_requests import creatable
from tests.support.transaction_requests import (
    add_as_broker_request,
    add_partitions_request,
    commit_in_transaction_request,
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
BOTH: Final = (OPEN, OTHER)
UNKNOWN_ID: Final = UUID(int=77)
STRANGER: Final = (123_456, 0)
"""
A producer that the broker does not know.
"""

Ids = Mapping[str, UUID]
"""
The ids of the topics of a broker, by name.
"""
RECORD: Final = SimpleRecord(0, b"k", b"v")
BATCH: Final = build_batch([RECORD])
TRANSACTIONAL_BATCH: Final = build_batch(
    [RECORD],
    producer_id=STRANGER[0],
    producer_epoch=STRANGER[1],
    base_sequence=0,
    is_transactional=True,
)
STRANGE: Final = {"producer_id": STRANGER[0], "producer_epoch": STRANGER[1]}
NOBODY: Final = {"member_id": "nobody", "member_epoch": 1}
IN_TRANSACTION: Final = ((OPEN, OPEN), (OPEN, OTHER), (OTHER, OPEN))
"""
Transactional ids and groups.
"""
RENEWERS: Final = [[{"principal_type": kind, "principal_name": "x"}] for kind in ("User", "Group")]
RESOURCES: Final = (
    *((2, name) for name in NAMES),
    *((32, name) for name in BOTH),
    *((4, "1"), (8, "1"), (16, "m")),
)
OPTIONS: Final[Mapping[int, tuple[str, str]]] = {
    2: ("retention.ms", "5000"),
    4: ("background.threads", "10"),
    8: ("kafka", "INFO"),
    16: ("interval.ms", "5000"),
    32: ("consumer.session.timeout.ms", "50000"),
}
WRONG_CHANGES: Final[Sequence[tuple[int, str, Mapping[str, Sequence[str | None]]]]] = (
    # Reported before permissions,
    (2, OPEN, {"retention.ms": ["1", "2"]}),
    (2, OPEN, {"retention.ms": [None]}),
    (99, OPEN, {}),
    (4, "7", {"background.threads": ["10"]}),
    (4, "1", {"node.id": ["5"]}),
    # and after them.
    (2, OPEN, {"no.such.option": ["1"]}),
    (16, "", {"no.such.option": ["1"]}),
    (8, "7", {"no.such.logger": ["1"]}),
    (4, "", {"min.insync.replicas": ["1"]}),
)
"""
Types and names of resources, and the values that their configs are set to.
"""


def _named(each: str, names: tuple[str, ...] = NAMES, **values: Any) -> list[dict[str, Any]]:
    return [{each: name, **values} for name in names]


SAME: Final[Mapping[str, list[dict[str, Any]]]] = {
    "join_group": _named(
        "group_id",
        BOTH,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="nobody",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    ),
    "heartbeat": _named("group_id", BOTH, generation_id=1, member_id="nobody"),
    "consumer_group_heartbeat": [
        *_named("group_id", BOTH, **NOBODY),
        *(
            {"group_id": OPEN, **NOBODY, "subscribed_topic_names": [topic]}
            for topic in (OPEN, OTHER, MISSING)
        ),
    ],
    "consumer_group_describe": [
        {"group_ids": [OPEN, OTHER, MISSING, ""], "include_authorized_operations": True}
    ],
    "list_groups": [{}],
    "delete_groups": [{"groups_names": [MISSING, OTHER + MISSING]}],
    "offset_delete": _named(
        "group_id",
        (OPEN, OTHER, MISSING),
        topics=_named("name", partitions=[{"partition_index": 3}]),
    ),
    "create_topics": [
        {"topics": [creatable(name) for name in names], "validate_only": True}
        for names in (
            (OPEN, OTHER, "open-new", "new", INVALID),
            # Errors of the names come before permissions.
            ("new", "new", "__cluster_metadata", OPEN),
        )
    ],
    "delete_records": [
        {
            "topics": _named("name", partitions=[{"partition_index": 0, "offset": 0}]),
            "timeout_ms": 5000,
        }
    ],
    "offset_for_leader_epoch": [
        {
            "topics": _named("topic", partitions=[{"partition": 0, "leader_epoch": 0}]),
            "replica_id": -1,
        }
    ],
    "add_offsets_to_txn": [
        {"transactional_id": name, **STRANGE, "group_id": group} for name, group in IN_TRANSACTION
    ],
    "end_txn": _named("transactional_id", BOTH, **STRANGE, committed=False),
    "write_txn_markers": [
        {
            "markers": [
                {
                    **STRANGE,
                    "transaction_result": False,
                    "topics": [{"name": MISSING, "partition_indexes": [0]}],
                    "coordinator_epoch": 0,
                }
            ]
        }
    ],
    "describe_transactions": [{"transactional_ids": [OPEN, OTHER, MISSING]}],
    "describe_delegation_token": [{"owners": None}, {"owners": RENEWERS[0]}],
    "alter_replica_log_dirs": [
        {"dirs": [{"path": "/no/where", "topics": [{"name": MISSING, "partitions": [0, 1]}]}]}
    ],
    "create_partitions": [
        {
            "topics": _named("name", names, count=1, assignments=None),
            "timeout_ms": 5000,
            "validate_only": True,
        }
        for names in (NAMES, (OPEN, OPEN))
    ],
    "describe_quorum": [
        {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
    ],
    "describe_cluster": [{"include_cluster_authorized_operations": True}],
    "describe_producers": [{"topics": _named("name", partition_indexes=[0])}],
    "unregister_broker": [{"broker_id": 999}],
    "list_config_resources": [{}],
    "describe_topic_partitions": [
        {"topics": topics, **page}
        for topics in ([], _named("name"))
        for page in (
            {},
            {"response_partition_limit": 1},
            {
                "response_partition_limit": 1,
                "cursor": {"topic_name": OPEN, "partition_index": 0},
            },
        )
    ],
    "describe_share_group_offsets": [
        {"groups": _named("group_id", BOTH, topics=topics)}
        for topics in (_named("topic_name", partitions=[0]), None)
    ],
    "share_group_heartbeat": [
        *_named("group_id", BOTH, **NOBODY),
        *({"group_id": OPEN, **NOBODY, "subscribed_topic_names": [topic]} for topic in NAMES),
    ],
    "share_group_describe": [
        {"group_ids": [OPEN, OTHER, MISSING], "include_authorized_operations": True}
    ],
    "streams_group_describe": [
        {"group_ids": [OPEN, OTHER, MISSING], "include_authorized_operations": True}
    ],
    "alter_share_group_offsets": _named(
        "group_id",
        BOTH,
        topics=_named("topic_name", partitions=[{"partition_index": 0, "start_offset": 0}]),
    ),
    "delete_share_group_offsets": _named("group_id", BOTH, topics=_named("topic_name")),
}
"""
The fields of the requests that are the same in each version and for each broker, by API.
"""
MADE: Final[Sequence[Message]] = (
    acls(resource_type_filter=2, resource_name_filter="for nobody"),
    new_acl("another cluster", resource_type=4, principal="User:x"),
    no_acl("for nobody", pattern_type_filter=3),
    describe_all(*((kind, name, ()) for kind, name in RESOURCES)),
    replace_all(*((kind, name, [OPTIONS[kind]]) for kind, name in RESOURCES), validate=True),
    change_all(
        *((kind, name, [(OPTIONS[kind][0], SET, OPTIONS[kind][1])]) for kind, name in RESOURCES),
        validate=True,
    ),
    *(
        change(
            kind,
            name,
            *((option, SET, value) for option, values in changes.items() for value in values),
            validate=True,
        )
        for kind, name, changes in WRONG_CHANGES
    ),
    sizes([(OPEN, [0])]),
    election(0, (MISSING, [0])),
    moves((MISSING, 0, [1])),
    moving(),
    quotas(),
    new_quotas(({"user": "x"}, [("producer_byte_rate", 5.0)]), validate=True),
    # Kafka fails on a refusal of all users, and answers nothing.
    users("nobody"),
    new_credentials(without=[("nobody", 1)]),
    features(("no.such.feature", 1, 1)),
)
"""
More requests that are the same in each version and for each broker.
"""
OF_STATES: Final[Mapping[str, dict[str, Any]]] = {
    "initialize_share_group_state": {"state_epoch": 0, "start_offset": 0},
    "read_share_group_state": {"leader_epoch": 0},
    "write_share_group_state": {
        "state_epoch": 0,
        "leader_epoch": 0,
        "start_offset": 0,
        "state_batches": [],
    },
    "delete_share_group_state": {},
    "read_share_group_state_summary": {"leader_epoch": 0},
}
"""
The fields of a partition in the requests to the coordinator of share groups.
"""


def _by_id(ids: Ids, **values: Any) -> list[dict[str, Any]]:
    return [{"topic_id": each, **values} for each in (ids[OPEN], ids[OTHER], UNKNOWN_ID)]


def _topics(
    version: int, first_by_id: int, ids: Ids, *, each: str = "name", **values: Any
) -> list[dict[str, Any]]:
    return _by_id(ids, **values) if version >= first_by_id else _named(each, **values)


def _produce(version: int, ids: Ids) -> Iterator[Message]:
    def topics(records: bytes | bytearray, *indexes: int) -> list[dict[str, Any]]:
        data = [{"index": index, "records": records} for index in indexes]
        return _topics(version, 13, ids, partition_data=data)

    request = partial(api_request, "produce", acks=-1, timeout_ms=5000)
    yield request(topic_data=topics(BATCH, 0))
    for name in BOTH:
        for batch in (TRANSACTIONAL_BATCH, BATCH):
            yield request(topic_data=topics(batch, 0)[:2], transactional_id=name)
    # Permissions come before these errors, and a partition that is named twice has one answer.
    for topic in topics(b"no batch", 0, 5, 5)[:2]:
        yield request(topic_data=[topic])


def _fetch(version: int, ids: Ids) -> Iterator[Message]:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = _topics(version, 13, ids, each="topic", partitions=[partition])
    request = partial(
        api_request, "fetch", max_wait_ms=0, min_bytes=0, topics=topics, session_epoch=-1
    )
    yield request()
    follower = {"replica_id": 2}
    yield request(**{"replica_state": follower} if version >= 15 else follower)


def _list_offsets(version: int, _ids: Ids) -> Iterator[Message]:
    topics = _named("name", partitions=[{"partition_index": 0, "timestamp": -1}])
    for level in (0, 9) if version >= 2 else (0,):
        yield api_request("list_offsets", replica_id=-1, topics=topics, isolation_level=level)


def _metadata(version: int, ids: Ids) -> Iterator[Message]:
    flags = {
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": version >= 8,
        "include_cluster_authorized_operations": 8 <= version <= 10,
    }
    if version < 4:
        del flags["allow_auto_topic_creation"]
    request = partial(api_request, "metadata", **flags)
    yield request(topics=None if version else [])
    yield request(topics=_named("name"))
    if version >= 12:
        yield request(topics=_by_id(ids, name=None))


def _offset_commit(version: int, ids: Ids) -> Iterator[Message]:
    partitions = [
        {"partition_index": index, "committed_offset": 5, "committed_metadata": "m"}
        for index in (0, 7)
    ]
    topics = _topics(version, 10, ids, partitions=partitions)
    for group in BOTH:
        yield api_request("offset_commit", group_id=group, member_id="", topics=topics)


def _offset_fetch(version: int, ids: Ids) -> Iterator[Message]:
    topics = _topics(version, 10, ids, partition_indexes=[0])
    if version >= 8:
        for asked in (topics, None):
            yield api_request("offset_fetch", groups=_named("group_id", BOTH, topics=asked))
        return
    for group in BOTH:
        yield api_request("offset_fetch", group_id=group, topics=topics)
        if version >= 2:
            yield api_request("offset_fetch", group_id=group, topics=None)


def _find_coordinator(version: int, _ids: Ids) -> Iterator[Message]:
    for kind in (0, 1, 2, 9) if version >= 4 else (0, 1) if version else (0,):
        if version >= 4:
            yield api_request("find_coordinator", key_type=kind, coordinator_keys=BOTH)
        else:
            for key in BOTH:
                yield api_request("find_coordinator", key=key, key_type=kind)


def _sync_group(version: int, _ids: Ids) -> Iterator[Message]:
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    request = partial(
        api_request, "sync_group", generation_id=1, member_id="nobody", assignments=[]
    )
    for group in BOTH:
        yield request(group_id=group, **named)
        if named:
            yield request(group_id=group)


def _leave_group(version: int, _ids: Ids) -> Iterator[Message]:
    nobody = {"member_id": "nobody"}
    for group in BOTH:
        fields: dict[str, Any] = nobody if version < 3 else {"members": [nobody]}
        yield api_request("leave_group", group_id=group, **fields)


def _describe_groups(version: int, _ids: Ids) -> Iterator[Message]:
    asks = {"include_authorized_operations": True} if version >= 3 else {}
    yield api_request("describe_groups", groups=[OPEN, OTHER, MISSING], **asks)


def _delete_topics(version: int, ids: Ids) -> Iterator[Message]:
    if version < 6:
        names = [DOOMED, MISSING, INVALID]
        yield api_request("delete_topics", topic_names=names, timeout_ms=5000)
        return
    states = [
        *_named("name", (MISSING, INVALID), topic_id=ZERO_UUID),
        *({"name": None, "topic_id": each} for each in (ids[DOOMED], UNKNOWN_ID)),
    ]
    yield api_request("delete_topics", topics=states, timeout_ms=5000)
    # By name, where it was not deleted by its id.
    named = [{"name": DOOMED, "topic_id": ZERO_UUID}]
    yield api_request("delete_topics", topics=named, timeout_ms=5000)


def _init_producer_id(version: int, _ids: Ids) -> Iterator[Message]:
    request = partial(api_request, "init_producer_id")
    for name in (None, *BOTH):
        yield request(transactional_id=name, transaction_timeout_ms=60_000)
    for timeout_ms in (0, -1, 900_001):
        yield request(transactional_id=OPEN, transaction_timeout_ms=timeout_ms)
    if version >= 3:
        # A producer id without an epoch.
        yield request(transactional_id=None, transaction_timeout_ms=60_000, producer_id=5)


def _list_transactions(version: int, _ids: Ids) -> Iterator[Message]:
    for pattern in (None, f"{OPEN}|{OTHER}") if version >= 2 else (None,):
        yield api_request(
            "list_transactions",
            state_filters=[],
            producer_id_filters=[],
            transactional_id_pattern=pattern,
        )


def _add_partitions_to_txn(version: int, _ids: Ids) -> Iterator[Message]:
    for names in ((OPEN,), NAMES, ("__consumer_offsets",)):
        partitions = {name: [0, 7] for name in names}
        if version < 4:
            for transactional_id in BOTH:
                yield add_partitions_request(transactional_id, STRANGER, partitions)
            continue
        strangers = [(transactional_id, STRANGER) for transactional_id in BOTH]
        yield add_as_broker_request(strangers, partitions, verify=True)


def _txn_offset_commit(_version: int, _ids: Ids) -> Iterator[Message]:
    for name, group in (*IN_TRANSACTION, (OPEN, "")):
        offsets = {topic: {0: 5, 7: 5} for topic in NAMES}
        yield commit_in_transaction_request(name, STRANGER, group, offsets)


def _create_delegation_token(version: int, _ids: Ids) -> Iterator[Message]:
    """
    The broker has no secret key for tokens.
    """
    owner = {"owner_principal_type": "User", "owner_principal_name": "x"}
    for renewers in RENEWERS:
        for of in ({}, owner) if version >= 3 else ({},):
            yield api_request(
                "create_delegation_token", renewers=renewers, max_lifetime_ms=-1, **of
            )


def _share_fetch(_version: int, ids: Ids) -> Iterator[Message]:
    partition = {"partition_index": 0, "acknowledgement_batches": []}
    for group in BOTH:
        yield api_request(
            "share_fetch",
            group_id=group,
            member_id="m",
            share_session_epoch=0,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            max_records=1,
            batch_size=1,
            topics=_by_id(ids, partitions=[partition]),
            forgotten_topics_data=[],
        )


def _share_acknowledge(version: int, ids: Ids) -> Iterator[Message]:
    # Each needs a session.
    yield from _share_fetch(version, ids)
    partition = {"partition_index": 0, "acknowledgement_batches": []}
    for group in BOTH:
        yield api_request(
            "share_acknowledge",
            group_id=group,
            member_id="m",
            share_session_epoch=1,
            topics=_by_id(ids, partitions=[partition]),
        )


def _streams_group_heartbeat(_version: int, _ids: Ids) -> Iterator[Message]:
    for group in BOTH:
        yield api_request(
            "streams_group_heartbeat", group_id=group, **NOBODY, endpoint_information_epoch=0
        )
    for topic in NAMES:
        program = topology(part("0", [topic], changelogs=[internal(f"{topic}-changelog")]))
        yield first_heartbeat(f"program that reads {topic}", program, member_id="nobody")


def _same(api: str, _version: int, _ids: Ids) -> Iterator[Message]:
    for fields in SAME.get(api, ()):
        yield api_request(api, **fields)
    yield from (message for message in MADE if message.api.key == API_KEYS[api])


def _of_state(api: str, _version: int, ids: Ids) -> Iterator[Message]:
    topics = _by_id(ids, partitions=[{"partition": 0, **OF_STATES[api]}])
    yield api_request(api, group_id=OPEN, topics=topics)


Make = Callable[[int, Ids], Iterator[Message]]
_BY_NAME: Final[Mapping[str, Make]] = {
    **{api: partial(_same, api) for api in (*SAME, *(MODULES[each.api.key] for each in MADE))},
    **{api: partial(_of_state, api) for api in OF_STATES},
    "produce": _produce,
    "fetch": _fetch,
    "list_offsets": _list_offsets,
    "metadata": _metadata,
    "offset_commit": _offset_commit,
    "offset_fetch": _offset_fetch,
    "find_coordinator": _find_coordinator,
    "sync_group": _sync_group,
    "leave_group": _leave_group,
    "describe_groups": _describe_groups,
    "delete_topics": _delete_topics,
    "init_producer_id": _init_producer_id,
    "list_transactions": _list_transactions,
    "add_partitions_to_txn": _add_partitions_to_txn,
    "txn_offset_commit": _txn_offset_commit,
    "create_delegation_token": _create_delegation_token,
    "share_fetch": _share_fetch,
    "share_acknowledge": _share_acknowledge,
    "streams_group_heartbeat": _streams_group_heartbeat,
}
MAKERS: Final[Mapping[type[Message], Make]] = {
    REQUESTS[API_KEYS[api]]: _BY_NAME[api] for api in sorted(_BY_NAME, key=API_KEYS.__getitem__)
}
"""
By the class of the request, in the order of the keys of the APIs.
"""
