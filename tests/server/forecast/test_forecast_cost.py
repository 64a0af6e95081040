"""
A round over 10,000 partitions and 1,000 groups holds nobody up.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from barnabas.coordination.groups.offsets.offsets import CommittedOffset
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.server.broker import Broker
from barnabas.server.forecast.forecasts import MOST_FOLLOWED
from barnabas.storage.forecast.forecast import ForecastVerdict
from tests.support.limits import stated
from tests.support.server import START_MS, TestBroker, batch, running
from tests.support.turns import objects_set_aside, turns

PARTITIONS: Final = 10_000
GROUPS: Final = 1_000
PER_GROUP: Final = 20
TRIES: Final = 5
"""
A busy machine makes a turn longer than its work: the shortest counts.
"""


@asynccontextmanager
async def many_groups() -> AsyncIterator[TestBroker]:
    """
    A broker whose groups have read some records of some partitions.
    """
    async with running(offsets_topic_num_partitions="50") as broker:
        await broker.create("__consumer_offsets", 50, cleanup_policy="compact")
        for number in range(PARTITIONS // 2000):
            await broker.create(f"a-topic-with-a-name-{number}", 2000)
        partitions = [each for each in broker.partitions if not each.topic.startswith("__")]
        for partition in partitions:
            for _ in range(2):
                records = memoryview(bytearray(batch("x", timestamp=START_MS)))
                partition.log.append_as_leader(records, 0)
            partition.log.update_high_watermark(2)
        coordinator = broker.inside.coordinators.groups
        for number in range(GROUPS):
            group_id = f"a-group-{number}"
            store = coordinator.shards.of(group_id).state.offsets.committed
            for index in range(PER_GROUP):
                partition = partitions[(number * PER_GROUP + index) % len(partitions)]
                offset = CommittedOffset(1, -1, "", START_MS, -1, ZERO_UUID, index)
                store.put(group_id, partition.topic, partition.index, offset)
        with objects_set_aside():
            yield broker


@pytest.mark.prove
async def test_forecast_round_over_many_groups_does_not_block_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Broker, "_foresee", lambda self: None)
    found = []
    async with many_groups() as broker:
        forecasts = broker.forecasts
        assert forecasts is not None
        tracemalloc.start()
        await forecasts.check()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        for _ in range(TRIES):
            async with turns() as measured:
                began_s = time.process_time()
                await forecasts.check()
                found.append((time.process_time() - began_s, max(measured)))
        known = [foreseen.verdict for _, foreseen in forecasts]

    print(held / len(known), *found, sep="\n")
    assert MOST_FOLLOWED == len(known) < GROUPS * PER_GROUP
    assert {ForecastVerdict.UNKNOWN} == set(known)
    assert min(turn_s for _, turn_s in found) <= stated("forecast-turn")
    assert min(process_s for process_s, _ in found) <= stated("forecast-time")
