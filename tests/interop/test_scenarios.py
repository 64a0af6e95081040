"""
Scenarios that run with every client library that has a `Session`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.clients.sessions import SESSIONS, Session, nothing_comes, values
from tests.support.broker_process import BrokerProcess, wait_for

UNKNOWN_TOPIC, MESSAGE_TOO_LARGE, INVALID_TOPIC = 3, 10, 17
INVALID_SESSION_TIMEOUT, TOPIC_EXISTS, INVALID_PARTITIONS, INVALID_REPLICAS = 26, 36, 37, 38
INVALID_CONFIG, INVALID_TRANSACTION_TIMEOUT = 40, 50
NOW_MS = 1_500_000_000_000


@pytest.fixture(scope="session")
def broker(quick_broker: BrokerProcess) -> BrokerProcess:
    return quick_broker


@pytest.fixture(params=SESSIONS)
def session(request: pytest.FixtureRequest, broker: BrokerProcess) -> Iterator[Session]:
    with SESSIONS[request.param](broker.bootstrap) as made:
        yield made


@pytest.fixture(params=[name for name, kind in SESSIONS.items() if kind.polls_as_member])
def member_session(request: pytest.FixtureRequest, broker: BrokerProcess) -> Iterator[Session]:
    """
    Of a library whose members may poll briefly; `test_groups.py` has members of all libraries.
    """
    with SESSIONS[request.param](broker.bootstrap) as made:
        yield made


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def test_a_topic_is_created_once_and_deleted_once(session: Session, topic: str) -> None:
    session.create(topic, 3, validate_only=True)
    assert topic not in session.topics()
    session.create(topic, 3)
    with session.refuses(TOPIC_EXISTS):
        session.create(topic, 4)
    wait_for(lambda: topic in session.topics(), "the topic to be listed", 10)
    assert 3 == session.partitions(topic)

    session.delete(topic)

    # Apache Kafka's metadata lag behind its answer.
    wait_for(lambda: topic not in session.topics(), "the topic to be gone", 10)
    with session.refuses(UNKNOWN_TOPIC):
        session.delete(topic)


def test_a_topic_with_an_invalid_setting_is_refused(session: Session, topic: str) -> None:
    with session.refuses(INVALID_REPLICAS):
        session.create(topic, 1, 2)
    with session.refuses(INVALID_CONFIG):
        session.create(topic, 1, retention_ms="soon")
    with session.refuses(INVALID_CONFIG):
        session.create(topic, 1, retention_sec="1")
    with session.refuses(INVALID_PARTITIONS):
        session.create(topic, 0)
    with session.refuses(INVALID_TOPIC):
        session.create("no spaces")
    assert "no spaces" not in session.topics()
    assert topic not in session.topics()


def test_partitions_are_added_and_never_removed(session: Session, topic: str) -> None:
    session.create(topic)

    session.add_partitions(topic, 3)

    assert [(2, 0)] == [sent[:2] for sent in session.writer().send(topic, [b""], partition=2)]
    with session.refuses(INVALID_PARTITIONS):
        session.add_partitions(topic, 2)
    assert 3 == session.partitions(topic)


def test_records_below_an_offset_are_deleted(session: Session, topic: str) -> None:
    session.create(topic)
    session.writer().send(topic, numbered(5))

    session.delete_records(topic, 3)

    reader = session.reader(topic, 0)
    assert numbered(2, first=3) == values(reader, 2)
    assert (3, 5) == reader.bounds(0)


def test_a_key_has_one_partition(session: Session, topic: str) -> None:
    session.create(topic, 2)
    writer = session.writer()

    places = {
        key: {sent.partition for sent in writer.send(topic, [b""] * 3, key=key, partition=None)}
        for key in numbered(20)
    }

    assert {1} == {len(partitions) for partitions in places.values()}
    assert {0, 1} == set().union(*places.values())


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_keep_their_order_whatever_is_acknowledged(
    session: Session, topic: str, acks: int | str
) -> None:
    session.create(topic)

    sent = session.writer(acks=acks).send(topic, numbered(session.many))

    assert numbered(session.many) == values(session.reader(topic, 0), session.many)
    if acks:
        assert list(range(session.many)) == [each.offset for each in sent]


def test_the_answer_holds_the_place_and_time_of_a_record(session: Session, topic: str) -> None:
    """
    The time is the broker's if ``message.timestamp.type=LogAppendTime``, else the producer's.
    """
    session.create(topic, message_timestamp_type="LogAppendTime")
    session.create(f"{topic}-created", 2)
    writer = session.writer()

    [appended] = writer.send(topic, [b""], timestamp_ms=5)
    [own] = writer.send(f"{topic}-created", [b""], partition=1)
    [given] = writer.send(f"{topic}-created", [b""], partition=1, timestamp_ms=123_123_123)

    assert appended.timestamp_ms > NOW_MS
    assert (1, 0) == (own.partition, own.offset)
    assert own.timestamp_ms > NOW_MS
    assert (1, 1, 123_123_123) == given


def test_a_batch_above_the_limit_of_its_topic_is_refused(session: Session, topic: str) -> None:
    session.create(topic, max_message_bytes="1000")
    writer = session.writer(acks=1)

    with session.refuses(MESSAGE_TOO_LARGE):
        writer.send(topic, [b"x" * 2000])

    assert [0] == [sent.offset for sent in writer.send(topic, [b"x" * 500])]


def test_a_position_moves_by_reading_and_by_seeking(session: Session, topic: str) -> None:
    session.create(topic)
    session.writer().send(topic, numbered(5))
    reader = session.reader(topic, 0)

    assert numbered(2) == values(reader, 2)
    assert 2 == reader.position(0)
    for offset in (1, 4, 0):
        reader.seek(0, offset)
        assert [b"%d" % offset] == values(reader, 1)
    reader.seek(0, 4)
    reader.seek_to_beginning(0)
    assert [b"0"] == values(reader, 1)


def test_a_paused_partition_waits(session: Session, topic: str) -> None:
    session.create(topic, 2)
    reader = session.reader(topic, 0, 1)
    reader.pause(0)
    for partition in (0, 1):
        session.writer().send(topic, [b"%d" % partition], partition=partition)

    assert [b"1"] == values(reader, 1)
    assert nothing_comes(reader)
    reader.resume(0)
    assert [b"0"] == values(reader, 1)


def test_an_offset_is_found_by_time(session: Session, topic: str) -> None:
    """
    The first record at or after the time, though a later one is older.
    """
    session.create(topic, 2)
    writer = session.writer()
    for partition, timestamp_ms in ((0, 1000), (0, 3000), (0, 2000), (1, 2000)):
        writer.send(topic, [b""], partition=partition, timestamp_ms=timestamp_ms)
    reader = session.reader(topic, 0, 1)
    times = (0, 1000, 1001, 3000, 3001)

    assert [0, 0, 1, 1, None] == [reader.at_time(0, each) for each in times]
    assert [0, 0, 0, None, None] == [reader.at_time(1, each) for each in times]
    assert [(0, 3), (0, 1)] == [reader.bounds(partition) for partition in (0, 1)]


def test_without_a_reset_policy_a_missing_offset_is_an_error(session: Session, topic: str) -> None:
    """
    Nothing is committed at first; then the offset is beyond the end.
    """
    session.create(topic)
    session.writer().send(topic, numbered(1))

    with session.refuses(session.no_offset):
        values(session.reader(topic, 0, group=topic, reset="none"), 1)
    session.reader(topic, 0, group=topic).commit(0, 77)
    with session.refuses(session.out_of_range):
        values(session.reader(topic, 0, group=topic, reset="none"), 1)


def test_members_share_partitions_and_one_takes_over(member_session: Session, topic: str) -> None:
    """
    The one that stays continues at the offset that the other committed.
    """
    member_session.create(topic, 2)
    for partition in (0, 1):
        member_session.writer().send(topic, numbered(4), partition=partition)
    one, two = (member_session.reader(topic, group=topic) for _ in range(2))
    seen = {0: 0, 1: 0}

    def are_shared() -> bool:
        for reader in (one, two):
            reader.poll()
        return {1} == {len(reader.assigned()) for reader in (one, two)}

    wait_for(are_shared, "each member to have a partition", 60)
    [taken] = one.assigned()
    [own] = two.assigned()
    assert {0, 1} == {taken, own}
    one.commit(taken, 2)
    two.commit(own, 4)
    one.close()

    def takes_over() -> bool:
        for partition, _ in two.poll():
            seen[partition] += 1
        return seen[taken] >= 2

    wait_for(takes_over, "the other member's records", 60)
    assert 2 == seen[taken]


@pytest.mark.parametrize("milliseconds", [999, 1_800_001])
def test_a_session_timeout_out_of_range_is_refused(
    session: Session, topic: str, milliseconds: int
) -> None:
    session.create(topic)

    with session.refuses(INVALID_SESSION_TIMEOUT):
        values(session.reader(topic, group=topic, session_timeout_ms=milliseconds), 1)


def test_a_leaving_member_commits_what_it_read(member_session: Session, topic: str) -> None:
    """
    If it commits by itself, however long its interval.
    """
    member_session.create(topic)
    member_session.writer().send(topic, numbered(6))

    for first in (0, 3):
        reader = member_session.reader(topic, group=topic, auto_commit=True)
        assert numbered(3, first=first) == values(reader, 3)
        reader.close()


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_reader_of_committed_records_stops_at_an_open_transaction(
    session: Session, topic: str, end: str
) -> None:
    """
    Another producer's records behind it wait, too.
    """
    session.create(topic)
    writer = session.writer(topic)
    writer.begin()
    writer.send(topic, [b"in it"])
    session.writer().send(topic, [b"behind it"])
    reader = session.reader(topic, 0, committed=True)

    assert [b"in it", b"behind it"] == values(session.reader(topic, 0), 2)
    assert nothing_comes(reader)
    (writer.commit if end == "commit" else writer.abort)()

    expected = [b"in it", b"behind it"] if end == "commit" else [b"behind it"]
    assert expected == values(reader, len(expected))
    assert nothing_comes(reader)


@pytest.mark.parametrize("ends", ["c", "a", "ac", "ca", "acacc"])
def test_only_committed_transactions_are_read(session: Session, topic: str, ends: str) -> None:
    session.create(topic, 2)
    writer = session.writer(topic)
    for number, end in enumerate(ends):
        writer.begin()
        for partition in (0, 1):
            writer.send(topic, numbered(10, first=number * 10), partition=partition)
        (writer.commit if end == "c" else writer.abort)()

    expected = [value for n, end in enumerate(ends) if end == "c" for value in numbered(10, n * 10)]
    for partition in (0, 1):
        reader = session.reader(topic, partition, committed=True)
        assert expected == values(reader, len(expected))
        assert nothing_comes(reader)


def test_an_empty_transaction_leaves_nothing(session: Session, topic: str) -> None:
    session.create(topic)
    writer = session.writer(topic)
    for end in (writer.commit, writer.abort):
        writer.begin()
        end()

    writer.begin()
    assert [0] == [sent.offset for sent in writer.send(topic, [b"one"])]
    writer.commit()


def test_offsets_are_part_of_the_transaction(member_session: Session, topic: str) -> None:
    member_session.create(topic)
    member_session.create(f"{topic}-out")
    member_session.writer().send(topic, numbered(10))
    reader = member_session.reader(topic, group=topic)
    assert numbered(5) == values(reader, 5)
    writer = member_session.writer(topic)

    for end in (writer.abort, writer.commit):
        writer.begin()
        writer.send(f"{topic}-out", numbered(5))
        writer.send_offset(reader, topic, 5)
        assert reader.committed(0) is None
        end()
    # Apache Kafka answers the commit before the group has it.
    wait_for(lambda: reader.committed(0) == 5, "the committed offset", 10)
    results = member_session.reader(f"{topic}-out", 0, committed=True)
    assert numbered(5) == values(results, 5)
    assert nothing_comes(results)


def test_the_next_producer_of_a_name_fences_the_one_before(session: Session, topic: str) -> None:
    session.create(topic)
    older = session.writer(topic)
    older.begin()
    older.send(topic, [b"lost"])

    newer = session.writer(topic)
    newer.begin()
    newer.send(topic, [b"kept"])
    newer.commit()

    with session.refuses():
        older.send(topic, [b"late"])
    with session.refuses() as refused:
        older.commit()
    assert session.is_fenced(refused.value), repr(refused.value)
    reader = session.reader(topic, 0, committed=True)
    assert [b"kept"] == values(reader, 1)
    assert nothing_comes(reader)


def test_a_transaction_beyond_its_timeout_is_aborted(session: Session, topic: str) -> None:
    session.create(topic)
    writer = session.writer(topic, timeout_ms=1000)
    writer.begin()
    writer.send(topic, [b"late"])
    session.writer().send(topic, [b"behind it"])

    assert [b"behind it"] == values(session.reader(topic, 0, committed=True), 1)
    with session.refuses():
        writer.commit()


def test_a_transaction_timeout_above_the_maximum_is_refused(session: Session, topic: str) -> None:
    with session.refuses(INVALID_TRANSACTION_TIMEOUT):
        session.writer(topic, timeout_ms=900_001)
