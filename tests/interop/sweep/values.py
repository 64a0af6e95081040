"""
The values of requests: ordinary ones, by the names of their fields, and the largest ones.

Numbers tell the repetitions of a request apart, so that each may be kept beside the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from barnabas.protocol.apis import MODULES
from barnabas.protocol.codec.primitives import MAX_STRING_BYTES
from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.protocol.structs import MISSING
from tests.interop.sweep.cases import Case, Path
from tests.interop.sweep.world import BOMB, LONG_NAME, OPEN, TOPICS, USER, World
from tests.support.streams_programs import part, topology

ENTRY_BYTES: Final = 50
"""
About the size of an entry of an array of structs.
"""
LONGEST_NAME: Final = 249
"""
The longest name of a topic.
"""
LONGEST_METADATA: Final = 4096
"""
The longest text with a committed offset.
"""
NAMES: Final = frozenset(
    {
        "entity_name",
        "group_id",
        "name",
        "principal_name",
        "resource_name",
        "topic",
        "topic_name",
        "transactional_id",
    }
)
"""
Fields that name what may exist or not. Every other entry of a long array names something else.
"""
PATTERNS: Final = ("(.?){1000}" * 5, "(a*)*b", "(" + "a?" * 2000 + ")*b")
"""
Regular expressions that cost those most who try every way to match.
"""
WORDS: Final = {"state_filters": "Empty", "states_filter": "Empty", "types_filter": "classic"}
"""
What an array of names may have that match something: an answer without filters is large.
"""
ONE_BATCH: Final = bytes(build_batch([SimpleRecord(1, b"k", b"v")]))


def _numbered(prefix: str) -> Callable[[World, int], str]:
    return lambda _, number: f"{prefix}-{number}"


def _member(_: World, number: int) -> str:
    return str(UUID(int=number + 1000))


ORDINARY: Final[Mapping[str, Any]] = {
    "acknowledgement_batches": [],
    "acks": 1,
    "allow_auto_topic_creation": False,
    "assignments": [],
    "batch_size": 1,
    "broker_id": 999,
    "client_software_name": "x",
    "client_software_version": "1",
    "count": 1,
    "entity_name": _numbered("user"),
    "entity_type": "user",
    "epoch": 1,
    "expiry_time_period_ms": 1_000_000,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "forgotten_topics_data": [],
    "group_id": _numbered("group"),
    "hmac": lambda world, _: world.hmac,
    "host": "*",
    "host_filter": None,
    "include_authorized_operations": True,
    "include_cluster_authorized_operations": True,
    "include_topic_authorized_operations": True,
    "iterations": 4096,
    "key": _numbered("group"),
    "max_bytes": 1 << 20,
    "max_lifetime_ms": -1,
    "max_records": 1,
    "mechanism": 1,
    "member_id": "",
    "name": OPEN,
    "num_partitions": 1,
    "operation": 1,
    "partition_max_bytes": 1 << 20,
    "path": "/no/where",
    "permission_type": 1,
    "principal": "User:x",
    "principal_filter": None,
    "principal_name": USER,
    "principal_type": "User",
    "protocol_name": "range",
    "protocol_type": "consumer",
    "rebalance_timeout_ms": 10_000,
    "records": ONE_BATCH,
    "renew_period_ms": 1000,
    "replica_id": -1,
    "replication_factor": 1,
    "resource_name_filter": None,
    "resource_type_filter": 1,
    "resource_types": [],
    "salt": b"salt",
    "salted_password": bytes(32),
    "session_timeout_ms": 1_800_000,
    "states_filter": [],
    "subtopology_id": "0",
    "timeout_ms": 1000,
    "topic": OPEN,
    "topic_id": lambda world, _: world.topic_ids[OPEN],
    "topic_name": OPEN,
    "topic_names": [],
    "transaction_timeout_ms": 900_000,
    "transactional_id": _numbered("id"),
    "types_filter": [],
    "v3_and_below_transactional_id": _numbered("id"),
    "value": "-1",
}
"""
By the name of the field; functions get the world and the number of the request. All other fields
have their default, null, one entry, the name of the field, or zero.
"""
_OF_TOPIC: Final = {
    "resource_type": 2,
    "resource_name": LONG_NAME,
    "configs.name": "retention.ms",
}
OF_API: Final[Mapping[str, Mapping[str, Any]]] = {
    "add_offsets_to_txn": {"transactional_id": OPEN},
    "alter_client_quotas": {"key": "producer_byte_rate", "value": 1e9},
    "alter_configs": _OF_TOPIC,
    "alter_user_scram_credentials": {"name": _numbered("user"), "deletions": []},
    "consumer_group_heartbeat": {
        "group_id": _numbered("consumer"),
        "member_id": _member,
        "subscribed_topic_names": [OPEN],
        "topic_partitions": [],
    },
    "create_acls": {"resource_type": 2, "resource_name": "x", "operation": 3, "permission_type": 3},
    "create_delegation_token": {"owner_principal_type": "User", "owner_principal_name": USER},
    "create_topics": {"topics.name": _numbered("topic"), "configs.name": "retention.ms"},
    "delete_groups": {"groups_names": ["nothing"]},
    "delete_topics": {"name": "nothing", "topic_id": UUID(int=0)},
    "describe_configs": {**_OF_TOPIC, "configuration_keys": None},
    "describe_user_scram_credentials": {"name": USER},
    "fetch": {"session_epoch": 0},
    "find_coordinator": {"coordinator_keys": ["group-0"]},
    "incremental_alter_configs": _OF_TOPIC,
    "join_group": {
        "group_instance_id": _numbered("instance"),
        "name": "range",
        "metadata": b"m",
        "rebalance_timeout_ms": 500,
    },
    "list_offsets": {"name": BOMB, "timestamp": 1},
    "offset_commit": {"group_id": _numbered("committed")},
    # No group that commits: once the memory for offsets is used up, it could not commit again.
    "offset_delete": {"group_id": _numbered("deleted")},
    "list_transactions": {"state_filters": [], "producer_id_filters": []},
    "share_acknowledge": {
        "group_id": _numbered("share"),
        "member_id": _member,
        "share_session_epoch": 1,
    },
    "share_fetch": {"group_id": _numbered("share"), "member_id": _member},
    "share_group_heartbeat": {
        "group_id": _numbered("share"),
        "member_id": _member,
        "subscribed_topic_names": [OPEN],
    },
    "streams_group_heartbeat": {
        "group_id": _numbered("streams"),
        "member_id": _member,
        "process_id": "p",
        "topology": topology(part("0", [OPEN]), epoch=1),
        "subtopologies.source_topics": [OPEN],
        "subtopologies.source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
    },
    "sync_group": {"generation_id": 1},
    "txn_offset_commit": {"transactional_id": OPEN, "group_id": _numbered("committed")},
    "update_features": {"feature": "no.such.feature"},
}
"""
The same for a single API; ``configs.name`` is a field in the array or struct ``configs``.
"""
NOT_APPLIED: Final = ("create_topics", "create_partitions")
"""
APIs whose arrays of many entries are only validated: ten thousand topics slow everything down.
"""


class Size(NamedTuple):
    """
    How large a request is made.
    """

    bytes: int
    entries: int


Make = Callable[[int], Any]


def largest_values(case: Case, world: World, size: Size) -> list[Make]:
    """
    Functions that make the request with the largest value of a field, given a number.
    """
    return [_Maker(case, world, size, value).request for value in _largest(case, world, size)]


def ordinary_request(cls: Any, world: World, number: int) -> Any:
    """
    A request of the highest version without a large value.
    """
    nothing = Field("", Kind.STRING, 0, None, "", None, None, True)
    case = Case(cls, cls.api.versions[-1], ("",), nothing)
    return _Maker(case, world, Size(0, 0), None).request(number)


def _text(number: int, size: int, first: str = "") -> str:
    start = f"{first}{number}-"
    return start + "x" * (size - len(start.encode()))


def _wide(number: int, size: int) -> str:
    """
    Text of *size* bytes, most of them ASCII; Python stores each character in four bytes.
    """
    return _text(number, size, "\U0001f600")


def _largest(case: Case, world: World, size: Size) -> list[Make | None]:
    """
    Functions that make the largest values of the field, given a number; None stands for an array of
    numbers or structs.
    """
    kind, name = case.field.type, case.path[-1]
    if kind is Kind.BYTES:
        return [lambda number: b"%d" % number + bytes(size.bytes - 20)]
    if kind is Kind.RECORDS:
        large = bytes(build_batch([SimpleRecord(1, b"k", bytes(size.bytes))]))
        return [lambda _: large, lambda _: world.bomb]
    if case.is_of_entries:
        return [None]
    longest = MAX_STRING_BYTES
    if name.endswith("metadata"):
        longest = LONGEST_METADATA
    elif name.endswith("principal_name"):
        longest -= len("User:")  # Both are kept as one text.
    elif name == "group_instance_id":
        longest -= len(f"-{UUID(int=0)}")  # The member id has both.
    texts: list[Make] = [lambda number: _wide(number, longest)]
    if name in ("name", "resource_name") or "topic" in name:
        texts.append(lambda number: _text(number, LONGEST_NAME))
    if "regex" in name or "pattern" in name:
        # First, while there is memory for members who subscribe to them.
        texts[:0] = [lambda _, pattern=pattern: pattern for pattern in PATTERNS]  # type: ignore[misc]  # mypy knows no defaults of lambdas
    if isinstance(kind, Array):
        short: Make = lambda number: [f"{number}-{each}" for each in range(size.entries)]  # noqa: E731
        word = WORDS.get(name)
        same: list[Make] = [lambda _: [word] * size.entries] if word else []
        return [*(_several(each, size) for each in texts), short, *same]
    return [*texts]


def _several(text: Make, size: Size) -> Make:
    count = max(1, size.bytes // len(text(0).encode()))
    return lambda number: [text(number * count + each) for each in range(count)]


class _Maker:
    """
    Makes requests with the largest value of one field.
    """

    def __init__(self, case: Case, world: World, size: Size, value: Make | None) -> None:
        self._case = case
        self._world = world
        self._size = size
        self._value = value
        self._number = 0
        self._own = OF_API.get(MODULES[case.request.api.key], {})

    def request(self, number: int) -> Any:
        self._number = number
        values = {}
        if self._case.is_of_entries and self._case.api in NOT_APPLIED:
            values["validate_only"] = True
        return self._struct(self._case.request, (), None, **values)

    def _struct(self, cls: type, outer: Path, entry: int | None, **values: Any) -> Any:
        for field in fields(cls):
            path = (*outer, field.name)
            if not field.is_in(self._case.version) or field.name in values:
                continue
            if path == self._case.path:
                values[field.name] = self._swept(field.type, entry)
            elif path == self._case.path[: len(path)]:
                values[field.name] = self._on_the_way(field.type, path)
            else:
                value = self._ordinary(field, path, entry)
                if value is not MISSING:
                    values[field.name] = value
        return cls(**values)

    def _swept(self, kind: Type, entry: int | None) -> Any:
        if self._value is not None:
            return self._value(self._number * 1000 + (entry or 0))
        assert isinstance(kind, Array)
        size, path = self._size, self._case.path
        if isinstance(kind.element, Struct):
            count = min(size.entries, size.bytes // ENTRY_BYTES)
            return [self._struct(kind.element.cls, path, each) for each in range(count)]
        if kind.element is Kind.UUID:
            return [UUID(int=each + 1) for each in range(min(size.entries, size.bytes // 16))]
        assert isinstance(kind.element, Fixed)
        width = {"b": 1, "h": 2, "i": 4, "q": 8}[kind.element.format]
        count = min(size.entries, size.bytes // width)
        return [each % 2 ** (8 * width - 1) for each in range(count)]

    def _on_the_way(self, kind: Type, path: Path) -> Any:
        """
        The struct that has the field, or as many entries with it as there is room for.
        """
        if isinstance(kind, Struct):
            return self._struct(kind.cls, path, None)
        assert isinstance(kind, Array)
        assert isinstance(kind.element, Struct)
        count = 1
        if self._case.field.type is Kind.STRING and path == self._case.path[:-1]:
            assert self._value is not None
            text = self._value(0).encode()
            count = min(self._size.entries, self._size.bytes // (len(text) + ENTRY_BYTES)) or 1
        return [self._struct(kind.element.cls, path, entry) for entry in range(count)]

    def _ordinary(self, field: Field, path: Path, entry: int | None) -> Any:
        name = field.name
        if entry is not None and entry % 2 and name in NAMES and field.type is Kind.STRING:
            return f"{name}-{entry}"
        for table, key in ((self._own, ".".join(path[-2:])), (self._own, name), (ORDINARY, name)):
            if key in table:
                value = table[key]
                if value == OPEN and entry is not None:
                    return TOPICS[entry // 2] if entry // 2 < len(TOPICS) else OPEN
                return value(self._world, self._number) if callable(value) else value
        return self._plain(field, field.type, path, entry)

    def _plain(self, field: Field, kind: Type, path: Path, entry: int | None) -> Any:
        if isinstance(kind, Fixed) and entry is not None and "partition" in field.name:
            return entry % 2**15
        is_null = field.default is None and not field.is_nullable_in(self._case.version)
        if field.default is not MISSING and field.default != [] and not is_null:
            return MISSING
        if isinstance(kind, Array):
            return [self._plain(field, kind.element, path, None)]
        if isinstance(kind, Struct):
            return self._struct(kind.cls, path, None)
        if isinstance(kind, Fixed):
            return {"?": False, "d": 1.0}.get(kind.format, 0)
        number = entry or 0
        texts = {Kind.STRING: f"{field.name}-{number}", Kind.UUID: UUID(int=number + 1)}
        return texts.get(kind, b"")
