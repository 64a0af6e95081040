"""
Each difference of the table is there: the day that it goes away, its test fails.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pytest

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.codec.schema import ZERO_UUID, Message, replace
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import Endpoint, TaskIds
from barnabas.protocol.records.batch import batches, build_batch, seal_batch
from barnabas.protocol.records.record import Record, SimpleRecord, encode_records
from barnabas.server.requests.context import MOST_ENTRIES
from barnabas.storage.state_files.checkpoints import CLEAN_SHUTDOWN_FILE
from tests.interop.differential.known import KNOWN, LEFT_OUT
from tests.interop.differential.membership import Pause
from tests.interop.differential.recipes import Batch, Producer, Splice
from tests.interop.differential.sides import (
    CLOSED,
    SILENT,
    UNCOORDINATED,
    Pair,
    Session,
    Side,
    error_codes,
)
from tests.interop.differential.steps import (
    LATEST,
    Ready,
    alter_configs_request,
    create_topic,
    list_offsets_request,
    produce_request,
)
from tests.support.build import api_request
from tests.support.config_requests import BROKER, SET, TOPIC, change
from tests.support.group_requests import (
    commit_request,
    heartbeat_request,
    join_request,
    sync_request,
)
from tests.support.server import fetch_request, fetch_topic
from tests.support.server import produce_request as produce_to
from tests.support.streams_programs import first_heartbeat, internal, part, topology
from tests.support.topic_requests import creatable
from tests.support.wire_client import WireClient

SOON: Final = 4.0
"""Seconds without an answer that count as none."""
NO_OPERATION: Final = 9
ALL_BUT_2_GIB: Final = b"\xfe\xff\xff\xff\x0f"
"""The length of a record, as large as it can be."""
FEW: Final = 20
MANY: Final = 2000
"""Records in a batch, by which it depends whether the versions of a library choose alike."""
TESTS: Final = Path(__file__).parents[2]
DAMAGED: Final = Batch(
    times=(1000,),
    value_bytes=100,
    keys=3,
    headers=1,
    codec=CompressionType.GZIP,
    seed=828455856,
    changes=(Splice(54, 4, b""),),
).build()
BOMB: Final = bytes(
    build_batch(
        [SimpleRecord(1_700_000_000_000, None, bytes(65 * 2**20))],
        compression=CompressionType.GZIP,
    )
)
GIANT: Final = seal_batch(
    ALL_BUT_2_GIB + bytes(encode_records([Record(0, 1000, None, b"v")], 0, 1000)[1:]),
    1,
    base_offset=0,
    last_offset_delta=0,
    base_timestamp=1000,
    max_timestamp=1000,
    compression=CompressionType.GZIP,
)

T = TypeVar("T")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("differences"), UNCOORDINATED)
    with made.brokers:
        asyncio.run(made.start())
        yield made


def both(pair: Pair, does: Callable[[Session], Coroutine[Any, Any, T]]) -> tuple[T, T]:
    """
    What comes of the same, done to Kafka and to Barnabas.
    """

    async def run(side: Side) -> T:
        session = Session(side)
        try:
            return await does(session)
        finally:
            await session.close()

    async def run_both() -> tuple[T, T]:
        kafka, barnabas = await asyncio.gather(*map(run, pair.sides))
        return kafka, barnabas

    return asyncio.run(run_both())


async def create(session: Session, topic: str, **configs: str | int) -> None:
    configs = {"retention_ms": -1, **configs}
    named = {name.replace("_", "."): str(value) for name, value in configs.items()}
    await create_topic(topic, 1, named).run(session)
    await Ready(topic, 1).run(session)


async def produce(session: Session, topic: str, *made: Batch) -> list[int]:
    """
    The error of each batch, sent one by one.
    """
    codes: list[int] = []
    for batch in made:
        answer = await session.ask(produce_request(session, topic, {0: batch.build()}), 9)
        codes += error_codes(answer)
    return codes


async def end_of(session: Session, topic: str) -> int:
    answer = await session.ask(list_offsets_request(topic, {0: LATEST}), 5)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def stored(side: Side, topic: str) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((side.data / f"{topic}-0").glob("*.log")))


class Asked(NamedTuple):
    """
    A request, and its error codes from Kafka and from Barnabas, or ``SILENT`` or ``CLOSED``.

    Args:
        configs: those of the topic that is created first, which has the name of the difference.
    """

    request: Message
    version: int
    kafka: list[int] | str
    barnabas: list[int] | str
    configs: Mapping[str, str | int] | None = None


def grow(topic: str, count: int, timeout_ms: int) -> Message:
    wanted = {"name": topic, "count": count, "assignments": None}
    validate = topic != "nowhere"
    return api_request(
        "create_partitions", topics=[wanted], timeout_ms=timeout_ms, validate_only=validate
    )


def of_broker(option: str, value: str) -> Message:
    return change(BROKER, "1", (option, SET, value), validate=True)


def by_pattern(pattern: str) -> Message:
    return api_request(
        "list_transactions",
        state_filters=[],
        producer_id_filters=[],
        transactional_id_pattern=pattern,
    )


E: Final = ErrorCode
UNCOMPRESSED: Final = {"compression_type": "uncompressed"}
ASKED: Final[Mapping[str, list[Asked]]] = {
    "records-null": [Asked(produce_to("records-null", None), 9, SILENT, [E.INVALID_RECORD], {})],
    "unanswered": [
        Asked(api_request("add_partitions_to_txn", transactions=[]), 5, SILENT, [E.NONE])
    ],
    "timed-out": [
        Asked(
            api_request("create_topics", topics=[creatable("timed-out")], timeout_ms=0),
            7,
            [E.REQUEST_TIMED_OUT],
            [E.NONE],
        ),
        # What is wrong with a request is told here, however short its timeout.
        *(
            Asked(
                grow("nowhere", 2, timeout_ms),
                3,
                [E.REQUEST_TIMED_OUT],
                [E.UNKNOWN_TOPIC_OR_PARTITION],
            )
            for timeout_ms in (-1, -(2**31))
        ),
    ],
    "partitions-at-once": [
        Asked(
            grow("partitions-at-once", count, 9000),
            3,
            [E.UNKNOWN_SERVER_ERROR],
            [E.POLICY_VIOLATION],
            {},
        )
        for count in (10_002, 2**31 - 1)
    ],
    "broker-options": [
        Asked(of_broker(option, value), 1, [E.NONE], [E.INVALID_REQUEST])
        for option, value in (
            ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"),
            ("cordoned.log.dirs", ""),
        )
    ],
    "topic-id-of-zeros": [
        Asked(
            fetch_request(fetch_topic(ZERO_UUID, {0: 0, 1: 0}), min_bytes=0),
            13,
            [E.UNKNOWN_SERVER_ERROR],
            [E.UNKNOWN_TOPIC_ID] * 2,
        )
    ],
    "pattern-classes": [
        Asked(by_pattern(pattern), 2, [E.NONE], [E.INVALID_REGULAR_EXPRESSION])
        for pattern in (r"\p{Greek}+", "a" * 10_001)
    ],
    "bomb": [Asked(produce_to("bomb", BOMB), 9, [E.NONE], [E.UNKNOWN_SERVER_ERROR], {})],
    "entries": [
        Asked(
            api_request(
                "metadata",
                topics=[{"name": "entries"}] * (MOST_ENTRIES + 1),
                allow_auto_topic_creation=False,
            ),
            4,
            [E.UNKNOWN_TOPIC_OR_PARTITION],
            CLOSED,
        )
    ],
    **{
        name: [
            Asked(
                produce_to(name, bytes(data)),
                9,
                [E.UNKNOWN_SERVER_ERROR],
                [E.INVALID_RECORD],
                UNCOMPRESSED,
            )
        ]
        for name, data in (("giant-record", GIANT), ("broken-twice", DAMAGED))
    },
    "config-operation": [
        Asked(
            change(TOPIC, "config-operation", ("retention.ms", NO_OPERATION, "1")),
            1,
            [E.UNKNOWN_SERVER_ERROR],
            [E.INVALID_REQUEST],
            {},
        )
    ],
}


@pytest.mark.parametrize(
    ("name", "asked"), [(name, asked) for name, several in ASKED.items() for asked in several]
)
def test_request_is_answered_differently(pair: Pair, name: str, asked: Asked) -> None:
    async def ask(session: Session) -> list[int] | str:
        if asked.configs is not None:
            await create(session, name, **asked.configs)
        seconds = SOON if asked.kafka == SILENT else 60
        answer = await session.ask(asked.request, asked.version, seconds=seconds)
        if isinstance(answer, str):
            return answer
        return [code for code in error_codes(answer) if code] or [E.NONE]

    assert (asked.kafka, asked.barnabas) == both(pair, ask)


def test_long_poll_ends_differently_behind_a_request(pair: Pair) -> None:
    """
    Without a clock: the answer in front has what comes after the request behind it, or has not.
    """
    poll = fetch_request(fetch_topic("long-poll-behind", {0: 0}), max_wait_ms=60_000, min_bytes=1)
    batch = Batch(times=(1000,)).build()

    async def fetch(session: Session) -> bool:
        await create(session, "long-poll-behind")
        async with await WireClient.open(session.side.broker.port) as client:
            client.send(poll, version=12)
            client.send(list_offsets_request("long-poll-behind", {0: LATEST}), version=5)
            answer = asyncio.create_task(client.receive())
            await asyncio.wait({answer}, timeout=1)
            await session.ask(produce_to("long-poll-behind", batch), 9)
            return bool((await answer).responses[0].partitions[0].records)

    assert (True, False) == both(pair, fetch)


def test_refused_commit_differs(pair: Pair) -> None:
    refused = commit_request("refused-commit", "refused-commit", {0: 1}, metadata="m" * 5000)
    later = replace(refused, generation_id_or_member_epoch=3, member_id="m")

    async def commit(session: Session) -> Any:
        await create(session, "refused-commit")
        answers = [await session.ask(request, 9) for request in (refused, later)]
        groups = ["refused-commit"]
        described = await session.ask(api_request("describe_groups", groups=groups), 5)
        deleted = await session.ask(api_request("delete_groups", groups_names=groups), 2)
        return (
            [answer.topics[0].partitions[0].error_code for answer in answers],
            described.groups[0].group_state,
            deleted.results[0].error_code,
        )

    codes = [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert ((codes, "Dead", 0), (codes, "Empty", 0)) == both(pair, commit)


def test_error_without_a_message_differs(pair: Pair) -> None:
    async def set_nothing(session: Session) -> Any:
        nothing = {"mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b""}
        users = [{"name": "wordless", **nothing}]
        request = api_request("alter_user_scram_credentials", deletions=[], upsertions=users)
        answer = await session.ask(request, 0)
        return answer.results[0].error_code, answer.results[0].error_message

    kafka, (code, message) = both(pair, set_nothing)
    assert (ErrorCode.UNKNOWN_SERVER_ERROR, None) == kafka
    assert ErrorCode.UNKNOWN_SERVER_ERROR == code
    assert "password" in message


def test_protocol_named_twice_is_counted_differently(pair: Pair) -> None:
    async def join(session: Session) -> Any:
        protocols = [{"name": "range", "metadata": b"m"}] * 2
        request = join_request("protocol-twice", rebalance_timeout_ms=6_000, protocols=protocols)
        return await session.ask(request, 3, seconds=SOON)

    kafka, barnabas = both(pair, join)
    assert kafka == SILENT
    assert (ErrorCode.NONE, "range") == (barnabas.error_code, barnabas.protocol_name)


def consumer_heartbeat(group: str, epoch: int) -> Message:
    return api_request(
        "consumer_group_heartbeat",
        group_id=group,
        member_id="consumer",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[group],
        topic_partitions=[],
    )


def test_lost_tombstones_differ(pair: Pair) -> None:
    group = "lost-tombstones"

    async def join(session: Session) -> tuple[int, int]:
        for epoch in (0, -1):
            await session.ask(consumer_heartbeat(group, epoch), 1)
        refused = await session.ask(join_request(group, "somebody"), 3)
        again = await session.ask(consumer_heartbeat(group, 0), 1)
        return refused.error_code, again.member_epoch

    # The group begins anew where it was lost.
    assert ((ErrorCode.UNKNOWN_MEMBER_ID, 2), (ErrorCode.UNKNOWN_MEMBER_ID, 4)) == both(pair, join)


def test_endpoint_of_a_member_without_tasks_differs(pair: Pair) -> None:
    async def join(session: Session) -> tuple[int, list[int]]:
        program = topology(part("0", ["no-such-topic"]))
        endpoint = Endpoint(host="h", port=1)
        request = first_heartbeat("endpoint-without-tasks", program, user_endpoint=endpoint)
        answer = await session.ask(request, 0)
        return answer.error_code, [status.status_code for status in answer.status]

    missing_source_topics = 1
    assert ((-1, []), (0, [missing_source_topics])) == both(pair, join)


def streams_heartbeat(group: str, epoch: int) -> Message:
    """
    That of a member without tasks.
    """
    return first_heartbeat(group, topology(), topology=None, member_epoch=epoch)


def test_lost_response_differs(pair: Pair) -> None:
    group = "lost-answer"

    async def come_back(session: Session) -> list[TaskIds] | None:
        await create_topic(group).run(session)
        await Pause(1.0).run(session)
        program = topology(part("0", [group]))
        joined = await session.ask(first_heartbeat(group, program), 0)
        await session.ask(first_heartbeat(group, program, member_id="n", process_id="q"), 0)
        epoch = joined.member_epoch
        for _ in range(2):
            answer = await session.ask(streams_heartbeat(group, epoch), 0)
        assert answer.member_epoch > epoch
        found: list[TaskIds] | None = answer.active_tasks
        return found

    kafka, barnabas = both(pair, come_back)
    assert kafka is None
    assert [("0", [0])] == [(each.subtopology_id, each.partitions) for each in barnabas or ()]


def test_stale_timer_differs(pair: Pair) -> None:
    group, timeout_s = "stale-timer", 3

    subscription = ConsumerProtocolSubscription(topics=[group], owned_partitions=[])
    metadata = b"\0\1" + encode(subscription, 1)
    join_classic = join_request(
        group,
        "classic",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=1000 * timeout_s,
        protocols=[{"name": "range", "metadata": metadata}],
    )

    async def come_and_go(session: Session) -> int:
        await create(session, group)
        await session.ask(consumer_heartbeat(group, 0), 1)
        begun = time.monotonic()
        assert 0 == (await session.ask(join_classic, 5)).error_code  # and no SyncGroup
        await session.ask(consumer_heartbeat(group, -1), 1)
        joined = await session.ask(join_classic, 5)
        sync = sync_request(
            group,
            "classic",
            joined.generation_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[{"member_id": "classic", "assignment": b""}],
        )
        assert 0 == (await session.ask(sync, 5)).error_code
        await session.ask(consumer_heartbeat(group, 0), 1)
        await asyncio.sleep(begun + timeout_s + 1 - time.monotonic())
        heartbeat = heartbeat_request(group, "classic", joined.generation_id)
        code: int = (await session.ask(heartbeat, 4)).error_code
        return code

    removed, rejoins = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS
    assert (removed, rejoins) == both(pair, come_and_go)


def compressible(seed: int, *, count: int) -> Batch:
    value_bytes = 300 if count == FEW else 40
    return Batch(times=(1000,) * count, value_bytes=value_bytes, keys=100, seed=seed)


@pytest.mark.parametrize(
    ("name", "count", "options"),
    [
        ("snappy-bytes", FEW, {"compression_type": "snappy"}),
        ("zstd-bytes", MANY, {"compression_type": "zstd"}),
        ("lz4-low-levels", FEW, {"compression_type": "lz4", "compression_lz4_level": 1}),
    ],
)
def test_compressed_bytes_of_codecs_differ(
    pair: Pair, name: str, count: int, options: Mapping[str, str | int]
) -> None:
    async def store(session: Session) -> list[int]:
        await create(session, name, **options)
        return await produce(
            session, name, *(compressible(seed, count=count) for seed in range(20))
        )

    kafka, barnabas = both(pair, store)

    assert [0] * 20 == kafka == barnabas
    one, other = (stored(side, name) for side in pair.sides)
    assert one != other
    records = [[[*batch.records()] for batch in batches(data)] for data in (one, other)]
    assert records[0] == records[1]


def test_differences_after_a_stop_are_shown(pair: Pair) -> None:
    """
    The six that show when the brokers start: a log with a gap, an index that has no room for what
    a recovery puts into it, one that is larger than it may be, one that nobody has used, a producer
    that sends again what was on the way, and a streams group.
    """
    now_ms = round(time.time() * 1000)
    on_the_way = [Batch(times=(now_ms,), producer=Producer(4000, 0, number)) for number in range(6)]

    async def prepare(session: Session) -> None:
        await create(session, "gap", internal_segment_bytes=500)
        await create(session, "index", segment_index_bytes=1200, index_interval_bytes=0)
        await create(session, "full", segment_index_bytes=36, index_interval_bytes=0)
        await create(session, "twice")
        await create(session, "unused", segment_index_bytes=800)
        await join_with_changelog(session)
        some = [Batch(times=(1000,), value_bytes=100, seed=seed) for seed in range(20)]
        later = [Batch(times=(1000 + n,), value_bytes=100, seed=n) for n in range(20)]
        assert [0] * 20 == await produce(session, "gap", *later)
        assert [0] * 20 == await produce(session, "index", *some)
        assert [0] * 2 == await produce(session, "full", Batch(times=(1,)), Batch(times=(2,)))

    both(pair, prepare)
    assert (1, 1) == both(pair, changelog_partitions)
    asyncio.run(pair.stop())
    for side in pair.sides:
        tear(side.data)
    asyncio.run(pair.start())

    kafka, barnabas = both(pair, lambda session: end_of(session, "gap"))
    assert (20, 1) == (kafka, barnabas)
    assert (0, 1) == both(pair, changelog_partitions)

    async def fill(session: Session) -> None:
        assert [0] * 2 == await produce(session, "full", Batch(times=(3,)), Batch(times=(4,)))

        assert [0] * 6 == await produce(session, "twice", *on_the_way)

    both(pair, fill)
    pair.kill()
    for suffix in ("index", "timeindex"):
        file = Path("unused-0", f"{0:020}.{suffix}")
        sizes = [(side.data / file).stat().st_size for side in pair.sides]
        assert [{"index": 800, "timeindex": 792}[suffix], 0] == sizes
    pair.barnabas.broker.start()
    with pytest.raises(AssertionError, match="ended at once"):
        pair.kafka.broker.start()
    assert "TimeIndex.maybeAppend" in pair.kafka.broker.log_since_start()
    shutil.rmtree(pair.kafka.data / "full-0")
    pair.kafka.broker.start()
    asyncio.run(pair.kafka.have_coordinators())

    refused, known = both(pair, lambda session: produce(session, "twice", *on_the_way))
    assert ([45, 45, 45, 45, 45, 0], [45, 0, 0, 0, 0, 0]) == (refused, known)

    async def shrink(session: Session) -> Any:
        answer = await session.ask(alter_configs_request("index", {"segment.index.bytes": "40"}), 1)
        return answer.responses[0].error_code

    assert (0, 0) == both(pair, shrink)
    asyncio.run(pair.stop())
    pair.barnabas.broker.start()
    with pytest.raises(AssertionError, match="ended at once"):
        pair.kafka.broker.start()


async def join_with_changelog(session: Session) -> None:
    await create(session, "uncounted")
    program = part("0", ["uncounted"], changelogs=[internal("uncounted-changelog")])
    await session.ask(first_heartbeat("uncounted", topology(program)), 0)


async def changelog_partitions(session: Session) -> int:
    """
    How many partitions the changelog of the group is said to have, once its member has tasks.
    """
    describe = api_request(
        "streams_group_describe", group_ids=["uncounted"], include_authorized_operations=False
    )
    for _ in range(100):
        described = await session.ask(describe, 0)
        (group,) = described.groups
        (member,) = group.members
        if member.assignment.active_tasks:
            break
        await session.ask(streams_heartbeat("uncounted", member.member_epoch), 0)
        await asyncio.sleep(0.1)
    await session.ask(streams_heartbeat("uncounted", member.member_epoch), 0)
    described = await session.ask(describe, 0)
    (program,) = described.groups[0].topology.subtopologies
    partitions: int = program.state_changelog_topics[0].partitions
    return partitions


def tear(data: Path) -> None:
    """
    Leave the log directory as a machine does that lost the end of the first segment when it
    crashed.
    """
    first = data / "gap-0" / f"{0:020}.log"
    whole = first.read_bytes()
    end = next(batches(whole)).end
    first.write_bytes(whole[:end])
    (data / CLEAN_SHUTDOWN_FILE).unlink()
    (data / "recovery-point-offset-checkpoint").write_text("0\n1\ngap 0 0\n")


SHOWN: Final[Mapping[str, object]] = {
    **dict.fromkeys(ASKED, test_request_is_answered_differently),
    "acl-numbers": "test_acls_that_are_filters_are_refused_individually",
    "acl-wildcard": "test_resource_names_that_begin_with_a_star_are_matched_exactly",
    "scram-extensions": "test_extensions_of_scram_may_have_any_order",
    "telemetry": "test_metrics_are_dropped_unread",
    "unknown-user": "test_unknown_name_takes_the_steps_of_a_wrong_password",
    "expired-token": "test_token_whose_owner_is_not_a_user_authenticates_nobody",
    "first-round": "test_group_in_its_first_join_round_can_be_upgraded",
    "not-ready": "test_not_ready_state_is_found_by_both_of_its_names",
    "unreadable-member": "test_malformed_metadata_of_the_common_protocol_prevents_the_downgrade",
    "missing-secret": "test_configuration_variable_without_a_value_is_refused",
    "stored-variables": "test_variables_in_dynamic_options_are_literal",
    "long-poll-behind": test_long_poll_ends_differently_behind_a_request,
    "created-by-metadata": "test_metadata_request_creates_topics",
    "refused-commit": test_refused_commit_differs,
    "wordless": test_error_without_a_message_differs,
    "answer-memory": "test_response_beyond_the_limit_closes_the_connection",
    "coordinator-memory": "test_offsets_beyond_the_memory_budget_are_refused",
    "directory-names": "test_partitions_without_a_legal_directory_name_are_refused",
    "endless-transaction": "test_every_transaction_that_may_begin_can_be_aborted",
    "delegation-tokens": "test_tokens_of_one_requester_take_a_bounded_memory",
    "metrics-patterns": "test_pattern_of_a_metrics_subscription_is_bounded",
    "pattern-time": "test_match_that_has_taken_long_ends_for_one_that_waits",
    "topology-size": "test_member_with_a_large_topology_does_not_block_the_event_loop",
    "members": "test_members_of_all_groups_share_one_memory_budget",
    "producers": "test_new_producer_beyond_the_maximum_evicts_the_oldest",
    "share-gap": "test_lost_offsets_of_a_stored_gap_are_not_fetched_again",
    "share-runs": "test_number_of_runs_in_a_batch_is_limited",
    "share-state-ahead": "test_group_whose_records_are_lost_continues_with_its_share_states",
    "session-partitions": "test_fetch_beyond_the_partition_limit_leaves_sessions_as_they_are",
    "protocol-twice": test_protocol_named_twice_is_counted_differently,
    "lost-tombstones": test_lost_tombstones_differ,
    "endpoint-without-tasks": test_endpoint_of_a_member_without_tasks_differs,
    "lost-answer": test_lost_response_differs,
    "uncounted-topics": test_differences_after_a_stop_are_shown,
    "stale-timer": test_stale_timer_differs,
    "snappy-bytes": test_compressed_bytes_of_codecs_differ,
    "zstd-bytes": test_compressed_bytes_of_codecs_differ,
    "lz4-low-levels": test_compressed_bytes_of_codecs_differ,
    "full-index-after-crash": test_differences_after_a_stop_are_shown,
    "batches-after-kill": test_differences_after_a_stop_are_shown,
    "gap-after-power-loss": test_differences_after_a_stop_are_shown,
    "set-aside": "test_recovery_deletes_segments_behind_a_corrupt_one",
    "index-larger-than-limit": test_differences_after_a_stop_are_shown,
    "unused-index": test_differences_after_a_stop_are_shown,
    "cleaned-left": "test_malformed_batch_stops_the_cleaning_and_leaves_whole_segments",
    "cleaner-checkpoint-early": "test_aborted_cleaning_writes_only_its_start_to_the_checkpoint",
}
"""
By which test; one that is only named is of the storage engine, of the server or of access control,
since no request to a pair with these settings shows it.
"""


def test_each_known_difference_is_shown_by_a_test() -> None:
    assert {*KNOWN, *LEFT_OUT} == SHOWN.keys()
    own = [
        path
        for name in ("storage", "coordination", "server")
        for path in (TESTS / name).rglob("*.py")
    ]
    own.append(TESTS / "interop" / "test_authorization.py")
    ours = "".join(path.read_text() for path in own)
    assert all(f"def {name}(" in ours for name in SHOWN.values() if isinstance(name, str))
