"""
Forecasts of a running broker: groups of all kinds, the log and the metrics.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Final

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.broker import Broker
from barnabas.server.forecast import forecasts as forecasts_module
from barnabas.server.forecast.forecasts import Forecasts
from barnabas.server.forecast.warnings import CALM_ROUNDS, MOST_LINES
from barnabas.storage.forecast.commits import Movement
from barnabas.storage.forecast.forecast import Forecast, ForecastVerdict
from barnabas.testing.manual_clock import ManualClock
from tests.support.commits import commit
from tests.support.limits import stated
from tests.support.server import START_MS, TestBroker, batch, produce_request, running, until
from tests.support.share_client import Member, ShareClient

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
SMALL_SEGMENTS: Final = {"internal_segment_bytes": "1000", "retention_ms": str(6 * HOUR * 1000)}


class World:
    """
    A broker on a clock that is moved, whose forecasts are asked for by the test.
    """

    def __init__(self, broker: TestBroker, clock: ManualClock) -> None:
        self.broker = broker
        self.clock = clock

    @property
    def forecasts(self) -> Forecasts:
        assert self.broker.forecasts is not None
        return self.broker.forecasts

    async def produce(self, topic: str, count: int, partition: int = 0) -> None:
        async with await self.broker.client() as client:
            for _ in range(count):
                records = batch("x" * 200, timestamp=self.clock.now_ms())
                answer = await client.ask(produce_request(topic, records, partition=partition), 9)
                assert 0 == answer.responses[0].partition_responses[0].error_code

    async def commit(self, group_id: str, topic: str, *offsets: int) -> None:
        await commit(self.broker, group_id, topic, *offsets)

    async def round(self, seconds: float = MINUTE) -> None:
        await self.clock.pass_time(seconds)
        await self.forecasts.check()

    async def of(self, group_id: str, topic: str = "t") -> Forecast:
        return (await self.forecasts.of_group(group_id))[topic][0]

    async def lag_behind(self, group_id: str) -> None:
        """
        Let a group stand still, while the first segments of ``t`` are nearly six hours old.
        """
        await self.produce("t", 20)
        await self.commit(group_id, "t", 3)
        await self.clock.pass_time(5 * HOUR)
        await self.produce("t", 5)


@asynccontextmanager
async def world(**options: str) -> AsyncIterator[World]:
    clock = ManualClock(START_MS)
    given = {"offsets_topic_num_partitions": "1"} | options
    async with running(None, clock, **given) as broker:
        await broker.create("__consumer_offsets", 1, cleanup_policy="compact")
        yield World(broker, clock)


@pytest.fixture
async def found() -> AsyncIterator[World]:
    """
    A world with the topic *t*.
    """
    async with world() as found:
        await found.broker.create("t", 1, **SMALL_SEGMENTS)
        yield found


FORESEE: Final = Broker._foresee


@pytest.fixture(autouse=True)
def _no_rounds_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Tests run the rounds themselves: a thread of the broker would run them at a time of its own.
    """
    monkeypatch.setattr(Broker, "_foresee", lambda self: None)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger = logging.getLogger("barnabas.server.forecast.warnings")
    handler = Handler(logging.WARNING)
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


async def test_forecast_of_a_group_that_stands_still_matches_retention(found: World) -> None:
    await found.lag_behind("g")
    foreseen = await found.of("g")
    assert foreseen.loss is not None
    partition = found.broker.partitions.expect("t", 0)
    before_ms = foreseen.loss.begins_ms - found.clock.now_ms() - 1
    await found.clock.pass_time(before_ms / 1000)
    start_before = partition.log.log_start_offset
    await found.clock.pass_time(0.002)
    start_after = partition.log.log_start_offset

    assert ForecastVerdict.LOSS is foreseen.verdict
    assert Movement.STANDS is foreseen.pace.movement
    assert START_MS == foreseen.pace.since_ms
    assert (0, 3) == (start_before, foreseen.loss.first_offset)
    assert 22 == foreseen.unread == foreseen.loss.records
    assert start_after > 3


async def test_forecast_pace_of_a_group_comes_from_its_commits(found: World) -> None:
    await found.produce("t", 40)
    for offset in (2, 4, 6):
        await found.commit("g", "t", offset)
        await found.round(30)
    foreseen = await found.of("g")

    assert ForecastVerdict.IN_TIME is foreseen.verdict
    assert pytest.approx(4 / 60_000) == foreseen.pace.records_per_ms
    assert 8 == foreseen.position
    assert foreseen.reaches_end_ms == foreseen.now_ms + (40 - 8) * 15_000


