"""
What is in flight of a share-partition: what members get, what they may say of it, where it starts.

``tests/interop/test_share_partitions.py`` compares all of that with Kafka's own class; here are the
cases that show the rules.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.share.aborted import aborted_batches
from barnabas.coordination.share.acknowledging import Acknowledgement, Acknowledging
from barnabas.coordination.share.in_flight import InFlightBatch, InFlightState
from barnabas.coordination.share.record_state import AcknowledgeType, RecordState
from barnabas.coordination.share.window import ShareWindow
from barnabas.protocol.errors import InvalidRequest
from barnabas.protocol.internal_topics.share_state_records import StateBatch
from barnabas.storage.segment.fetch_data import AbortedTransaction
from barnabas.storage.segment.fetched_batches import FetchedBatch
from tests.support.coordination import CoordinatorConfig
from tests.support.limits import stated
from tests.support.share_partition import DrivenPartition


def partition(most: int = 100) -> DrivenPartition:
    driven = DrivenPartition()
    driven.run(f"new 0 {most} 5")
    return driven


def release(driven: DrivenPartition, member: str) -> None:
    driven.run(f"release {member}")
    driven.run("written 1")


def acquire(
    driven: DrivenPartition, *read: tuple[int, int], most: int = 100, member: str = "a"
) -> str:
    """
    What a member gets of batches that were read from where the partition wants them.
    """
    driven.fetched["data"] = [FetchedBatch(*each) for each in read]
    line = f"acquire {member} 0 100 {most} {driven.window.next_fetch_offset()} data"
    return driven.run(line).split(" | ")[0].removeprefix("acquired ")


def test_no_new_records_are_acquired_beyond_the_in_flight_limit() -> None:
    assert stated("records-in-flight") == CoordinatorConfig().group_share_partition_max_record_locks
    driven = partition(most=5)
    assert "0:4:1" == acquire(driven, (0, 4))
    assert not driven.window.can_acquire(driven.max_in_flight)

    driven.run("ack a 1:2:2")
    driven.run("written 1")

    assert driven.window.can_acquire(driven.max_in_flight)
    assert "1:2:2" == acquire(driven, (0, 4), (5, 9))


def test_many_single_acknowledgements_leave_few_objects() -> None:
    # Neighbours in the same state are merged when they are written.
    driven = partition(most=2000)
    acquire(driven, (0, 999), most=1000)
    for offset in range(999, 400, -1):
        driven.run(f"ack a {offset}:{offset}:1")
        driven.run("written 1")

    (batch,) = driven.window.batches
    assert 2 == len(batch.runs)


@pytest.mark.parametrize("size", [1, 5000, 20_000])
def test_number_of_runs_in_a_batch_is_limited(size: int) -> None:
    most = int(stated("share-runs"))
    window = ShareWindow(0)
    run = InFlightState(0, 4 * most - 1, RecordState.AVAILABLE, 0)
    run.acquire("a", 1 << 60)
    window.add(InFlightBatch(run))
    (batch,) = window.batches
    kinds = ([AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE] * size)[:size]

    def acknowledge_all() -> None:
        for first in range(0, 4 * most, size + 1):
            acting = Acknowledging(window, "a", max_delivery_count=5)
            acting.acknowledge([Acknowledgement(first, first + size - 1, kinds)], 0)

    with pytest.raises(InvalidRequest, match="runs"):
        acknowledge_all()

    assert most - size - 1 <= len(batch.runs) <= most
    assert all(run.rollback or run.state is RecordState.ACQUIRED for run in batch.runs)


def test_each_record_of_a_batch_has_the_type_that_its_acknowledgement_gives_it() -> None:
    driven = partition()
    acquire(driven, (0, 4))

    driven.run("ack a 0:4:12212")
    driven.run("written 1")

    assert "1:2:2,4:4:2" == acquire(driven, (0, 4))


def test_batch_that_fails_often_is_delivered_in_smaller_parts() -> None:
    driven = partition()
    acquired = []
    for _ in range(5):
        acquired.append(acquire(driven, (0, 7)))
        release(driven, "a")

    assert ["0:7:1", "0:7:2", "0:7:3", "0:3:4", "0:0:5"] == acquired


def test_records_below_the_log_start_are_archived_and_not_counted_as_delivered() -> None:
    driven = partition()
    acquire(driven, (0, 4))
    acquire(driven, (5, 9), member="b")
    release(driven, "b")

    driven.run("start 7")
    release(driven, "a")

    assert 7 == driven.window.start_offset
    assert 0 == driven.window.delivery_complete_count
    assert "7:9:2" == acquire(driven, (5, 9))


def test_records_above_the_start_count_as_delivered_until_the_start_passes_them() -> None:
    driven = partition()
    acquire(driven, (0, 9))

    driven.run("ack a 6:9:1")
    driven.run("written 1")
    assert (0, 4) == (driven.window.start_offset, driven.window.delivery_complete_count)

    driven.run("ack a 0:5:1")
    driven.run("written 1")
    assert (10, 0) == (driven.window.start_offset, driven.window.delivery_complete_count)


def test_batches_of_aborted_transactions_are_found_behind_those_without_a_producer() -> None:
    batches = [
        FetchedBatch(0, 0),
        FetchedBatch(1, 1, producer_id=7, is_transactional=True),
        FetchedBatch(2, 2, producer_id=7, is_abort_marker=True),
        FetchedBatch(3, 3, producer_id=7, is_transactional=True),
    ]
    transaction = AbortedTransaction(7, 1)

    assert [batches[1]] == list(aborted_batches(batches, [transaction]))


def test_lost_offsets_of_a_stored_gap_are_not_fetched_again() -> None:
    """
    Offsets that nobody has acknowledged are not stored: a stored window has a gap there.
    """
    stored = [
        StateBatch(first_offset=1, last_offset=1, delivery_state=2, delivery_count=1),
        StateBatch(first_offset=20, last_offset=39, delivery_state=2, delivery_count=1),
    ]
    window = ShareWindow(0, stored)
    assert 0 == window.next_fetch_offset()

    window.follow_log_start(10)
    assert 10 == window.next_fetch_offset()


def test_log_start_behind_a_stored_gap_ends_the_gap() -> None:
    stored = [StateBatch(first_offset=20, last_offset=39, delivery_state=2, delivery_count=1)]
    window = ShareWindow(0, stored)

    window.follow_log_start(28)
    assert 40 == window.next_fetch_offset()
