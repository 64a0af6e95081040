"""
What is in flight of a share-partition: what members get, what they may say of it, where it starts.

``tests/interop/test_share_partitions.py`` compares all of that with Kafka's own class; here are the
cases that show the rules.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import InvalidRequest
from barnabas.server.config import BrokerConfig
from barnabas.server.share.aborted import aborted_batches
from barnabas.server.share.acknowledging import Acknowledgement, Acknowledging
from barnabas.server.share.in_flight import InFlightBatch, InFlightState
from barnabas.server.share.record_state import AcknowledgeType, RecordState
from barnabas.server.share.window import ShareWindow
from barnabas.storage.segment.fetch_data import AbortedTransaction
from barnabas.storage.segment.fetched_batches import FetchedBatch
from tests.support.limits import stated
from tests.support.share_partition import DrivenPartition

UNDER_WAY = "*"


def partition(
    *stored: str, start: int = 0, most: int = 100, deliveries: int = 5
) -> DrivenPartition:
    driven = DrivenPartition()
    driven.run(" ".join(["new", str(start), str(most), str(deliveries), *stored]))
    return driven


def acquire(
    driven: DrivenPartition,
    *read: tuple[int, int],
    member: str = "a",
    most: int = 100,
    size: int = 100,
    is_record_limit: bool = False,
) -> str:
    """
    What a member gets of batches that were read from where the partition wants them.
    """
    driven.fetched["data"] = [FetchedBatch(*each) for each in read]
    offset = driven.window.next_fetch_offset()
    line = f"acquire {member} {int(is_record_limit)} {size} {most} {offset} data"
    return driven.run(line).split(" | ")[0].removeprefix("acquired ")


def outcome(answer: str) -> str:
    return answer.split(" | ", maxsplit=1)[0]


def states(driven: DrivenPartition) -> str:
    return driven.state().split(" ", 4)[-1]


def test_whole_batches_are_acquired_until_there_are_enough_records() -> None:
    driven = partition()

    assert "0:5:1" == acquire(driven, (0, 2), (3, 5), (6, 9), most=4)
    assert "6:9:1" == acquire(driven, (6, 9))


def test_no_more_records_than_the_limit_are_acquired_if_a_member_says_so() -> None:
    """
    The rest of the batch is for the next one.
    """
    driven = partition()

    assert "0:1:1" == acquire(driven, (0, 4), most=2, is_record_limit=True)
    assert "2:4:1" == acquire(driven, (0, 4), member="b", is_record_limit=True)


def test_acquired_records_are_divided_where_batches_begin() -> None:
    assert "0:5:1,6:9:1" == acquire(partition(), (0, 2), (3, 5), (6, 9), size=4)


def test_no_new_records_are_acquired_above_the_most_in_flight() -> None:
    """
    Released ones among those in flight are.
    """
    assert stated("records-in-flight") == BrokerConfig().group_share_partition_max_record_locks
    driven = partition(most=5)
    assert "0:4:1" == acquire(driven, (0, 4))
    assert not driven.window.can_acquire(driven.max_in_flight)

    driven.run("ack a 1:2:2")
    driven.run("written 1")

    assert driven.window.can_acquire(driven.max_in_flight)
    assert "1:2:2" == acquire(driven, (0, 4), (5, 9))


def test_records_that_fail_often_are_delivered_in_smaller_parts_and_alone_at_last() -> None:
    driven = partition(deliveries=5)
    given = []
    for _ in range(5):
        given.append(acquire(driven, (0, 7)))
        driven.run("release a")
        driven.run("written 1")

    assert ["0:7:1", "0:7:2", "0:7:3", "0:3:4", "0:0:5"] == given
    assert states(driven).startswith("{(0 4 5 )(1 0 4 )(2 0 4 )(3 0 4 )(4 0 3 )")


def test_a_batch_that_failed_often_is_not_delivered_with_others() -> None:
    driven = partition("0:3:0:1", "4:7:0:3")

    assert "0:3:2" == acquire(driven, (0, 3), (4, 7), (8, 9))
    assert "4:5:4" == acquire(driven, (4, 7), (8, 9))


@pytest.mark.parametrize(
    ("acknowledgement", "state"),
    [
        ("0:9:1", ""),
        ("0:4:1", "{"),
        ("0:9:2", "[0-9 0 1 ]"),
        ("0:9:4", "[0-9 1 1 a]"),
        ("5:9:3", "{(0 1 1 a)"),
    ],
)
def test_acknowledgements_change_the_states(acknowledgement: str, state: str) -> None:
    """
    The start moves over what is done.
    """
    driven = partition()
    acquire(driven, (0, 9))

    driven.run(f"ack a {acknowledgement}")
    driven.run("written 1")

    assert states(driven).startswith(state)
    done = {"0:9:1": 10, "0:4:1": 5}.get(acknowledgement, 0)
    assert done == driven.window.start_offset


@pytest.mark.parametrize(
    ("acknowledgements", "error"),
    [
        ("b 0:4:1", 121),
        ("a 0:9:1 10:10:1", 121),
        ("a 0:4:1 3:5:1", 121),
        ("a 0:20:1", 42),
        ("a 5:5:1 20:25:1", 42),
    ],
    ids=["another member's", "available", "twice", "beyond the end", "all beyond the end"],
)
def test_an_acknowledgement_that_cannot_be_undoes_the_others(
    acknowledgements: str, error: int
) -> None:
    driven = partition()
    acquire(driven, (0, 9))
    acquire(driven, (10, 14), member="b", most=1, is_record_limit=True)
    driven.run("release b")
    driven.run("written 1")

    assert f"error:{error}" == outcome(driven.run(f"ack {acknowledgements}"))

    assert UNDER_WAY not in driven.state()
    assert {1} == {run.state for batch in driven.window.batches[:1] for run in batch.runs}
    assert 0 == driven.window.delivery_complete_count


def test_a_change_that_is_being_written_excludes_others() -> None:
    """
    And is undone if the write fails, save that an acquisition which ended meanwhile stays so.
    """
    driven = partition()
    acquire(driven, (0, 9))
    assert "writing" == outcome(driven.run("ack a 0:4:1"))
    assert "error:121" == outcome(driven.run("ack a 0:4:1"))

    driven.run("written 0")
    assert "writing" == outcome(driven.run("ack a 0:4:1"))
    driven.run("time 11000")
    driven.run("written 0")

    assert {0} == {run.state for batch in driven.window.batches for run in batch.runs}


def test_many_acknowledgements_of_single_records_leave_few_objects() -> None:
    """
    Neighbours in the same state are one again when that is written.
    """
    driven = partition(most=2000)
    acquire(driven, (0, 999), most=1000)
    for offset in range(999, 400, -1):
        driven.run(f"ack a {offset}:{offset}:1")
        driven.run("written 1")

    (batch,) = driven.window.batches
    assert 2 == len(batch.runs)


@pytest.mark.parametrize("size", [1, 5000, 20_000])
def test_a_batch_is_cut_into_a_bounded_number_of_runs(size: int) -> None:
    """
    By many acknowledgements or by one. What is refused changes nothing.
    """
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


def test_the_end_of_the_log_that_is_lost_takes_records_along() -> None:
    """
    Available ones are archived; acquired ones are when they are released.
    """
    driven = partition()
    acquire(driven, (0, 4))
    acquire(driven, (5, 9), member="b")
    driven.run("release b")
    driven.run("written 1")

    driven.run("start 7")
    assert 7 == driven.window.start_offset
    driven.run("release a")
    driven.run("written 1")

    assert 0 == driven.window.delivery_complete_count
    assert "7:9:2" == acquire(driven, (5, 9))


def test_each_record_of_a_batch_has_the_type_that_its_acknowledgement_gives_it() -> None:
    """
    1 accepts, 2 releases.
    """
    driven = partition()
    acquire(driven, (0, 4))

    driven.run("ack a 0:4:12212")
    driven.run("written 1")

    assert "1:2:2,4:4:2" == acquire(driven, (0, 4))


def test_batches_of_aborted_transactions_are_found_behind_those_without_a_producer() -> None:
    batches = [
        FetchedBatch(0, 0),
        FetchedBatch(1, 1, producer_id=7, is_transactional=True),
        FetchedBatch(2, 2, producer_id=7, is_abort_marker=True),
        FetchedBatch(3, 3, producer_id=7, is_transactional=True),
    ]
    transaction = AbortedTransaction(7, 1)

    assert [batches[1]] == list(aborted_batches(batches, [transaction]))


def test_stored_states_are_taken_up_where_they_were() -> None:
    """
    What is between them can be acquired, for the first time as far as anybody knows.
    """
    driven = partition("0:1:2:1", "4:5:0:2", "8:9:4:1")

    assert 2 == driven.window.start_offset
    assert "2:3:1,4:5:3,6:7:1,10:11:1" == acquire(driven, (0, 11))


def test_compacted_offsets_are_given_to_nobody() -> None:
    driven = partition("0:4:0:1", "5:9:0:1")

    assert "5:9:2" == acquire(driven, (5, 9))
    assert 5 == driven.window.delivery_complete_count
