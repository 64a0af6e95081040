"""
Tests that freeze, move or replace the time: the broker keeps that of the machine.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from barnabas.storage import clock as clocks
from barnabas.testing import Broker, WaitTimeout
from barnabas.testing.real_time import real_ms
from tests.support.commands import output_of
from tests.support.server import batch, produce_request
from tests.support.wire_client import WireClient

ROOT = Path(__file__).parents[2]
LONG_AGO = datetime(1984, 1, 2, 3, 4, 5, tzinfo=UTC)
FUNCTIONS = (
    "time",
    "time_ns",
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "sleep",
    "gmtime",
    "localtime",
    "strftime",
)


@contextmanager
def freezegun() -> Iterator[None]:
    library = pytest.importorskip("freezegun")
    with library.freeze_time(LONG_AGO):
        yield


@contextmanager
def ticking_freezegun() -> Iterator[None]:
    library = pytest.importorskip("freezegun")
    with library.freeze_time(LONG_AGO + timedelta(days=36_500), auto_tick_seconds=3600):
        yield


@contextmanager
def time_machine() -> Iterator[None]:
    library = pytest.importorskip("time_machine")
    with library.travel(LONG_AGO, tick=False):
        yield


@contextmanager
def patches() -> Iterator[None]:
    """
    Replace each function of the module, by one that says the same time always.
    """
    with mock.patch.multiple(time, **{name: mock.Mock(return_value=5) for name in FUNCTIONS}):
        yield


@contextmanager
def every_reference() -> Iterator[None]:
    """
    Replace the functions, and each reference to them in all modules but those of threads, as
    freezegun does it.
    """
    fakes = {id(getattr(time, name)): mock.Mock(return_value=5) for name in FUNCTIONS}
    ours = ("_pytest", "threading", "queue", "selectors", "unittest", __name__)
    with pytest.MonkeyPatch.context() as patched:
        for module in list(sys.modules.values()):
            if module is None or module.__name__.startswith(ours):
                continue
            for name, value in list(vars(module).items()):
                if id(value) in fakes and name in FUNCTIONS:
                    patched.setattr(module, name, fakes[id(value)])
        yield


KINDS = [freezegun, ticking_freezegun, time_machine, patches, every_reference]
Patched = Callable[[], AbstractContextManager[None]]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def patched(request: pytest.FixtureRequest) -> Patched:
    kind: Patched = request.param
    return kind


def true_ms() -> int:
    """
    The time of the machine, which no library reaches in another process.
    """
    command = [sys.executable, "-S", "-c", "import time; print(time.time_ns() // 1_000_000)"]
    return int(output_of(*command))


@pytest.mark.parametrize("process", [False, True])
def test_broker_that_starts_under_a_patch_has_the_real_time(
    patched: Patched, process: bool
) -> None:
    before = true_ms()
    with patched(), Broker(process=process, topics={"orders": 1}) as broker:
        broker.topic("orders").append(["one"])
        now_ms = broker.clock.now_ms()
        (record,) = broker.topic("orders").records()
        log = broker.log
    assert before <= now_ms <= true_ms()
    assert before <= record.timestamp <= now_ms
    years = {line[:4] for line in log.splitlines() if "Created topic" in line}
    assert years <= {str(datetime.fromtimestamp(each / 1000).year) for each in (before, now_ms)}


def test_clock_of_a_broker_runs_on_through_a_patch(patched: Patched) -> None:
    with Broker(topics={"orders": 1}) as broker:
        first, real = broker.clock.now_ms(), clocks.seconds_now()
        with patched():
            clocks.sleep(0.05)
            within = broker.clock.now_ms()
            broker.topic("orders").append(["one"])
        after = broker.clock.now_ms()
        passed_ms = (clocks.seconds_now() - real) * 1000

    assert first + 45 <= within <= after <= first + passed_ms + 5


def test_clients_are_served_under_a_patch(patched: Patched) -> None:
    with Broker() as broker:
        broker.topic("orders").create(config={"retention.ms": -1})

        async def produce() -> Any:
            async with await WireClient.open(broker.port) as client:
                return await client.ask(produce_request("orders", batch("one")), 9)

        with patched():
            # The loop of the client is the test's, whose time may stand still: no timer of it.
            answer = asyncio.run(produce())
            broker.clock.advance(hours=1)
            broker.restart()
            values = [record.value for record in broker.topic("orders").records()]

    assert 0 == answer.responses[0].partition_responses[0].error_code
    assert [b"one"] == values


def test_waiting_takes_real_time_under_a_patch(patched: Patched) -> None:
    with Broker() as broker, patched():
        began = clocks.seconds_now()
        with pytest.raises(WaitTimeout):
            broker.wait_until(lambda: False, seconds=0.1)
        assert 0.1 <= clocks.seconds_now() - began < 5


def test_real_time_is_not_that_of_a_patch(patched: Patched) -> None:
    before = true_ms()
    with patched():
        found = real_ms()
    assert before <= found <= true_ms()


def test_loop_without_uvloop_has_real_time() -> None:
    script = """
import sys, time
sys.modules["uvloop"] = None
from unittest import mock
from barnabas.testing import Broker
from barnabas.testing.hosts.loop import CountingLoop
loop = CountingLoop()
assert "asyncio" in type(loop).__mro__[2].__module__, type(loop).__mro__
with mock.patch("time.monotonic", lambda: 5.0), Broker(topics={"orders": 1}) as broker:
    assert 5.0 != loop.time()
    broker.topic("orders").append(["one"])
    broker.clock.advance(hours=1)
    assert 1 == len(broker.topic("orders").records())
loop.close()
print("done")
"""
    assert "done\n" == output_of(sys.executable, "-W", "ignore", "-c", script)


def test_only_one_module_of_the_broker_imports_time() -> None:
    """
    Each other one takes the functions from there, since a test replaces those of ``time``.
    """
    importing = [
        str(path.relative_to(ROOT))
        for package in ("protocol", "storage", "coordination", "server", "testing")
        for path in sorted((ROOT / package).rglob("*.py"))
        if re.search(r"^\s*(import time\b|from time import)", path.read_text(), re.MULTILINE)
    ]
    assert ["storage/barnabas/storage/clock.py"] == importing
