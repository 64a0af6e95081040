"""
Forecast losses of groups in responses of the API.
"""

from __future__ import annotations

from typing import Final

from barnabas.testing.manual_clock import ManualClock
from tests.support.api_client import HTTP, ask
from tests.support.commits import commit
from tests.support.server import START_MS, batch, produce_request, running

HOUR_S: Final = 3600
GROUP: Final = "slow"
TOPIC: Final = "t"


async def test_forecast_losses_of_a_group_are_shown_on_every_path() -> None:
    """
    Lists show it after a round of forecasts; a request for the group shows it at once.
    """
    clock = ManualClock(START_MS)
    options = {"offsets_topic_num_partitions": "1", **HTTP}
    async with running(None, clock, **options) as broker:
        await broker.create("__consumer_offsets", 1, cleanup_policy="compact")
        settings = {"internal_segment_bytes": "1000", "retention_ms": str(6 * HOUR_S * 1000)}
        await broker.create(TOPIC, 1, **settings)
        await broker.create("other", 1)
        async with await broker.client() as client:
            for _ in range(20):
                records = batch("x" * 200, timestamp=clock.now_ms())
                await client.ask(produce_request(TOPIC, records), 9)
        await commit(broker, GROUP, TOPIC, 3)
        await commit(broker, "idle", "other", 0)
        await clock.pass_time(5 * HOUR_S)

        (offset,) = (await ask(broker, "/group", id=GROUP))["offsets"]
        assert "loss" == offset["forecast"]["verdict"]
        assert 3 == offset["forecast"]["loss"]["first_offset"]
        assert offset["forecast"]["words"]

        assert broker.forecasts is not None
        await broker.forecasts.check()
        groups = {each["id"]: each for each in (await ask(broker, "/groups"))["groups"]}
        lost = groups[GROUP]["forecast"]["loss"]
        assert lost["records"] == offset["forecast"]["loss"]["records"] > 10
        assert lost["begins_ms"] == offset["forecast"]["loss"]["begins_ms"]
        assert {"verdict": "nothing_unread", "loss": None} == groups["idle"]["forecast"]

        (position,) = (await ask(broker, f"/topics/{TOPIC}/partitions/0"))["groups"]
        assert "loss" == position["forecast"]["verdict"]

        (noted,) = (await ask(broker, "/cluster"))["attention"]
        assert ("loses_unread", TOPIC, 0, GROUP) == (
            noted["kind"],
            noted["topic"],
            noted["partition"],
            noted["group"],
        )
        assert noted["says"].startswith("The group slow reads t-0 too slowly: Segment ")
        assert "will be deleted unread" in noted["says"]
