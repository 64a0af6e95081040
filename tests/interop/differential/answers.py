"""
Comparing two answers, field by field.

Every field of a message is compared as it is, but for what differs for a reason that has nothing to
do with either broker (``NORMALISED``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID, Array, Kind, Struct, fields
from barnabas.protocol.codec.schema import Type as WireType
from tests.interop.differential.batches import comparable_batches
from tests.interop.differential.rough import rough
from tests.interop.differential.sides import Side
from tests.interop.differential.steps import Answer

NORMALISED: Final[Mapping[str, str]] = {
    "topic_id": "chosen at random, as all UUIDs: only zeros are compared",
    "cluster_id": "chosen by whoever formats the directory",
    "host": "of each broker its own",
    "port": "of each broker its own",
    "session_id": "chosen at random",
    "throttle_time_ms": "of the machine's pace",
    "log_dir": "of each broker its own",
    "usable_bytes": "of the machine",
    "total_bytes": "of the machine",
    "documentation": "in everybody's own words",
    "finalized_features_epoch": "how often the metadata changed, and Kafka notes more than changes",
    "metadata_hash": "of the ids of topics, among others",
}
"""
Names of fields that are not compared as they are, each with the reason.

Besides, a timestamp since the start of the run stands for "now", whatever the field: no step sends
such a one, so it was taken from the clock of the broker.
"""

UNORDERED: Final[Mapping[str, str]] = {
    "DescribeConfigsResult.configs": "name",
    "CreatableTopicResult.configs": "name",
    "TopicProduceResponse.partition_responses": "index",
    "AddPartitionsToTxnResponse.results_by_topic_v3_and_below": "name",
    "AddPartitionsToTxnResponse.results_by_transaction": "transactional_id",
    "AddPartitionsToTxnResult.topic_results": "name",
    "AddPartitionsToTxnTopicResult.results_by_partition": "partition_index",
    "PartitionResponse.active_producers": "producer_id",
    "ListTransactionsResponse.transaction_states": "transactional_id",
    "WriteTxnMarkersResponse.markers": "producer_id",
    "WritableTxnMarkerResult.topics": "name",
    "WritableTxnMarkerTopicResult.partitions": "partition_index",
    "TransactionState.topics": "topic",
    "TopicData.partitions": "",
    "TransactionLogValue.transaction_partitions": "topic",
    "PartitionsSchema.partition_ids": "",
    "Assignment.topic_partitions": "topic_id",
    "ConsumerGroupTargetAssignmentMemberValue.topic_partitions": "topic_id",
    "ConsumerGroupCurrentMemberAssignmentValue.assigned_partitions": "topic_id",
    "ConsumerGroupCurrentMemberAssignmentValue.partitions_pending_revocation": "topic_id",
    "DescribedGroup.members": "member_id",
    "JoinGroupResponse.members": "member_id",
    "GroupMetadataValue.members": "member_id",
    "Member.subscribed_topic_names": "",
    "Member.client_tags": "key",
    "TopicInfo.topic_configs": "key",
    "EndpointToPartitions.active_partitions": "topic",
    "EndpointToPartitions.standby_partitions": "topic",
    "TopicPartition.partitions": "",
}
"""
Arrays that Kafka fills from a hash map or set: their elements are compared in the order of this
field, or in their own; ids of topics in the order of the names.
"""
ASSIGNED: Final = frozenset({"TopicPartition", "TopicPartitions"})
"""
Messages with the partitions of a member, in the order of a hash map. Their topics are compared by
name.
"""
ENDPOINTS: Final = "partitions_by_user_endpoint"
"""In the order of a hash map, whose keys are left out of the comparison."""
BOUNDS: Final = re.compile(r"within \[-?\d+, -?\d+\]")
"""Timestamps that are counted from the broker's clock, in the message of an error."""
FAILURES: Final = re.compile(r"; Creation failed: .*")
"""Why internal topics are still missing, which is told for some seconds."""
LONGEST_RUN_MS: Final = 3_600_000


class Difference(NamedTuple):
    where: str
    kafka: object
    barnabas: object

    def __str__(self) -> str:
        return f"{self.where}: Kafka {_short(self.kafka)}, Barnabas {_short(self.barnabas)}"


