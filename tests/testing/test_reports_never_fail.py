from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from barnabas.client.batches import BatchBuilder
from barnabas.protocol.records.crc32c import crc32c
from barnabas.testing import AppendRefused, Broker, NewRecord, Record, WaitTimeout, summary
from barnabas.testing.hosts.embedded import Embedded
from barnabas.testing.operations import records as record_operations
from tests.support.examples import run_pytest
from tests.support.group_requests import commit_request, coordinator_request
from tests.support.wire_client import WireClient

YEAR_10000_MS = 253_402_300_800_000
LONG_MAX = 2**63 - 1
TIMES = (-1, 0, -62_135_596_800_001, YEAR_10000_MS - 1, YEAR_10000_MS, LONG_MAX - 1, LONG_MAX)
ANY_TIME = {"message.timestamp.after.max.ms": LONG_MAX, "message.timestamp.before.max.ms": LONG_MAX}


@pytest.mark.parametrize("timestamp", TIMES)
def test_summary_shows_records_of_any_time(timestamp: int) -> None:
    with Broker(clock="still") as broker:
        append_raw(broker, timestamp)
        text = broker.summary()
        explanation = broker.topic("orders").explain()

    assert "orders: 1 partition, 1 record" in text
    assert "b'the value'" in text
    assert "cannot be shown" not in text
    assert "orders-0" in explanation


def append_raw(
    broker: Broker,
    timestamp: int,
    *,
    key: bytes | None = b"the key",
    value: bytes | None = b"the value",
    header: bytes = b"name",
) -> None:
    """
    Append a record to the topic orders as it is, with a header name of four bytes.
    """
    builder = BatchBuilder(1_000_000)
    builder.add(timestamp, key, value, (("name", b"v"),))
    (batch,) = builder.batches()
    content = bytearray(batch)
    at = content.rindex(b"name")
    content[at : at + 4] = header
    content[17:21] = crc32c(memoryview(content)[21:]).to_bytes(4, "big")
    orders = broker.topic("orders")
    if not orders.exists:
        orders.create(config=ANY_TIME)
    broker._host.call(record_operations.append, "orders", [(0, bytes(content))])


CONTENTS = st.none() | st.binary(max_size=200)


def test_summary_shows_records_of_any_content() -> None:
    with Broker(clock="still") as broker:

        @settings(max_examples=100, deadline=None, derandomize=True, database=None)
        @given(
            st.integers(-(2**63), LONG_MAX),
            CONTENTS,
            CONTENTS,
            st.binary(min_size=4, max_size=4),
        )
        def check(timestamp: int, key: bytes | None, value: bytes | None, header: bytes) -> None:
            try:
                append_raw(broker, timestamp, key=key, value=value, header=header)
            except AppendRefused:
                assume(False)
            lines = broker.summary().splitlines()
            assert all(line.isprintable() for line in lines)
            assert not any("cannot be" in line for line in lines)
            offset = len(broker.topic("orders").records()) - 1
            (shown,) = [line for line in lines if line.startswith(f"    0@{offset} ")]
            assert len(shown) < 600

        check()


@pytest.mark.parametrize("timestamp", TIMES)
def test_time_of_a_record_is_exact_or_a_value_error(timestamp: int) -> None:
    record = Record("orders", 0, 0, timestamp, None, None)
    if -62_135_596_800_000 <= timestamp < YEAR_10000_MS:
        assert timestamp == round(record.time.timestamp() * 1000)
    else:
        with pytest.raises(ValueError, match="outside the years 1 to 9999"):
            _ = record.time


@pytest.mark.parametrize("start_ms", [YEAR_10000_MS, LONG_MAX, -LONG_MAX])
def test_clock_starts_within_the_years_of_datetime(start_ms: int) -> None:
    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        Broker(start_ms=start_ms)


@pytest.mark.parametrize(
    "content", [b"\0\x1b[31m\r\n", b"\xff" * 70, b"'\"\\" * 40, "\u202e\U0001f600".encode() * 30]
)
def test_summary_escapes_and_shortens_keys_and_values(content: bytes) -> None:
    with Broker(clock="still") as broker:
        orders = broker.topic("orders").create()
        orders.append([NewRecord(content, content, headers=[("\n\0", content)])])
        text = broker.summary()

    assert text.isprintable() or set(text) - {"\n"} == {c for c in text if c.isprintable()}
    assert max(map(len, text.splitlines())) <= summary.MOST_LINE_CHARACTERS + 10


