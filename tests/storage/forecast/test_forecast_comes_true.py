"""
What is foreseen is held against what retention deletes: producers and groups at random rates, on a
clock that the test moves, before the log engine and its own checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Final

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.forecast.commits import CommitHistory
from barnabas.storage.forecast.deletions import Checks, LogOutlook, outlook
from barnabas.storage.forecast.forecast import Forecast, ForecastVerdict, forecast
from barnabas.storage.log.log import Log
from barnabas.storage.log.retention import LogState
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.log_manager import T0, load, open_manager
from tests.support.logs import config_with
from tests.support.segments import FIRST_TIMESTAMP

pytestmark = pytest.mark.prove

SEEDS: Final = range(50)
TICK_MS: Final = 20_000
MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
NEVER: Final = 2**62


class Group:
    """
    A group that reads at about its pace, and resets its offset to the start of the log if that has
    overtaken it. It commits each minute or so.
    """

    def __init__(self, name: str, offset: int, per_tick: float, stops_ms: int, random: Random):
        self.name = name
        self.history = CommitHistory(offset, 0)
        self.lost: list[tuple[int, range]] = []
        """The offsets that were deleted unread since the forecast, and when that was seen."""
        self.foreseen: Forecast | None = None
        self._position = float(offset)
        self._per_tick = per_tick
        self._stops_ms = stops_ms
        self._random = random

    @property
    def position(self) -> int:
        return int(self._position)

    def meet(self, now_ms: int, log_start: int) -> None:
        """
        Find out that the log starts later now.
        """
        if self.position < log_start:
            self.lost.append((now_ms, range(self.position, log_start)))
            self._position = log_start

    def read(self, now_ms: int, log_start: int, end: int) -> None:
        self.meet(now_ms, log_start)
        if now_ms < self._stops_ms:
            step = self._per_tick * self._random.uniform(0.7, 1.3)
            self._position = min(end, self._position + step)
            if now_ms % MINUTE < TICK_MS:
                self.history.add(self.position, now_ms, log_start)


class Sizes:
    """
    The bytes of the records that a log has.
    """

    def __init__(self, log: Log) -> None:
        self._sizes: dict[int, float] = {}
        for segment in log.segments.values():
            for batch in segment.log.headers():
                offsets = range(batch.base_offset, batch.last_offset + 1)
                self._sizes |= dict.fromkeys(offsets, batch.size / len(offsets))

    def part(self, offsets: range) -> float:
        return sum(self._sizes[offset] for offset in offsets)


class World:
    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.clock = ManualClock(FIRST_TIMESTAMP)
        self.batch_size = random.randint(150, 400)
        self.per_batch = random.randint(1, 4)
        by = random.choice(["time", "size", "both"])
        segment_bytes = self.batch_size * random.randint(20, 60)
        hours = random.uniform(1.5, 4)
        per_hour = self.batch_size * HOUR // TICK_MS
        config = config_with(
            segment_bytes=segment_bytes,
            segment_ms=random.choice([10**10, 8 * MINUTE]),
            retention_ms=-1 if by == "size" else round(hours * HOUR),
            retention_bytes=-1 if by == "time" else round(random.uniform(1.5, 4) * per_hour),
            file_delete_delay_ms=0,
        )
        self.check_ms = random.choice([10, 300, 1800]) * 1000
        self.manager = load(
            open_manager(
                MemoryFiles(self.clock.now_ms),
                clock=self.clock,
                config=config,
                retention_check_ms=self.check_ms,
                high_watermark_checkpoint_ms=NEVER,
                recovery_point_checkpoint_ms=NEVER,
                log_start_offset_checkpoint_ms=NEVER,
                producer_id_expiration_check_ms=NEVER,
            )
        )
        self.manager.start()
        self.log = self.manager.get_or_create_log(T0)
        self.groups: list[Group] = []

    def add_groups(self) -> None:
        random, now_ms = self.random, self.clock.now_ms()
        start, end = self.log.log_start_offset, self.log.log_end_offset
        for name, pace, stops_ms in (
            ("slow", random.uniform(0.2, 0.95), NEVER),
            ("slower", random.uniform(0.02, 0.3), NEVER),
            ("catching up", random.uniform(1.1, 4), NEVER),
            ("has stopped", random.uniform(0.5, 2), now_ms + random.randint(10, 30) * MINUTE),
            ("at the end", 10.0, NEVER),
        ):
            at = end if pace == 10 else random.randint(start, end)
            group = Group(name, at, pace * self.per_batch, stops_ms, random)
            group.history.begin_again(at, now_ms)
            self.groups.append(group)

    def run(self, ms: int) -> Iterator[None]:
        """
        Let time pass, and producers and groups work; yields after each tick.
        """
        log, clock = self.log, self.clock
        end_ms = clock.now_ms() + ms
        while clock.now_ms() < end_ms:
            clock.advance(TICK_MS / 1000)
            now_ms = clock.now_ms()
            if self.random.random() < 0.95:
                self.append(now_ms)
            for group in self.groups:
                group.read(now_ms, log.log_start_offset, log.log_end_offset)
            yield

    def append(self, now_ms: int) -> None:
        size = round(self.batch_size * self.random.uniform(0.7, 1.3) / self.per_batch)
        value = bytes(max(1, size - 20))
        records = [SimpleRecord(now_ms, None, value)] * self.per_batch
        self.log.append_as_leader(memoryview(bytearray(build_batch(records))), 0)
        self.log.update_high_watermark(self.log.log_end_offset)

    def outlook(self) -> LogOutlook:
        log, now_ms = self.log, self.clock.now_ms()
        state = LogState(
            log.segments.values(), log.log_start_offset, log.high_watermark, log.log_end_offset
        )
        maintenance = self.manager.maintenance
        checks = Checks(self.check_ms, maintenance.next_retention_check_ms)
        return outlook(state, log.config, checks, now_ms=now_ms, seen_ms=now_ms)

    def foresee(self) -> None:
        """
        Let each group have its forecast, and count its losses from now on.
        """
        seen, now_ms = self.outlook(), self.clock.now_ms()
        for group in self.groups:
            group.meet(now_ms, self.log.log_start_offset)
            group.lost.clear()
            group.foreseen = forecast(group.history, seen, now_ms=now_ms, seen_ms=now_ms)


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(request.param)
    yield made
    made.manager.shutdown()


@pytest.mark.parametrize("world", SEEDS, indirect=True)
def test_forecast_losses_occur_to_within_a_segment(world: World) -> None:
    """
    Checks records and bytes for groups of all kinds. For a group that stands still, the loss begins
    at the forecast time.
    """
    log = world.log
    for _ in world.run(world.random.randint(3, 6) * HOUR):
        pass
    world.add_groups()
    for _ in world.run(world.random.randint(70, 110) * MINUTE):
        pass
    end = log.log_end_offset
    size_of = Sizes(log)
    segment = max(b - a for a, b in pairwise([*log.segments.base_offsets, end]))
    world.foresee()
    for _ in world.run(16 * HOUR):
        if log.log_start_offset >= end:
            break
    assert log.log_start_offset >= end, "the log has lost all that it had"

    for group in world.groups:
        group.meet(world.clock.now_ms(), log.log_start_offset)
        foreseen = group.foreseen
        assert foreseen is not None
        assert foreseen.verdict is not ForecastVerdict.UNKNOWN
        records, size = (foreseen.loss.records, foreseen.loss.size) if foreseen.loss else (0, 0)
        lost = [range(part.start, min(part.stop, end)) for _, part in group.lost]
        print(group.name, foreseen.verdict, records, "lost", sum(map(len, lost)), "of", segment)
        assert abs(records - sum(map(len, lost))) <= segment
        assert abs(size - sum(map(size_of.part, lost))) <= log.config.segment_size
        if group.name == "has stopped" and foreseen.loss is not None:
            (first_ms, _), *_ = group.lost
            took_ms = segment / world.per_batch * TICK_MS
            assert abs(foreseen.loss.begins_ms - first_ms) <= took_ms + world.check_ms


def test_simulated_logs_include_groups_with_and_without_losses() -> None:
    """
    Guards against a simulation in which nothing happens.
    """
    found = Counter[tuple[str, ForecastVerdict]]()
    for seed in range(0, len(SEEDS), 5):
        world = World(seed)
        for _ in world.run(3 * HOUR):
            pass
        world.add_groups()
        for _ in world.run(80 * MINUTE):
            pass
        world.foresee()
        found.update((each.name, each.foreseen.verdict) for each in world.groups if each.foreseen)
        world.manager.shutdown()

    losing = {name for name, verdict in found if verdict is ForecastVerdict.LOSS}
    in_time = {name for name, verdict in found if verdict is ForecastVerdict.IN_TIME}
    assert {"slow", "slower", "has stopped"} <= losing
    assert {"slow", "catching up"} <= in_time
    assert "at the end" not in losing