def _is_of_share_group(message: Any) -> bool:
    """
    Whether partitions are those of a member of a share group: by the hashes of topic ids, which are
    chosen at random, its assignor chooses among partitions.
    """
    return "share" in type(message).__module__.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Reader:
    side: Side
    started_ms: int
    loosely: bool = False

    def plain(self, answer: Any) -> Any:
        """
        An answer as dictionaries, lists and values that are the same on both sides.
        """
        if not isinstance(answer, Answer):
            return answer
        plain = self.message(answer.message, answer.version)
        return plain if answer.only_of is None else rough(plain, answer.only_of)

    def message(self, message: Any, version: int) -> dict[str, Any]:
        """
        The same of a message in some version.
        """
        plain: dict[str, Any] = {}
        for field in fields(type(message)):
            if field.is_in(version) or field.tag is not None:
                value = self._in_order(message, field.name)
                plain[field.name] = self._field(field.name, field.type, value, version)
        if type(message).__name__ in ASSIGNED and hasattr(message, "topic_id"):
            plain["topic_id"] = self.side.topic_names.get(message.topic_id, plain["topic_id"])
            epochs = plain.pop("assignment_epochs", None) or [None] * len(message.partitions)
            owned = sorted(zip(message.partitions, epochs, strict=True))
            plain["partitions"] = len(owned) if _is_of_share_group(message) else owned
        if plain.get(ENDPOINTS) is not None:
            plain[ENDPOINTS] = sorted(plain[ENDPOINTS], key=repr)
        if type(message).__name__ == "ConsumerGroupRegularExpressionValue":
            plain["version"] = "of the metadata"
        if plain.get("timestamp") == "now" and plain.get("offset", -1) >= 0:
            # Which record is the first of the latest time of arrival depends on the clock: two
            # appends may fall into one millisecond on one broker, and not on the other.
            plain["offset"] = "of now"
        return plain

    def _field(self, name: str, kind: WireType, value: Any, version: int) -> Any:
        if name in NORMALISED or isinstance(value, UUID):
            return "..." if value not in (0, "", None, ZERO_UUID) else value
        if isinstance(kind, Array) and value is not None:
            return [self._field("", kind.element, element, version) for element in value]
        if isinstance(kind, Struct) and value is not None:
            return self.message(value, version)
        if kind is Kind.RECORDS and value is not None:
            found = comparable_batches(bytes(value), self.is_now, loosely=self.loosely)
            # How many batches there is room for depends on their sizes.
            return found[:1] if self.loosely else found
        if isinstance(value, str):
            for made, alias in self.side.aliases.items():
                value = value.replace(made, alias)
            return FAILURES.sub("", BOUNDS.sub("within [...]", value))
        return "now" if isinstance(value, int) and self.is_now(value) else value

    def _in_order(self, message: Any, name: str) -> Any:
        value = getattr(message, name)
        by = UNORDERED.get(f"{type(message).__name__}.{name}")
        if by is None or value is None:
            return value
        names = self.side.topic_names

        def key(element: Any) -> Any:
            found = getattr(element, by) if by else element
            if isinstance(found, UUID):
                return names.get(found, "")
            return self.side.aliases.get(found, found) if isinstance(found, str) else found

        return sorted(value, key=key)

    def is_now(self, timestamp: int) -> bool:
        """
        Whether a timestamp was taken from a broker's clock.
        """
        return self.started_ms <= timestamp < self.started_ms + LONGEST_RUN_MS


Differences = Iterator[Difference]


def differences(kafka: Any, barnabas: Any, where: str = "") -> Differences:
    if isinstance(kafka, dict) and isinstance(barnabas, dict):
        for name in [*kafka, *(barnabas.keys() - kafka.keys())]:
            inside = f"{where}.{name}".lstrip(".")
            yield from differences(kafka.get(name), barnabas.get(name), inside)
    elif isinstance(kafka, list) and isinstance(barnabas, list):
        for number, (one, other) in enumerate(zip(kafka, barnabas, strict=False)):
            yield from differences(one, other, f"{where}[{number}]")
        if len(kafka) != len(barnabas):
            yield Difference(f"{where}: length", len(kafka), len(barnabas))
    elif kafka != barnabas:
        yield Difference(where, kafka, barnabas)


def _short(value: object, longest: int = 600) -> str:
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"
