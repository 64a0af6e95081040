"""
The states of the share coordinator, without a log: which records follow from which request.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.coordination.coordinator_runtime.loading import LaterRecord
from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.share.coordinator.records import (
    ShareRecord,
    decode_record,
    encode_record,
)
from barnabas.coordination.share.coordinator.state import (
    MOST_BATCHES,
    ShareCoordinatorState,
    ShareResult,
    StateToWrite,
)
from barnabas.coordination.share.keys import SharePartitionKey, parse_coordinator_key
from barnabas.protocol.errors import CoordinatorNotAvailable, DecodeError, InvalidRequest
from barnabas.protocol.internal_topics.share_state_records import (
    ShareSnapshotValue,
    ShareUpdateValue,
    StateBatch,
)
from barnabas.protocol.structs import replace
from barnabas.server.config import BrokerConfig
from tests.support.limits import stated
from tests.support.traced import memory_taken_by

TOPIC = UUID(int=5)
KEY = SharePartitionKey("g", TOPIC, 0)
UPDATES = 3


class Coordinator:
    """
    A state, and the log of its records.
    """

    def __init__(self) -> None:
        self.memory = MemoryBudget("States", 2**20)
        self.state = self.empty(self.memory)
        self.log: list[tuple[bytes, bytes | None]] = []

    @staticmethod
    def empty(memory: MemoryBudget | None = None) -> ShareCoordinatorState:
        return ShareCoordinatorState(
            lambda topic_id, partition: topic_id == TOPIC and partition < 2,
            updates_per_snapshot=UPDATES,
            memory=memory or MemoryBudget("Other states", 2**20),
        )

    def do(self, result: ShareResult) -> list[str]:
        """
        Append and apply records; return what they are.
        """
        kinds = []
        for record in result.records:
            self.log.append(encode_record(record))
            self.state.apply(record, len(self.log) - 1, -1)
            kinds.append(type(record.value).__name__.removesuffix("Value"))
        return kinds

    def replayed(self) -> ShareCoordinatorState:
        state = self.empty()
        for offset, (key, value) in enumerate(self.log):
            state.replay_record(key, value, offset)
        return state


def written(
    *batches: tuple[int, int, int, int], start: int = -1, state_epoch: int = 0, leader: int = 0
) -> StateToWrite:
    return StateToWrite(
        state_epoch=state_epoch,
        leader_epoch=leader,
        start_offset=start,
        delivery_complete_count=0,
        batches=[
            StateBatch(first_offset=a, last_offset=b, delivery_state=c, delivery_count=d)
            for a, b, c, d in batches
        ],
    )


@pytest.fixture
def coordinator() -> Coordinator:
    made = Coordinator()
    made.do(made.state.initialize(KEY, 0, 0, now_ms=1000))
    return made


def test_replay_of_the_log_gives_the_share_state(coordinator: Coordinator) -> None:
    state = coordinator.state
    for offset in range(8):
        new = written((offset, offset, 2, 1), start=offset // 2, leader=-1)
        coordinator.do(state.write(KEY, new, 2000))
        coordinator.do(state.read(KEY, offset // 3, 3000)[0])

    for skipped in (0, state.first_needed_offset):
        replayed = coordinator.empty()
        for offset, (key, value) in enumerate(coordinator.log):
            if offset >= skipped:
                replayed.replay_record(key, value, offset)
        assert state.known[KEY].value == replayed.known[KEY].value
        assert state.known[KEY].leader_epoch == replayed.known[KEY].leader_epoch
    assert 0 < state.first_needed_offset


def test_cold_share_states_are_rewritten(coordinator: Coordinator) -> None:
    other = SharePartitionKey("h", TOPIC, 1)
    coordinator.do(coordinator.state.initialize(other, 0, 0, now_ms=5000))

    assert 1 == len(coordinator.do(coordinator.state.snapshot_cold(6000, interval_ms=5000)))
    assert coordinator.state.known[KEY].value.write_timestamp == 6000
    assert coordinator.state.known[KEY].value.create_timestamp == 1000
    assert 1 == len(coordinator.do(coordinator.state.snapshot_cold(10_000, interval_ms=5000)))
    assert [] == coordinator.do(coordinator.state.snapshot_cold(99_000, interval_ms=5000))


def test_deleted_share_state_needs_only_its_tombstone(coordinator: Coordinator) -> None:
    coordinator.do(coordinator.state.initialize(SharePartitionKey("h", TOPIC, 1), 0, 0, 1000))
    assert ["NoneType"] == coordinator.do(coordinator.state.delete(KEY))
    assert [] == coordinator.do(coordinator.state.delete(KEY))
    assert 1 == coordinator.state.first_needed_offset

    assert ["NoneType"] == coordinator.do(coordinator.state.forget_topics([TOPIC]))
    assert [] == coordinator.do(coordinator.state.forget_topics([TOPIC]))

    assert not coordinator.replayed().known
    assert 3 == coordinator.state.first_needed_offset


def test_unknown_record_types_are_skipped(coordinator: Coordinator) -> None:
    assert decode_record(b"\0\7key", b"\0\0") is None
    with pytest.raises(DecodeError):
        decode_record(None, b"")
    update, _ = encode_record(coordinator.state.write(KEY, written(), 2000).records[0])
    with pytest.raises(DecodeError):
        decode_record(update, None)


def test_unknown_value_version_is_refused(coordinator: Coordinator) -> None:
    # As in Apache Kafka, whose coordinator does not load the partition.
    with pytest.raises(LaterRecord, match=r"ShareSnapshotValue v7 is not known\. A later version"):
        decode_record(coordinator.log[0][0], b"\0\7value")


def test_update_without_its_snapshot_creates_a_state() -> None:
    made = Coordinator()
    made.do(made.state.initialize(KEY, 0, 0, now_ms=1000))
    made.do(made.state.write(KEY, written((3, 4, 2, 1), start=3), now_ms=2000))
    replayed = made.empty()

    replayed.replay_record(*made.log[1], 1)

    value = replayed.known[KEY].value
    assert isinstance(value, ShareSnapshotValue)
    assert 3 == value.start_offset
    assert isinstance(decode_record(*made.log[1]).value, ShareUpdateValue)  # type: ignore[union-attr]


@pytest.mark.parametrize("group_id", ["g", "a:b", ":"])
def test_share_state_key_text_can_be_parsed(group_id: str) -> None:
    key = SharePartitionKey(group_id, TOPIC, 3)

    assert key == parse_coordinator_key(key.coordinator_key)


@pytest.mark.parametrize("text", ["", "g", "g:0", ":AAAAAAAAAAAAAAAAAAAABQ:0", "g:x:0", "g:A:B"])
def test_malformed_share_state_key_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_coordinator_key(text)


# Memory


def key_of(number: int) -> SharePartitionKey:
    return SharePartitionKey(f"group{number}", TOPIC, 0)


def test_share_states_beyond_the_memory_budget_are_refused() -> None:
    coordinator = Coordinator()
    coordinator.memory.limit_bytes = 10_000

    def check(result: ShareResult) -> ShareResult:
        coordinator.state.check_room(result)
        return result

    def fill() -> None:
        for number in range(100):
            made = coordinator.state.initialize(key_of(number), 0, 0, now_ms=1000)
            coordinator.do(check(made))

    with pytest.raises(CoordinatorNotAvailable, match="States have taken the"):
        fill()
    assert 10 < len(coordinator.state.known) < 20

    apart = [(offset, offset, 2, 1) for offset in range(0, 2 * MOST_BATCHES, 2)]
    coordinator.do(check(coordinator.state.write(key_of(0), written(*apart), now_ms=2000)))
    further = [(offset, offset, 2, 1) for offset in range(0, 2 * MOST_BATCHES + 2, 2)]
    with pytest.raises(CoordinatorNotAvailable):
        check(coordinator.state.write(key_of(0), written(*further), now_ms=2000))


def test_memory_of_deleted_share_states_is_released(coordinator: Coordinator) -> None:
    coordinator.do(coordinator.state.write(KEY, written((3, 3, 2, 1), (5, 5, 2, 1)), now_ms=2000))
    assert 800 < coordinator.memory.used_bytes < 900

    coordinator.do(coordinator.state.write(KEY, written(start=4), now_ms=2000))
    assert 600 < coordinator.memory.used_bytes < 700

    coordinator.do(coordinator.state.delete(KEY))
    assert 0 == coordinator.memory.used_bytes


@pytest.mark.parametrize("count", [0, 1, 10, 100])
def test_counted_memory_is_within_a_fifth_of_the_actual(count: int) -> None:
    source, coordinator = Coordinator(), Coordinator()
    coordinator.memory.limit_bytes = 2**30
    source.do(source.state.initialize(KEY, 0, 2**33, now_ms=2**41))
    apart = [(2**33 + n, 2**33 + n, n % 2, 1) for n in range(0, 2 * count, 2)]
    batches = written(*apart).batches
    value = replace(source.state.known[KEY].value, state_batches=[*batches])
    records = [encode_record(ShareRecord(key_of(number), value)) for number in range(500)]

    def replay() -> None:
        for key, encoded in records:
            coordinator.state.replay_record(key, encoded, 2**33)

    taken = memory_taken_by(replay)

    assert taken * 0.8 < coordinator.memory.used_bytes < taken * 1.2, taken / len(records)


def test_share_state_limit_matches_the_documentation() -> None:
    assert stated("share-states") == BrokerConfig().barnabas_max_coordinator_bytes
