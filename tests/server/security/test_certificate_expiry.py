from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from barnabas.testing.manual_clock import ManualClock
from tests.support.certificates import HOST, Certificates
from tests.support.server import START_MS, TestBroker, running, until

NOW: Final = datetime.fromtimestamp(START_MS / 1000, UTC)
BEGINS: Final = NOW - timedelta(days=300)
DAY_S: Final = 86_400.0
NAMES: Final = (HOST, "localhost")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def renew(certificates: Certificates, left: timedelta) -> None:
    certificates.issue("broker", *NAMES, begins=BEGINS, ends=NOW + left)


@asynccontextmanager
async def served(
    certificates: Certificates, clock: ManualClock | None = None
) -> AsyncIterator[TestBroker]:
    async with running(
        None,
        clock or ManualClock(START_MS),
        listeners="SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        **{name.replace(".", "_"): value for name, value in certificates.settings().items()},
    ) as broker:
        yield broker


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [
        (record.levelno, record.getMessage())
        for record in caplog.records
        if record.name.endswith("tls.expiry")
    ]


@pytest.mark.parametrize(
    ("left", "level", "words"),
    [
        (timedelta(days=31), None, ""),
        (timedelta(days=30, seconds=1), None, ""),
        (timedelta(days=30), logging.WARNING, "ends at 2023-12-14 22:13 UTC, in 30 days"),
        (timedelta(days=9, hours=23), logging.WARNING, "ends at 2023-11-24 21:13 UTC, in 9 days"),
        (timedelta(seconds=1), logging.WARNING, "in 0 days"),
        (timedelta(0), logging.ERROR, "has ended at 2023-11-14 22:13 UTC"),
        (timedelta(days=-7), logging.ERROR, "has ended at 2023-11-07 22:13 UTC"),
    ],
)
async def test_start_warns_of_a_certificate_that_expires_soon(
    certificates: Certificates,
    caplog: pytest.LogCaptureFixture,
    left: timedelta,
    level: int | None,
    words: str,
) -> None:
    renew(certificates, left)

    async with served(certificates) as broker:
        seconds = broker.metrics.value("certificate_seconds_left", listener="SSL")

    assert left.total_seconds() == seconds
    assert ([] if level is None else [level]) == [found for found, _ in told(caplog)]
    for _, message in told(caplog):
        assert message.startswith("listener SSL: the certificate of OU=Brokers,O=Tests ")
        assert words in message


async def test_expiring_certificate_is_warned_of_once_a_day(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    renew(certificates, timedelta(days=32))
    clock = ManualClock(START_MS)

    async with served(certificates, clock) as broker:
        await clock.pass_time(1.5 * DAY_S)
        assert [] == told(caplog)
        await clock.pass_time(2 * DAY_S)
        await until(lambda: len(told(caplog)) == 2)
        await clock.pass_time(30 * DAY_S)
        await until(lambda: len(told(caplog)) == 32)
        assert -1.5 * DAY_S == broker.metrics.value("certificate_seconds_left", listener="SSL")

    assert {logging.ERROR} == {level for level, _ in told(caplog)[-2:]}
    assert {logging.WARNING} == {level for level, _ in told(caplog)[:-2]}


async def test_replaced_keystore_is_checked_once_it_is_in_use(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    renew(certificates, timedelta(days=200))

    async with served(certificates) as broker:
        renew(certificates, timedelta(days=3))
        for _ in range(3):
            broker.security.reconfigure(broker.config.given)
        seconds = broker.metrics.value("certificate_seconds_left", listener="SSL")

    assert 3 * DAY_S == seconds
    assert 1 == len(told(caplog)), "the others have changed nothing"


async def test_certificate_of_the_authority_may_expire_first(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    renew(certificates, timedelta(days=200))
    first = certificates.broker.read_bytes()
    authority = certificates.issue(
        "between", "example.org", unit="Authority", begins=BEGINS, ends=NOW + timedelta(days=2)
    ).read_bytes()
    begin = b"-----BEGIN CERTIFICATE"
    certificates.broker.write_bytes(first + authority[authority.index(begin) :])

    async with served(certificates):
        pass

    ((level, message),) = told(caplog)
    assert logging.WARNING == level
    assert "the certificate of OU=Authority,O=Tests ends" in message


async def test_certificate_expiry_is_not_watched_without_tls(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running() as broker:
        names = {sample.name for sample in broker.metrics}

    assert "certificate_seconds_left" not in names
    assert [] == told(caplog)