@pytest.mark.parametrize(
    "group", ["a\nb\x1b[31m", "\u2028\u2029\x85", "g" * 30_000, "", "%s {} {0}", "\u202e\ue000"]
)
def test_summary_shows_any_group_id_on_one_bounded_line(group: str) -> None:
    with Broker(clock="still", topics={"orders": 1}) as broker:

        async def commit() -> None:
            async with await WireClient.open(broker.port) as client:
                await client.ask(coordinator_request(group), 6)
                answer = await client.ask(commit_request(group, "orders", {0: 0}), 7)
                assert 0 == answer.topics[0].partitions[0].error_code

        asyncio.run(commit())
        lines = broker.summary().splitlines()

    at = lines.index("groups:")
    assert ": Empty, 0 members, lag 0" in lines[at + 1]
    assert "    orders-0@0" == lines[at + 2]
    assert "log:" == lines[at + 3]
    assert len(lines[at + 1]) < 400
    assert lines[at + 1].isprintable()


# Broken brokers


def test_summary_of_a_stopped_broker_has_the_reason_and_the_log() -> None:
    broker = Broker(clock="still").start()
    broker.stop()
    assert "the broker is stopped" in broker.summary()
    assert "log:" in broker.summary()
    assert "the broker is not started" in Broker().summary()


def test_summary_of_a_dead_process_has_the_reason() -> None:
    with Broker(process=True) as broker:
        child = broker._host._child  # type: ignore[attr-defined]
        os.kill(child._process.pid, signal.SIGKILL)
        text = broker.summary()
        assert "the process of the broker has ended, status -9" in text
        assert repr(broker).startswith("<Broker 127.0.0.1:")


@pytest.mark.parametrize("error", [RuntimeError("broken \x1b"), KeyError(), MemoryError(), OSError])
def test_summary_survives_an_operation_that_raises(
    error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raising(broker: Embedded, *_: object) -> Any:
        raise error

    with Broker(clock="still", topics={"orders": 1}) as broker:
        monkeypatch.setattr(summary, "groups", raising)
        assert "orders: 1 partition, 0 records" in broker.summary()
        monkeypatch.setattr(summary, "names", raising)
        assert "cannot be asked" in broker.summary()
        monkeypatch.setattr(record_operations, "read", raising)


def test_summary_of_a_broker_that_hangs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hanging(broker: Embedded) -> None:
        time.sleep(3)  # noqa: ASYNC251  # the loop of the broker is to stand still

    monkeypatch.setattr(summary, "PATIENCE_S", 0.2)
    with Broker(clock="still") as broker:
        monkeypatch.setattr(summary, "names", hanging)
        began = time.monotonic()
        assert "the broker does not answer within 0.2 s" in broker.summary()
        assert time.monotonic() - began < 2


class Hostile:
    """
    An object whose texts cannot be made.
    """

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __bool__(self) -> bool:
        return False


class HostileError(AssertionError):
    """
    An error without a message.
    """

    def __str__(self) -> str:
        raise RuntimeError("no message")


def hostile_result() -> object:
    return Hostile()


def hostile_error() -> object:
    raise HostileError


@pytest.mark.parametrize("condition", [hostile_result, hostile_error])
def test_wait_ends_with_its_own_error_whatever_the_condition_returns(
    condition: Callable[[], object],
) -> None:
    with Broker(clock="still") as broker, pytest.raises(WaitTimeout, match="raises RuntimeError"):
        broker.wait_until(condition, seconds=0.01)


def test_remaining_tests_run_after_a_report_that_cannot_be_made(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
from barnabas.testing import AppendRefused, Broker, NewRecord

ANY = {"message.timestamp.after.max.ms": 2**63 - 1}

def test_late_record(kafka_broker):
    for time in (253402300800000, 2**63 - 1):
        kafka_broker.topic(f"at{time}").create(config=ANY).append([NewRecord("v", timestamp=time)])
    assert 0

def test_broken_summary(kafka_broker, monkeypatch):
    monkeypatch.setattr(Broker, "summary", lambda self: 1 / 0)
    assert 0

def test_later():
    pass
""",
    )

    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert "253402300800000 ms None b'v'" in done.stdout
