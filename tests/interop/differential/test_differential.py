"""
Apache Kafka and Barnabas do the same, and leave the same files behind.

``--workloads 600`` plays more of them than usual, ``--seed 17`` only the one that failed.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.interop.conftest import unavailable
from tests.interop.differential.kinds import KINDS, write
from tests.interop.differential.trial import Trial
from tests.support.apache_kafka import PrerequisiteMissing, class_path

ORDINARY = 5 * len(KINDS)


def test_both_brokers_do_the_same(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """
    Every field of every answer, and every file after a clean stop and after a kill.
    """
    try:
        class_path()
    except PrerequisiteMissing as missing:
        unavailable(str(missing))
    seed = request.config.getoption("--seed")
    count = request.config.getoption("--workloads") or ORDINARY
    seeds = range(count) if seed is None else [seed]
    started_ms = round(time.time() * 1000)
    trial = Trial(tmp_path, [write(seed, started_ms) for seed in seeds], started_ms)

    asyncio.run(trial.run())

    failed = [found for found in trial.findings if found.failed]
    for found in failed:
        print(found.report(started_ms), end="\n\n")
    kinds = Counter(found.workload.kind for found in failed)
    known = Counter(name for found in trial.findings for name in found.known)
    print(f"{len(trial.findings)} workloads, known differences: {dict(known)}")
    assert not failed, f"{len(failed)} workloads differ: {dict(kinds)}"
