"""
A coordinator that has only the log knows what the one before knew.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordination.coordinator_runtime.loading import Loader
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.offsets.deleting import DeletedTopic
from barnabas.coordination.groups.records import decode_record, encode_record
from barnabas.coordination.groups.shard_state import ShardState
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.records.batch import batches, build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.support.coordination import GROUP, Coordination, durable, subscription
from tests.support.some import some

GOLDEN_LOGS = [
    "groups",
    "groups-compacted",
    "transactions-tv0",
    "transactions-tv1",
    "transactions-tv2",
]


TYPES = {
    "3": "consumer",
    "5": "consumer",
    "10": "share",
    "11": "share",
    "17": "streams",
    "19": "streams",
}


class Decoded(NamedTuple):
    """
    A record as Kafka's own tool prints it; a control record has a marker instead.
    """

    offset: int
    producer_id: int
    key: dict[str, Any] | None
    value: dict[str, Any] | None
    marker: str | None


def decoded(golden: Path, name: str) -> Iterator[Decoded]:
    """
    What Kafka says is in the log of ``__consumer_offsets``.
    """
    producer_id = -1
    text = (golden / name / "dump" / "__consumer_offsets-0.log.decoded.txt").read_text()
    for line in text.splitlines():
        if line.startswith("baseOffset:"):
            producer_id = int(line.split("producerId: ")[1].split()[0])
        if not line.startswith("| offset:"):
            continue
        offset = int(line.split()[2])
        if "endTxnMarker: " in line:
            marker = line.split("endTxnMarker: ")[1].split()[0]
            yield Decoded(offset, producer_id, None, None, marker)
            continue
        key, payload = line.split(" key: ")[1].split(" payload: ")
        value = None if payload == "<DELETE>" else json.loads(payload)
        yield Decoded(offset, producer_id, json.loads(key), value, None)


def replayed(golden: Path, name: str) -> ShardState:
    state = new_state()
    for segment in segments(golden, name):
        for batch in batches(segment.read_bytes()):
            state.replay(batch)
    return state


@pytest.mark.parametrize("name", GOLDEN_LOGS)
def test_loading_skips_superseded_records_with_the_same_result(golden: Path, name: str) -> None:
    state = new_state()
    loader = Loader(state)
    for segment in segments(golden, name):
        for batch in batches(segment.read_bytes()):
            loader.add(batch)
    loader.finish()

    expected = replayed(golden, name)
    assert durable(expected) == durable(state)
    assert sorted(map(repr, expected.groups)) == sorted(map(repr, state.groups))


def new_state() -> ShardState:
    return Coordination().state


def segments(golden: Path, name: str) -> list[Path]:
    return sorted((golden / name / "data" / "__consumer_offsets-0").glob("*.log"))


def uuid_of(text: str) -> UUID:
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def expected_offsets(golden: Path, name: str) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """
    The committed offsets, computed from Kafka's words.
    """
    committed: dict[tuple[str, str, int], tuple[Any, ...]] = {}
    pending: dict[int, dict[tuple[str, str, int], tuple[Any, ...]]] = {}
    for record in some(decoded(golden, name)):
        if record.marker is not None:
            ended = pending.pop(record.producer_id, {})
            if record.marker == "COMMIT":
                committed |= ended
            continue
        assert record.key is not None
        if record.key["type"] != "1":
            continue
        data = record.key["data"]
        key = (data["group"], data["topic"], data["partition"])
        into = committed if record.producer_id == -1 else pending.setdefault(record.producer_id, {})
        if record.value is None:
            into.pop(key, None)
            continue
        value = record.value["data"]
        topic_id = value.get("topicId")
        into[key] = (
            value["offset"],
            value["leaderEpoch"],
            value["metadata"],
            value["commitTimestamp"],
            ZERO_UUID if topic_id is None else uuid_of(topic_id),
        )
    return committed


@pytest.mark.parametrize("name", GOLDEN_LOGS)
def test_committed_offsets_of_kafkas_logs_are_loaded(golden: Path, name: str) -> None:
    expected = expected_offsets(golden, name)

    actual = {
        (group, topic, partition): (
            o.offset,
            o.leader_epoch,
            o.metadata,
            o.commit_timestamp_ms,
            o.topic_id,
        )
        for group, topic, partition, o in replayed(golden, name).offsets.committed
    }

    assert expected == actual
    assert expected or name != "groups"


class Expected:
    """
    The groups in a log, computed from Kafka's words.
    """

    def __init__(self, records: Iterable[Decoded]) -> None:
        self.classic: dict[str, dict[str, Any]] = {}
        self.modern: dict[str, tuple[str, set[str]]] = {}  # type and members
        self.with_offsets: set[str] = set()
        for record in records:
            if record.key is not None:
                value = None if record.value is None else record.value["data"]
                self.add(record.key["type"], record.key["data"], value)

    def add(self, kind: str, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        match kind:
            case "1":
                self.with_offsets.add(key["group"])
            case "2" if value is None:
                self.classic.pop(key["group"], None)
            case "2":
                assert value is not None
                self.classic[key["group"]] = value
            case "3" | "11" | "17" if value is None:
                self.modern.pop(key["groupId"], None)
            case "3" | "11" | "17":
                self.members(kind, key)
            case "5" | "10" | "19" if value is None:
                self.members(kind, key).discard(key["memberId"])
            case "5" | "10" | "19":
                self.members(kind, key).add(key["memberId"])

    def members(self, kind: str, key: dict[str, Any]) -> set[str]:
        return self.modern.setdefault(key["groupId"], (TYPES[kind], set()))[1]


@pytest.mark.parametrize("name", GOLDEN_LOGS)
def test_groups_of_kafkas_logs_are_loaded(golden: Path, name: str) -> None:
    expected = Expected(decoded(golden, name))

    actual = {group.group_id: group for group in replayed(golden, name).groups}

    for group_id, value in expected.classic.items():
        group = actual[group_id]
        assert isinstance(group, ClassicGroup)
        assert value["generation"] == group.generation_id
        assert value["protocolType"] == (group.protocol_type or "")
        assert value["protocol"] == group.protocol_name
        assert value["leader"] == group.leader_id
        assert value["currentStateTimestamp"] == group.state_timestamp_ms
        assert [m["memberId"] for m in value["members"]] == list(group.members)
    assert expected.modern == {
        group.group_id: (group.type.value, set(group.members))
        for group in actual.values()
        if not isinstance(group, ClassicGroup)
    }
    # What else there is was made for its offsets.
    assert set(actual) - set(expected.classic) - set(expected.modern) <= expected.with_offsets


@pytest.mark.parametrize("name", GOLDEN_LOGS)
def test_records_read_from_kafka_are_written_identically(golden: Path, name: str) -> None:
    count = 0
    for segment in segments(golden, name):
        for batch in batches(segment.read_bytes()):
            if batch.is_control:
                continue
            for stored in batch.records():
                record = decode_record(stored.key, stored.value)
                assert record is not None
                assert (stored.key, stored.value) == encode_record(record)
                count += 1
    assert count > 0


def test_batches_equal_kafkas_for_the_same_records_and_time(golden: Path) -> None:
    count = 0
    for segment in segments(golden, "groups"):
        for batch in batches(segment.read_bytes()):
            if batch.is_control or batch.producer_id != -1:
                continue
            records = [SimpleRecord(r.timestamp, r.key, r.value) for r in batch.records()]
            ours = build_batch(
                records,
                base_offset=batch.base_offset,
                partition_leader_epoch=batch.partition_leader_epoch,
                base_sequence=0,
            )
            assert bytes(batch.data) == bytes(ours)
            count += 1
    assert count > 0


# Any sequence of requests.

CLIENTS = st.integers(0, 5)
TOPICS = st.sampled_from(["x", "y"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["join", "commit"]), CLIENTS, TOPICS),
    st.tuples(st.sampled_from(["sync", "sync", "heartbeat", "leave"]), CLIENTS, TOPICS),
    st.tuples(st.sampled_from(["join_static", "simple_commit"]), st.integers(0, 2), TOPICS),
    st.tuples(
        st.sampled_from(["delete_topic", "delete_group", "expire", "restart"]), st.just(0), TOPICS
    ),
    st.tuples(st.just("wait"), st.integers(0, 12_000), TOPICS),
)


class Program:
    """
    Clients that do what clients do: remember an id when they are told one, and assign when they
    lead.
    """

    def __init__(self) -> None:
        self.c = Coordination(offsets_retention_minutes=1, group_initial_rebalance_delay_ms=500)
        self.ids: dict[int, str] = {}
        self.stable_states = 0

    def join(self, number: int, topic: str) -> None:
        answer = self.c.join(self.ids.get(number, ""), **self.options(topic))
        if not answer.is_parked and answer.now.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.ids[number] = answer.now.member_id
            self.c.join(self.ids[number], **self.options(topic))
        elif not answer.is_parked and answer.now.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.ids.pop(number, None)

    def join_static(self, number: int, topic: str) -> None:
        self.c.join(instance_id=f"i{number}", **self.options(topic))

    def sync(self, number: int, _topic: str) -> None:
        """
        The leader always has an assignment ready, whoever it is.
        """
        group = self.c.state.groups.get_classic(GROUP)
        if group is None:
            return
        member_id = self.ids.get(number, "")
        if number == 0 and group.leader_id is not None:
            member_id = group.leader_id
        assignment = {m: f"{m} {group.generation_id}".encode() for m in group.members}
        self.c.sync(member_id, group.generation_id, assignment)

    def heartbeat(self, number: int, _topic: str) -> None:
        self.c.heartbeat(self.ids.get(number, ""), self.generation_id)

    def leave(self, number: int, _topic: str) -> None:
        self.c.leave(self.ids.get(number, ""))

    def commit(self, number: int, topic: str) -> None:
        self.c.commit_offsets(
            {(topic, 0): self.c.now_ms},
            member_id=self.ids.get(number, ""),
            generation_id=self.generation_id,
        )

    def simple_commit(self, number: int, topic: str) -> None:
        self.c.commit_offsets(
            {(topic, number): self.c.now_ms}, group_id=f"simple-{number}", retention_ms=number or -1
        )

    def delete_topic(self, _number: int, topic: str) -> None:
        self.c.write_all(self.c.state.deleting.forget_topics([DeletedTopic(topic, ZERO_UUID)]))

    def delete_group(self, _number: int, _topic: str) -> None:
        self.c.write(self.c.state.deleting.delete_groups([GROUP, "simple-1"])[0])

    def wait(self, number: int, _topic: str) -> None:
        self.c.advance(number)

    def expire(self, _number: int, _topic: str) -> None:
        self.c.write_all(self.c.state.deleting.expire(self.c.now_ms))

    def restart(self, _number: int, _topic: str) -> None:
        self.c.restart()

    def loaded(self) -> ShardState:
        """
        What a broker makes of the log when it starts.
        """
        state = new_state()
        loader = Loader(state)
        for offset, (key, value) in enumerate(self.c.log):
            record = SimpleRecord(self.c.now_ms, key, value)
            (batch,) = batches(build_batch([record], base_offset=offset, base_sequence=0))
            loader.add(batch)
        loader.finish()
        return state

    @staticmethod
    def options(topic: str) -> dict[str, Any]:
        return {
            "protocols": (("range", subscription(topic)),),
            "session_timeout_ms": 6000,
            "rebalance_timeout_ms": 9000,
        }

    @property
    def generation_id(self) -> int:
        group = self.c.state.groups.get_classic(GROUP)
        return -1 if group is None else group.generation_id

    def check(self) -> None:
        """
        What a coordinator would know that only has the log is what this one knows: all offsets,
        and all groups that are not in the middle of something.
        """
        live, again = self.c.durable(), durable(self.c.replayed())
        assert without_husks(again) == without_husks(durable(self.loaded()))
        assert live["offsets"] == again["offsets"]
        for group_id, known in live["groups"].items():
            group = self.c.state.groups.get_classic(group_id)
            assert group is not None
            # A static member that comes back to a stable group may want other topics. They count
            # from the next generation on or from a restart, as in Kafka.
            facts = known._replace(subscribed_topics=group.compute_subscribed_topics())
            if facts.state is GroupState.STABLE:
                self.stable_states += 1
                assert facts == again["groups"][group_id]
            elif facts.state is GroupState.EMPTY and not facts.is_simple:
                assert facts == again["groups"][group_id]


def without_husks(known: dict[str, Any]) -> dict[str, Any]:
    """
    Leave out groups that were made for offsets which are deleted by now: compaction, too, leaves
    nothing of them.
    """
    needed = {group_id for group_id, _, _, _ in known["offsets"]}
    groups = {g: f for g, f in known["groups"].items() if not f.is_simple or g in needed}
    return known | {"groups": groups}


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_replay_equals_the_live_state(steps: list[tuple[str, int, str]]) -> None:
    program = Program()
    for step, number, topic in steps:
        with suppress(KafkaError):
            getattr(program, step)(number, topic)
        program.check()


def test_topics_of_a_returned_static_member_are_recomputed_after_a_restart() -> None:
    # Kafka computes them for each generation (``ClassicGroup.initNextGeneration``) and at loading.
    program = Program()
    program.join_static(0, "x")
    program.wait(500, "")
    program.sync(0, "")
    program.join_static(0, "y")
    group = program.c.state.groups.get_classic(GROUP)

    assert group is not None
    assert frozenset("x") == group.subscribed_topics
    assert frozenset("y") == durable(program.c.replayed())["groups"][GROUP].subscribed_topics
    program.check()


def test_random_group_histories_reach_interesting_states() -> None:
    program = Program()
    program.join(0, "x")
    program.join(1, "y")
    program.wait(2000, "")
    program.sync(1, "")
    program.sync(0, "")
    program.check()
    assert 1 == program.stable_states

    program.commit(0, "x")
    program.join_static(0, "x")
    program.restart(0, "")
    program.check()

    assert 2 == program.stable_states
    assert 1 == len(list(program.c.state.offsets.committed))
