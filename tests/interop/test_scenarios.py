"""
Scenarios that run with every client library that has a `Session`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.interop.clients.base import (
    PATIENCE,
    Reader,
    Seen,
    Session,
    Writer,
    nothing_comes,
    numbered,
    read,
    values,
    wait_for_shares,
)
from tests.interop.clients.kafka_python import KafkaPythonSession
from tests.interop.clients.sessions import SESSIONS
from tests.interop.conftest import new_broker
from tests.support.broker_process import BrokerProcess, free_port, wait_for

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
        session.create(topic, configs={"retention.ms": "soon"})
    with session.refuses(INVALID_CONFIG):
        session.create(topic, configs={"retention.sec": "1"})
    with session.refuses(INVALID_PARTITIONS):
        session.create(topic, 0)
    with session.refuses(INVALID_TOPIC):
        session.create("no spaces")
    assert "no spaces" not in session.topics()
    assert topic not in session.topics()


def test_first_record_creates_its_topic(session: Session, topic: str) -> None:
    assert [(1, 0)] == [sent[:2] for sent in session.writer().send(topic, [b""], partition=1)]
    assert 2 == session.partitions(topic)


def test_topic_is_created_used_and_deleted_repeatedly(session: Session, topic: str) -> None:
    """
    Each new topic is empty. Apache Kafka promises less: its metadata may lag behind.
    """
    for value in numbered(10):
        session.create(topic)
        assert [0] == [sent.offset for sent in session.writer().send(topic, [value])]
        assert [value] == values(session.reader(topic, 0), 1)
        session.delete(topic)
        assert topic not in session.topics()


@pytest.mark.filterwarnings("ignore:alter_configs")
def test_topic_configs_are_described_and_replaced(session: Session, topic: str) -> None:
    """
    Options that a replacement does not name are reset.
    """
    configs = {"retention.ms": "77", "cleanup.policy": "compact"}
    session.create(topic, configs=configs)
    assert configs.items() <= session.configs(topic).items()

    session.replace_configs(topic, {"flush.ms": "5"})

    expected = {"retention.ms": "604800000", "cleanup.policy": "delete", "flush.ms": "5"}
    assert expected.items() <= session.configs(topic).items()


def test_cluster_is_one_broker_that_is_its_own_controller(
    session: Session, broker: BrokerProcess
) -> None:
    """
    One reachable bootstrap address suffices, and all clients find the same cluster.
    """
    addresses = f"127.0.0.1:{free_port()},{broker.bootstrap}"
    with type(session)(addresses) as other, KafkaPythonSession(broker.bootstrap) as python:
        [found] = {each.cluster() for each in (session, other, python)}

    assert broker.bootstrap == f"{found.host}:{found.port}"
    assert found.controller_id == found.node_id
    assert "2" == session.configs(str(found.node_id), of_broker=True)["num.partitions"]


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

    writer = session.writer(acks=acks, **session.small_batches)
    sent = writer.send(topic, numbered(session.many))

    assert numbered(session.many) == values(session.reader(topic, 0), session.many)
    if acks:
        assert list(range(session.many)) == [each.offset for each in sent]


def test_the_answer_holds_the_place_and_time_of_a_record(session: Session, topic: str) -> None:
    """
    The time is the broker's if ``message.timestamp.type=LogAppendTime``, else the producer's.
    """
    session.create(topic, configs={"message.timestamp.type": "LogAppendTime"})
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
    session.create(topic, configs={"max.message.bytes": "1000"})
    writer = session.writer(acks=1)

    with session.refuses(MESSAGE_TOO_LARGE):
        writer.send(topic, [b"x" * 2000])

    assert [0] == [sent.offset for sent in writer.send(topic, [b"x" * 500])]


def test_readers_without_a_group_each_get_every_record(session: Session, topic: str) -> None:
    session.create(topic)
    session.writer().send(topic, numbered(3))

    readers = [session.reader(topic, 0) for _ in range(2)]

    assert [numbered(3)] * 2 == [values(reader, 3) for reader in readers]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_partition_fetch_bytes", 4000),
        ("fetch_max_bytes", 4000),
        # Only the leader serves readers, wherever they are (KIP-392).
        ("client_rack", "somewhere"),
    ],
)
def test_fetch_option_withholds_no_record(
    session: Session, topic: str, option: str, value: int | str
) -> None:
    """
    The first batch of a fetch comes whole, however large (KIP-74), and each partition has its turn.
    """
    session.create(topic, 2)
    sent = [b"small", b"x" * 50_000, b"small again"]
    writer = session.writer()
    for partition in (0, 1):
        for each in sent:
            writer.send(topic, [each], partition=partition)

    seen = read(session.reader(topic, 0, 1, **{option: value}), 6)

    assert [sent, sent] == [[r.value for r in seen if r.partition == p] for p in (0, 1)]


def test_fetch_from_within_a_batch_hides_earlier_records(session: Session, topic: str) -> None:
    session.create(topic)
    session.writer(compression_type="gzip", linger_ms=100).send(topic, numbered(10))
    reader = session.reader(topic, 0)

    for first in (0, 4, 9):
        if first:
            reader.seek(0, first)
        assert numbered(10 - first, first=first) == values(reader, 10 - first)


def test_a_position_moves_by_reading_and_by_seeking(session: Session, topic: str) -> None:
    session.create(topic)
    writer = session.writer()
    writer.send(topic, numbered(5))
    reader = session.reader(topic, 0)

    assert numbered(2) == values(reader, 2)
    assert 2 == reader.position(0)
    for offset in (1, 4, 0):
        reader.seek(0, offset)
        assert [b"%d" % offset] == values(reader, 1)
    reader.seek(0, 4)
    reader.seek_to_beginning(0)
    assert [b"0"] == values(reader, 1)
    reader.seek_to_end(0)
    assert nothing_comes(reader)
    writer.send(topic, [b"new"])
    assert [b"new"] == values(reader, 1)


def test_long_poll_delays_neither_a_commit_nor_a_new_record(session: Session, topic: str) -> None:
    session.create(topic)
    reader = session.reader(topic, 0, group_id=topic, fetch_max_wait_ms=20_000)
    assert nothing_comes(reader)
    began = time.monotonic()

    reader.commit({0: 0})
    session.writer().send(topic, [b"new"])

    assert [b"new"] == values(reader, 1)
    assert time.monotonic() - began < 15


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


@pytest.mark.parametrize(("reset", "first"), [("earliest", b"0"), ("latest", b"new")])
def test_offset_out_of_range_is_reset(
    session: Session, topic: str, reset: str, first: bytes
) -> None:
    session.create(topic)
    writer = session.writer()
    writer.send(topic, numbered(3))
    session.reader(topic, 0, group_id=topic).commit({0: 77})
    reader = session.reader(topic, 0, group_id=topic, auto_offset_reset=reset)
    seen: list[Seen] = []

    def has_read() -> bool:
        writer.send(topic, [b"new"])
        seen.extend(reader.poll())
        return bool(seen)

    wait_for(has_read, "a record behind the reset", PATIENCE)
    assert first == seen[0].value


def test_without_a_reset_policy_a_missing_offset_is_an_error(session: Session, topic: str) -> None:
    """
    Nothing is committed at first; then the offset is beyond the end.
    """
    session.create(topic)
    session.writer().send(topic, numbered(1))

    with session.refuses(session.no_offset):
        values(session.reader(topic, 0, group_id=topic, auto_offset_reset="none"), 1)
    session.reader(topic, 0, group_id=topic).commit({0: 77})
    with session.refuses(session.out_of_range):
        values(session.reader(topic, 0, group_id=topic, auto_offset_reset="none"), 1)


def test_members_share_partitions_and_one_takes_over(session: Session, topic: str) -> None:
    """
    The one that stays continues at the offset that the other committed.
    """
    session.create(topic, 2)
    one, two = (session.reader(topic, group_id=topic) for _ in range(2))
    wait_for_shares([one, two], 2)
    [taken], [own] = one.assigned(), two.assigned()
    for partition in (0, 1):
        session.writer().send(topic, numbered(4), partition=partition)
    one.commit({taken: 2})
    two.commit({own: 4})
    one.close()
    seen: list[Seen] = []

    def takes_over() -> bool:
        seen.extend(record for record in two.poll() if record.partition == taken)
        return len(seen) >= 2

    wait_for(takes_over, "the other member's records", PATIENCE)
    assert [2, 3] == [record.offset for record in seen]


def test_member_learns_of_assigned_and_revoked_partitions(session: Session, topic: str) -> None:
    session.create(topic, 2)
    one = session.reader(topic, group_id=topic)
    wait_for_shares([one], 2)

    two = session.reader(topic, group_id=topic)
    wait_for_shares([one, two], 2)
    [kept] = one.assigned()
    two.close()
    wait_for_shares([one], 2)

    assert ["+0,1", "-0,1", f"+{kept}", f"-{kept}", "+0,1"] == one.changes


def test_pattern_subscription_includes_new_topics(session: Session, topic: str) -> None:
    """
    The group is rebalanced for each, and reads it from its first record.
    """
    first, later = f"{topic}-0", f"{topic}-1"
    session.create(first, 2)
    options = {"metadata_max_age_ms": 100, "enable_auto_commit": True}
    reader = session.reader(f"^{topic}-.*$", group_id=topic, **options)
    session.writer().send(first, [b"first"])
    assert [b"first"] == values(reader, 1)

    session.create(later, 2)
    session.writer().send(later, [b"later"])
    assert [b"later"] == values(reader, 1)


def test_static_member_returns_to_its_partitions(session: Session, topic: str) -> None:
    """
    Its absence causes no rebalance (KIP-345) until its session is over.
    """
    session.create(topic, 2)

    def join(name: str) -> Reader:
        options = {"group_instance_id": name, "session_timeout_ms": 1000}
        return session.reader(topic, group_id=topic, **options)

    one, two = join("one"), join("two")
    wait_for_shares([one, two], 2)
    before, changes = two.assigned(), list(one.changes)

    two.close()
    again = join("two")
    wait_for_shares([one, again], 2)
    assert before == again.assigned()
    assert changes == one.changes
    again.close()
    wait_for_shares([one], 2)


def test_member_that_polls_too_rarely_loses_its_partitions(session: Session, topic: str) -> None:
    """
    It gets them back when it polls again.
    """
    session.create(topic)
    options = {"group_id": topic, "session_timeout_ms": 2000, "max_poll_interval_ms": 2000}
    idle = session.reader(topic, **options)
    wait_for_shares([idle], 1)

    other = session.reader(topic, **options)
    wait_for_shares([other], 1)
    other.close()

    def is_back() -> bool:
        with suppress(session.errors):
            idle.poll()
        return idle.changes[-1] == "+0" and len(idle.changes) > 1

    wait_for(is_back, "the partition to come back", PATIENCE)


def test_group_is_listed_and_described_with_its_offsets(session: Session, topic: str) -> None:
    """
    Its offsets stay when its members have left.
    """
    session.create(topic, 2)
    reader = session.reader(topic, group_id=topic, client_id="the member")
    wait_for_shares([reader], 2)
    reader.commit({0: 7, 1: 8})

    assert topic in session.groups()
    assert ("Stable", ["the member"]) == session.group(topic)
    reader.close()
    assert ("Empty", []) == session.group(topic)
    assert {0: 7, 1: 8} == session.offsets(topic)


def test_group_without_members_commits_until_it_is_deleted(session: Session, topic: str) -> None:
    session.create(topic)
    session.writer().send(topic, numbered(10))
    for first in (0, 5):
        reader = session.reader(topic, 0, group_id=topic)
        assert numbered(5, first=first) == values(reader, 5)
        reader.commit({0: first + 5})
        reader.close()
    assert {0: 10} == session.offsets(topic)

    with KafkaPythonSession(session.bootstrap) as python:
        python.delete_group(topic)

    assert topic not in session.groups()


@pytest.mark.parametrize("kind", SESSIONS.values(), ids=SESSIONS)
def test_producer_and_consumer_continue_after_a_broker_restart(
    kind: type[Session], topic: str, tmp_path: Path
) -> None:
    """
    The same producer and the same consumer, with nothing lost and nothing twice.
    """
    settings = {"num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    with new_broker(tmp_path, settings) as broker, kind(broker.bootstrap) as session:
        session.create(topic)
        writer = session.writer(enable_idempotence=True)
        reader = session.reader(topic, group_id=topic)
        writer.send(topic, numbered(5))
        before = values(reader, 5)

        broker.restart()
        writer.send(topic, numbered(5, first=5))

        assert numbered(10) == before + values(reader, 5)


@pytest.mark.parametrize("milliseconds", [999, 1_800_001])
def test_a_session_timeout_out_of_range_is_refused(
    session: Session, topic: str, milliseconds: int
) -> None:
    session.create(topic)

    with session.refuses(INVALID_SESSION_TIMEOUT):
        values(session.reader(topic, group_id=topic, session_timeout_ms=milliseconds), 1)


def test_a_leaving_member_commits_what_it_read(session: Session, topic: str) -> None:
    """
    If it commits by itself, however long its interval.
    """
    session.create(topic)
    session.writer().send(topic, numbered(6))

    for first in (0, 3):
        reader = session.reader(topic, group_id=topic, enable_auto_commit=True)
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
    writer = session.writer(transactional_id=topic)
    writer.begin()
    writer.send(topic, [b"in it"])
    session.writer().send(topic, [b"behind it"])
    reader = session.reader(topic, 0, isolation_level="read_committed")

    assert [b"in it", b"behind it"] == values(session.reader(topic, 0), 2)
    assert nothing_comes(reader)
    (writer.commit if end == "commit" else writer.abort)()

    expected = [b"in it", b"behind it"] if end == "commit" else [b"behind it"]
    assert expected == values(reader, len(expected))
    assert nothing_comes(reader)


@pytest.mark.parametrize("ends", ["c", "a", "ac", "ca", "acacc"])
def test_only_committed_transactions_are_read(session: Session, topic: str, ends: str) -> None:
    session.create(topic, 2)
    writer = session.writer(transactional_id=topic)
    for number, end in enumerate(ends):
        writer.begin()
        for partition in (0, 1):
            writer.send(topic, numbered(10, first=number * 10), partition=partition)
        (writer.commit if end == "c" else writer.abort)()

    expected = [value for n, end in enumerate(ends) if end == "c" for value in numbered(10, n * 10)]
    for partition in (0, 1):
        reader = session.reader(topic, partition, isolation_level="read_committed")
        assert expected == values(reader, len(expected))
        assert nothing_comes(reader)


def test_an_empty_transaction_leaves_nothing(session: Session, topic: str) -> None:
    session.create(topic)
    writer = session.writer(transactional_id=topic)
    for end in (writer.commit, writer.abort):
        writer.begin()
        end()

    writer.begin()
    assert [0] == [sent.offset for sent in writer.send(topic, [b"one"])]
    writer.commit()


def test_offsets_are_part_of_the_transaction(session: Session, topic: str) -> None:
    session.create(topic)
    session.create(f"{topic}-out")
    session.writer().send(topic, numbered(10))
    reader = session.reader(topic, group_id=topic)
    assert numbered(5) == values(reader, 5)
    writer = session.writer(transactional_id=topic)

    for end in (writer.abort, writer.commit):
        writer.begin()
        writer.send(f"{topic}-out", numbered(5))
        writer.send_offsets(reader, {0: 5})
        assert reader.committed(0) is None
        end()
    # Apache Kafka answers the commit before the group has it.
    wait_for(lambda: reader.committed(0) == 5, "the committed offset", 10)
    results = session.reader(f"{topic}-out", 0, isolation_level="read_committed")
    assert numbered(5) == values(results, 5)
    assert nothing_comes(results)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_consumer_skips_markers(session: Session, topic: str, level: str) -> None:
    session.create(topic)
    writer = session.writer(transactional_id=topic)
    reader = session.reader(topic, 0, isolation_level=level)

    for value in (b"one", b"two"):
        writer.begin()
        writer.send(topic, [value])
        writer.commit()
        assert [value] == values(reader, 1)
        assert nothing_comes(reader)


def process(readers: list[Reader], writer: Writer, topic: str) -> dict[int, int]:
    """
    Copy some records to *topic* in a transaction.

    Returns:
        The offsets behind them, which the transaction has as well.
    """
    offsets: dict[int, int] = {}
    for reader in readers:
        mine: dict[int, int] = {}
        for record in [seen for _ in range(5) for seen in reader.poll()]:
            writer.send(topic, [record.value or b""], partition=record.partition)
            mine[record.partition] = record.offset + 1
        if mine:
            writer.send_offsets(reader, mine)
        offsets |= mine
    return offsets


@pytest.mark.parametrize("members", [1, 2])
def test_members_process_each_record_once_though_a_round_fails(
    session: Session, topic: str, members: int
) -> None:
    """
    Each round is a transaction of all records read and of their offsets; the second one is aborted.
    """
    for name in (topic, f"{topic}-out"):
        session.create(name, 2)
    readers = [session.reader(topic, group_id=topic) for _ in range(members)]
    wait_for_shares(readers, 2)
    for partition in (0, 1):
        session.writer().send(topic, numbered(20), partition=partition)
    writer = session.writer(transactional_id=topic)
    committed = {0: 0, 1: 0}

    rounds = 0
    while {20} != set(committed.values()):
        rounds += 1
        writer.begin()
        seen = process(readers, writer, f"{topic}-out")
        if rounds != 2:
            writer.commit()
            committed |= seen
            continue
        writer.abort()
        for reader in readers:
            for partition in reader.assigned():
                reader.seek(partition, committed[partition])

    assert rounds > 3
    for partition in (0, 1):
        results = session.reader(f"{topic}-out", partition, isolation_level="read_committed")
        assert numbered(20) == values(results, 20)
        assert nothing_comes(results)
    wait_for(lambda: committed == session.offsets(topic), "the offsets", PATIENCE)


def test_the_next_producer_of_a_name_fences_the_one_before(session: Session, topic: str) -> None:
    session.create(topic)
    older = session.writer(transactional_id=topic)
    older.begin()
    older.send(topic, [b"lost"])

    newer = session.writer(transactional_id=topic)
    newer.begin()
    newer.send(topic, [b"kept"])
    newer.commit()

    with session.refuses():
        older.send(topic, [b"late"])
    with session.refuses() as refused:
        older.commit()
    assert session.is_fenced(refused.value), repr(refused.value)
    reader = session.reader(topic, 0, isolation_level="read_committed")
    assert [b"kept"] == values(reader, 1)
    assert nothing_comes(reader)


def test_a_transaction_beyond_its_timeout_is_aborted(session: Session, topic: str) -> None:
    session.create(topic)
    writer = session.writer(transactional_id=topic, transaction_timeout_ms=1000)
    writer.begin()
    writer.send(topic, [b"late"])
    session.writer().send(topic, [b"behind it"])

    assert [b"behind it"] == values(session.reader(topic, 0, isolation_level="read_committed"), 1)
    with session.refuses():
        writer.commit()


def test_a_transaction_timeout_above_the_maximum_is_refused(session: Session, topic: str) -> None:
    with session.refuses(INVALID_TRANSACTION_TIMEOUT):
        session.writer(transactional_id=topic, transaction_timeout_ms=900_001)