async def test_forecast_losses_of_a_slow_group_occur_to_within_a_segment() -> None:
    # ``tests/storage/forecast`` simulates the rule itself.
    async with world() as found:
        options = {"internal_segment_bytes": "9000", "retention_ms": str(HOUR * 1000)}
        await found.broker.create("t", 1, **options)
        partition = found.broker.partitions.expect("t", 0)
        log = partition.log
        position = lost = end = 0
        foreseen: Forecast | None = None
        for minute in range(200):
            await found.produce("t", 4)
            if minute >= 50:
                lost += max(0, min(end, log.log_start_offset) - position)
                position = max(position, log.log_start_offset) + 2
                await found.commit("g", "t", position)
                await found.round()
            else:
                await found.clock.pass_time(MINUTE)
            if minute == 90:
                foreseen, lost, end = await found.of("g"), 0, log.log_end_offset
            if end and log.log_start_offset >= end:
                break
        ends = [*log.segments.base_offsets, log.log_end_offset]

    assert log.log_start_offset >= end
    assert foreseen is not None
    assert foreseen.loss is not None
    assert pytest.approx(2 / 60_000, rel=0.01) == foreseen.pace.records_per_ms
    segment = max(b - a for a, b in pairwise(ends))
    assert foreseen.loss.records > 2 * segment
    assert abs(foreseen.loss.records - lost) <= segment


async def test_forecast_pace_requires_two_commits(found: World) -> None:
    await found.produce("t", 10)
    await found.commit("g", "t", 1)
    await found.round()
    before = await found.of("g")
    await found.commit("g", "t", 2)
    await found.round()
    after = await found.of("g")
    last = found.forecasts.get("g", "t", 0)
    nothing = found.forecasts.get("g", "t", 1)

    assert (after, None) == (last, nothing)
    assert ForecastVerdict.UNKNOWN is before.verdict
    assert before.next_deletion is not None
    assert ForecastVerdict.IN_TIME is after.verdict


@pytest.mark.parametrize(
    "options",
    [
        {"cleanup_policy": "compact"},
        {"retention_ms": "-1"},
        {"cleanup_policy": "compact,delete", "retention_ms": "-1"},
    ],
    ids=["compact", "no limit", "compact,delete"],
)
async def test_forecast_has_no_losses_without_retention(options: dict[str, str]) -> None:
    async with world() as found:
        await found.broker.create("t", 1, **options)
        async with await found.broker.client() as client:
            keyed = build_batch([SimpleRecord(START_MS, b"k", b"v")] * 2)
            await client.ask(produce_request("t", bytes(keyed)), 9)
        await found.commit("g", "t", 1)
        foreseen = await found.of("g")

    assert (ForecastVerdict.NEVER_DELETED, 1) == (foreseen.verdict, foreseen.unread)


async def test_forecast_includes_compacted_topics_with_delete() -> None:
    async with world() as found:
        options = {"cleanup_policy": "compact,delete", "retention_ms": str(HOUR * 1000)}
        await found.broker.create("t", 1, **options)
        async with await found.broker.client() as client:
            keyed = build_batch([SimpleRecord(START_MS, b"k", b"v")] * 2)
            await client.ask(produce_request("t", bytes(keyed)), 9)
        await found.commit("g", "t", 0)
        await found.clock.pass_time(2)
        foreseen = await found.of("g")
    async with world(log_cleaner_enable="false") as found:
        await found.broker.create("t", 1, **options)
        async with await found.broker.client() as client:
            await client.ask(produce_request("t", bytes(keyed)), 9)
        await found.commit("g", "t", 0)
        without = await found.of("g")

    assert ForecastVerdict.UNKNOWN is foreseen.verdict
    assert foreseen.next_deletion is not None
    assert foreseen.next_deletion.time_ms > foreseen.now_ms + HOUR * 500
    assert ForecastVerdict.NEVER_DELETED is without.verdict


async def test_group_at_the_log_end_has_no_forecast_losses(found: World) -> None:
    await found.produce("t", 3)
    await found.commit("g", "t", 3)
    foreseen = await found.of("g")

    assert (ForecastVerdict.NOTHING_UNREAD, 0) == (foreseen.verdict, foreseen.unread)


async def test_records_already_deleted_are_not_forecast(found: World) -> None:
    await found.lag_behind("g")
    await found.clock.pass_time(70 * MINUTE)
    foreseen = await found.of("g")
    partition = found.broker.partitions.expect("t", 0)
    start = partition.log.log_start_offset

    assert start > 3
    assert (start, start - 3) == (foreseen.position, foreseen.already_deleted)
    assert foreseen.unread == 25 - start


async def test_deleted_groups_and_partitions_have_no_forecasts(found: World) -> None:
    await found.produce("t", 3)
    await found.commit("g", "t", 1)
    await found.round()
    known = [key for key, _ in found.forecasts]
    await found.broker.delete("t")
    await found.round()
    left = [key for key, _ in found.forecasts]
    unknown = await found.forecasts.of_group("nobody")

    assert [("g", "t", 0)] == known
    assert [] == left
    assert {} == unknown


