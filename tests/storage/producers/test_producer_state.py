from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.errors import InvalidProducerEpoch
from barnabas.protocol.records.batch import RecordBatch, build_batch, read_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.index.txn_index import CompletedTxn
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import ProducerStateEntry
from barnabas.storage.producers.snapshots import ProducerSnapshots
from barnabas.storage.producers.state import ProducerStateManager, ProducerStateManagerConfig
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.limits import stated

DIRECTORY = Path("/data/t-0")
NOW = 1_700_000_000_000
DAY = 86_400_000


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    return files


def manager(files: MemoryFiles) -> ProducerStateManager:
    return ProducerStateManager(
        "t-0", ProducerSnapshots(files, DIRECTORY), ProducerStateManagerConfig(), StillClock()
    )


@pytest.fixture
def state(files: MemoryFiles) -> ProducerStateManager:
    return manager(files)


def data_batch(
    producer_id: int, offset: int, sequence: int, *, transactional: bool = False, epoch: int = 0
) -> RecordBatch:
    data = build_batch(
        [SimpleRecord(NOW, b"k", b"v")],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    return read_batch(memoryview(data))


def append(
    state: ProducerStateManager,
    producer_id: int,
    offset: int,
    sequence: int = 0,
    *,
    transactional: bool = False,
) -> None:
    info = state.prepare_update(producer_id, AppendOrigin.CLIENT)
    info.append(data_batch(producer_id, offset, sequence, transactional=transactional), None)
    state.update(info)
    state.map_end_offset = offset + 1


def end(state: ProducerStateManager, producer_id: int, offset: int) -> CompletedTxn:
    marker = EndTransactionMarker(ControlRecordType.ABORT, 0)
    data = marker.batch(NOW, base_offset=offset, producer_id=producer_id, producer_epoch=0)
    info = state.prepare_update(producer_id, AppendOrigin.COORDINATOR)
    completed = info.append(read_batch(memoryview(data)), None, 0)
    state.update(info)
    state.map_end_offset = offset + 1
    assert completed is not None
    return completed


def first_unstable(state: ProducerStateManager) -> int | None:
    found = state.transactions.first_unstable_offset()
    return None if found is None else found.message_offset


def snapshots(files: MemoryFiles) -> list[int]:
    return [int(name[:20]) for name in files.names(DIRECTORY) if name.endswith(".snapshot")]


def test_update_without_a_producer_id_is_an_error(state: ProducerStateManager) -> None:
    with pytest.raises(ValueError, match="Invalid producer id -1"):
        state.update(state.prepare_update(-1, AppendOrigin.CLIENT))


def test_replicated_batches_are_not_validated(
    state: ProducerStateManager, caplog: pytest.LogCaptureFixture
) -> None:
    append(state, 1, 0, 0)
    info = state.prepare_update(1, AppendOrigin.REPLICATION)
    info.append(data_batch(1, 1, 77, epoch=3), None)
    state.update(info)

    info = state.prepare_update(1, AppendOrigin.REPLICATION)
    info.append(data_batch(1, 2, 5, epoch=1), None)
    assert "which is < the last seen epoch 3" in caplog.text

    with pytest.raises(InvalidProducerEpoch):
        state.prepare_update(1, AppendOrigin.COORDINATOR).append(data_batch(1, 2, 5), None)


def test_marker_of_a_coordinator_requires_a_transaction_version(
    state: ProducerStateManager,
) -> None:
    info = state.prepare_update(1, AppendOrigin.COORDINATOR)
    with pytest.raises(ValueError, match="transaction version"):
        info.append_end_txn_marker(
            EndTransactionMarker(ControlRecordType.COMMIT, 0),
            producer_epoch=0,
            offset=0,
            timestamp=NOW,
            transaction_version=-1,
        )


def test_empty_control_batch_completes_nothing(state: ProducerStateManager) -> None:
    data = build_batch([], base_offset=5, producer_id=1, producer_epoch=0, is_control=True)
    info = state.prepare_update(1, AppendOrigin.REPLICATION)

    assert None is info.append(read_batch(memoryview(data)), None)


def test_transactions_are_ordered_whatever_the_order_of_updates(
    state: ProducerStateManager,
) -> None:
    later = state.prepare_update(1, AppendOrigin.REPLICATION)
    later.append(data_batch(1, 20, 0, transactional=True), LogOffsetMetadata(20, 0, 300))
    earlier = state.prepare_update(2, AppendOrigin.REPLICATION)
    earlier.append(data_batch(2, 10, 0, transactional=True), None)

    state.update(later)
    state.update(earlier)

    assert 10 == first_unstable(state)
    state.complete_txn(end(state, 2, 30))
    state.on_high_watermark_updated(31)
    assert LogOffsetMetadata(20, 0, 300) == state.transactions.first_unstable_offset()


def test_only_a_started_transaction_can_be_completed(state: ProducerStateManager) -> None:
    with pytest.raises(ValueError, match="which was not started"):
        state.complete_txn(CompletedTxn(1, 5, 6, True))


def test_snapshot_is_taken_only_after_a_change(
    state: ProducerStateManager, files: MemoryFiles
) -> None:
    assert None is state.take_snapshot()
    append(state, 1, 0)

    assert state.take_snapshot() is not None
    assert None is state.take_snapshot()

    assert [1] == snapshots(files)
    assert 1 == state.snapshots.latest_offset


def reload(files: MemoryFiles, end_offset: int, *, start: int = 0, now: int = NOW) -> list[int]:
    """
    The producers that are known after a start.
    """
    state = manager(files)
    state.truncate_and_reload(start, end_offset, now)
    return sorted(state.active_producers)


def three_snapshots(state: ProducerStateManager) -> None:
    for producer_id, offset in ((1, 0), (2, 10), (3, 20)):
        append(state, producer_id, offset)
        state.take_snapshot()


@pytest.fixture
def three(state: ProducerStateManager) -> ProducerStateManager:
    """
    A log that remembers three producers.
    """
    state.config = ProducerStateManagerConfig(most_producers=3)
    return state


def test_new_producer_beyond_the_maximum_evicts_the_oldest(three: ProducerStateManager) -> None:
    for offset, producer_id in enumerate((7, 8, 9, 8, 10)):
        append(three, producer_id, offset, int(offset == 3))

    assert [8, 9, 10] == [*three.active_producers]


def test_producer_with_an_open_transaction_is_not_evicted(three: ProducerStateManager) -> None:
    append(three, 7, 0, transactional=True)
    for offset in range(1, 6):
        append(three, 7 + offset, offset)

    assert [7, 11, 12] == [*three.active_producers]
    assert end(three, 7, 6).first_offset == 0


def test_verifications_have_the_same_maximum_as_producers(three: ProducerStateManager) -> None:
    for producer_id in range(5):
        three.maybe_create_verification_state_entry(producer_id, 0, 0, supports_epoch_bump=False)

    there = [three.verification_state_entry(producer_id) for producer_id in range(5)]
    assert [False, False, True, True, True] == [entry is not None for entry in there]


def test_number_of_producers_matches_the_documented_maximum() -> None:
    assert stated("producers") == ProducerStateManagerConfig().most_producers


def test_newest_snapshot_not_above_the_end_offset_is_loaded(
    state: ProducerStateManager, files: MemoryFiles
) -> None:
    three_snapshots(state)

    assert [1, 2, 3] == reload(files, 50)
    assert [1, 2] == reload(files, 20)
    assert [1, 11] == snapshots(files)


def test_snapshots_at_or_below_the_log_start_offset_are_removed(
    state: ProducerStateManager, files: MemoryFiles
) -> None:
    three_snapshots(state)

    assert [1, 2, 3] == reload(files, 50, start=11)
    assert [21] == snapshots(files)


def test_corrupt_snapshot_is_removed_and_the_previous_one_loaded(
    state: ProducerStateManager, files: MemoryFiles
) -> None:
    three_snapshots(state)
    files.nodes[DIRECTORY / f"{21:020d}.snapshot"].data[30] ^= 1

    assert [1, 2] == reload(files, 50)
    assert [1, 11] == snapshots(files)


def test_state_without_a_snapshot_begins_at_the_log_start_offset(files: MemoryFiles) -> None:
    state = manager(files)

    state.truncate_and_reload(7, 50, NOW)

    assert 7 == state.map_end_offset
    assert state.is_empty


def test_expired_producers_are_not_loaded(state: ProducerStateManager, files: MemoryFiles) -> None:
    append(state, 1, 0)
    append(state, 2, 1, transactional=True)
    state.take_snapshot()

    assert [1, 2] == reload(files, 2, now=NOW + DAY - 1)
    assert [2] == reload(files, 2, now=NOW + DAY)


def test_reload_keeps_a_state_within_the_range(state: ProducerStateManager) -> None:
    append(state, 1, 0)

    state.truncate_and_reload(0, 1, NOW + 10 * DAY)

    assert [1] == list(state.active_producers)


def test_later_log_start_offset_moves_the_state(state: ProducerStateManager) -> None:
    append(state, 1, 0, transactional=True)
    state.complete_txn(end(state, 1, 1))
    assert 0 == first_unstable(state)

    state.on_log_start_offset_incremented(30)

    assert 30 == state.map_end_offset
    assert None is first_unstable(state)
    assert None is state.take_snapshot()


def test_producer_state_can_be_cleared(state: ProducerStateManager, files: MemoryFiles) -> None:
    three_snapshots(state)

    state.truncate_fully_and_start_at(100)

    assert ([], 100, True) == (snapshots(files), state.map_end_offset, state.is_empty)
    assert state.take_snapshot() is not None


@pytest.mark.parametrize(
    ("bases", "expected"),
    [([0, 11], [11, 21]), ([0, 1, 11, 21], [1, 11, 21]), ([0, 30], []), ([], [21])],
)
def test_snapshots_without_a_segment_are_removed(
    state: ProducerStateManager, files: MemoryFiles, bases: list[int], expected: list[int]
) -> None:
    three_snapshots(state)

    state.snapshots.remove_strays(bases)

    assert expected == snapshots(files)


def test_snapshot_is_removed_with_its_segment(
    state: ProducerStateManager, files: MemoryFiles
) -> None:
    three_snapshots(state)

    marked = state.snapshots.mark_for_deletion(11)

    assert marked is not None
    assert [1, 21] == snapshots(files)
    assert f"{11:020d}.snapshot.deleted" in files.names(DIRECTORY)
    assert None is state.snapshots.mark_for_deletion(11)
    files.remove(DIRECTORY / f"{1:020d}.snapshot")
    assert None is state.snapshots.mark_for_deletion(1)


def test_snapshots_move_with_their_directory(
    state: ProducerStateManager, files: MemoryFiles
) -> None:
    three_snapshots(state)
    files.rename(DIRECTORY, DIRECTORY.with_name("u-0"))

    state.snapshots.update_parent_dir(DIRECTORY.with_name("u-0"))
    append(state, 4, 30)
    state.take_snapshot()
    state.snapshots.remove_strays([30])

    assert [f"{31:020d}.snapshot"] == files.names(DIRECTORY.with_name("u-0"))


@pytest.mark.scenario(48)
def test_expired_producers_and_verifications_are_removed(state: ProducerStateManager) -> None:
    append(state, 1, 0)
    append(state, 3, 1, transactional=True)
    state.maybe_create_verification_state_entry(2, 0, 0, supports_epoch_bump=False)

    state.remove_expired_producers(NOW + DAY - 1)
    assert [1, 3] == list(state.active_producers)
    assert state.verification_state_entry(2) is not None
    state.remove_expired_producers(NOW + DAY)
    assert [3] == list(state.active_producers)
    assert state.verification_state_entry(2) is None


def test_producer_entry_can_be_loaded_directly(state: ProducerStateManager) -> None:
    state.load_producer_entry(ProducerStateEntry(8, 1, 2, 3, 40))

    assert 40 == first_unstable(state)
    assert state.last_entry(8) is not None
