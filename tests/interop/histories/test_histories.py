"""
Checked histories: concurrent clients under faults, and rules for everything that they saw.

A seed gives a plan (``plan``): producers of every setting, transactional producers, some with the
same id, transformers, readers, members of classic, consumer and share groups, an administrator,
and librdkafka; beside them kills, pauses, clean stops, full, failing and slow disks, losses of
power and clocks that jump. ``clients`` takes the steps and records a history (``history``),
``hosts`` causes the faults, ``checker`` has the rules, and ``run`` reads everything at the end, and
shrinks a plan that fails.

``BARNABAS_HISTORIES=10000`` runs that many, ``BARNABAS_HISTORIES_SEED=N`` others, and
``BARNABAS_INTEROP_BROKER=apache`` runs them against Apache Kafka: a failure there is one of the
rules. ``BARNABAS_HISTORIES_SEED=N BARNABAS_HISTORIES=1`` runs the plan of a failure again.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial

import pytest

from tests.interop.histories.run import Failure, Figures, run_plan, run_seeds, shrink
from tests.support.apache_kafka import require_java

pytestmark = pytest.mark.prove

COUNT = int(os.environ.get("BARNABAS_HISTORIES", "200"))
FIRST = int(os.environ.get("BARNABAS_HISTORIES_SEED", "0"))
WITH_APACHE_KAFKA = 2
"""
A start of Apache Kafka takes seconds.
"""
IS_APACHE = os.environ.get("BARNABAS_INTEROP_BROKER") == "apache"


@pytest.mark.timeout(600 if COUNT <= 200 else 0)
def test_histories_break_no_rule() -> None:
    _expect_no_failure(range(FIRST, FIRST + COUNT), apache=IS_APACHE)


def test_histories_of_apache_kafka_break_no_rule() -> None:
    """
    A rule that Apache Kafka breaks is wrong.
    """
    require_java()
    _expect_no_failure(range(FIRST, FIRST + min(COUNT, WITH_APACHE_KAFKA)), apache=True)


def _expect_no_failure(seeds: range, *, apache: bool) -> None:
    figures = Figures()
    failures = asyncio.run(_run(seeds, figures, apache=apache))
    print(figures)
    assert not failures, "\n\n".join(map(str, failures))


async def _run(seeds: range, figures: Figures, *, apache: bool) -> list[Failure]:
    failures = await run_seeds(seeds, apache=apache, at_once=2 if apache else 4, figures=figures)
    run = partial(run_plan, apache=apache)
    return [await shrink(failure, run) for failure in failures[:1]] + failures[1:]