async def test_forecast_loss_is_warned_of_once(warnings: list[str], found: World) -> None:
    # After two rounds have predicted it, and again after an interruption.
    await found.lag_behind("g")
    await found.round()
    first = len(warnings)
    for _ in range(2 * CALM_ROUNDS):
        await found.round(1)
    standing = len(warnings)
    await found.commit("g", "t", 25)
    for _ in range(CALM_ROUNDS - 1):
        await found.round(1)
    await found.commit("g", "t", 3)
    await found.clock.pass_time(61 * MINUTE)
    await found.round(1)
    await found.round(1)
    flickered = len(warnings)

    assert (0, 1, 1) == (first, standing, flickered)
    assert "group g in t-0, at offset 3: Segment 3 is deleted in" in warnings[0]
    assert "(22 records from 3 on) will be deleted unread" in warnings[0]


async def test_forecast_loss_that_returns_is_warned_of_again(
    warnings: list[str], found: World
) -> None:
    await found.lag_behind("g")
    for _ in range(2):
        await found.round(1)
    for offset in (24, 25):
        await found.commit("g", "t", offset)
        await found.round()
    for _ in range(CALM_ROUNDS):
        await found.round(1)
    await found.produce("t", 1)
    await found.clock.pass_time(2 * HOUR)
    for _ in range(2):
        await found.round(1)

    assert 2 == len(warnings)
    assert "(1 record from 25 on)" in warnings[1]


async def test_forecast_loss_in_the_distant_future_is_not_warned_of(warnings: list[str]) -> None:
    async with world() as found:
        await found.broker.create("t", 1, retention_ms=str(30 * 24 * HOUR * 1000))
        await found.lag_behind("g")
        for _ in range(3):
            await found.round()
        foreseen = await found.of("g")

    assert ForecastVerdict.LOSS is foreseen.verdict
    assert [] == warnings


async def test_round_with_many_forecast_losses_logs_few_lines(warnings: list[str]) -> None:
    async with world() as found:
        most = MOST_LINES + 5
        await found.broker.create("t", most, **SMALL_SEGMENTS)
        for index in range(most):
            await found.produce("t", 1, index)
        await found.commit("g", "t", *[0] * most)
        await found.clock.pass_time(5 * HOUR)
        for _ in range(3):
            await found.round(1)

    assert MOST_LINES + 1 == len(warnings)
    assert "5 more partitions" in warnings[-1]


async def test_forecast_of_a_share_group_follows_its_start_offset() -> None:
    async with world() as found:
        client = await ShareClient.of(found.broker.port, "s")
        member = Member("shares", "m")
        await client.initialize("shares", start_offset=2)
        await client.produce(*[[b"x" * 100]] * 10)
        await found.round()
        await found.clock.pass_time(6 * MINUTE)
        await found.round()
        foreseen = await found.of("shares", "s")
        await client.close()
        assert member.group_id

    assert 2 == foreseen.pace.offset
    assert 8 == foreseen.unread
    assert Movement.STANDS is foreseen.pace.movement


async def test_forecasts_run_without_http_or_a_request(
    warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = 0
    check = Forecasts.check

    async def counted(forecasts: Forecasts) -> None:
        nonlocal rounds
        await check(forecasts)
        rounds += 1

    monkeypatch.setattr(Forecasts, "check", counted)
    monkeypatch.setattr(Broker, "_foresee", FORESEE)
    async with world() as found:
        await found.broker.create("t", 1, **SMALL_SEGMENTS)
        await found.lag_behind("g")
        for _ in range(3):
            before = rounds
            await found.clock.pass_time(MINUTE)
            await until(lambda before=before: rounds > before)  # type: ignore[misc]

    assert 1 == len(warnings)


async def test_forecast_slots_go_to_groups_that_lag_first(
    monkeypatch: pytest.MonkeyPatch, found: World
) -> None:
    monkeypatch.setattr(forecasts_module, "MOST_FOLLOWED", 2)
    await found.produce("t", 5)
    await found.commit("a", "t", 1)
    await found.commit("b", "t", 1)
    await found.round()
    await found.commit("a", "t", 5)
    await found.commit("c", "t", 1)
    full = {key.group_id for key, _ in found.forecasts}
    await found.round()
    kept = {key.group_id for key, _ in found.forecasts}

    assert {"a", "b"} == full
    assert {"b", "c"} == kept


def test_forecast_limit_matches_the_documentation() -> None:
    assert stated("groups-followed") == forecasts_module.MOST_FOLLOWED
