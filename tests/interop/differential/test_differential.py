"""
Apache Kafka and Barnabas do the same, and leave the same files behind.

``--workloads 600`` plays more of them than usual, ``--first-seed 600`` others, ``--kind requests``
only those of one kind, and ``--seed 17`` only the one that failed.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.interop.differential.dumps import compare_dumps
from tests.interop.differential.kinds import COORDINATED_KINDS, GROUP_KINDS, KINDS, write
from tests.interop.differential.known import CHANCE, KNOWN, LEFT_OUT, MOST_BY_CHANCE
from tests.interop.differential.sides import COORDINATED, UNCOORDINATED
from tests.interop.differential.trial import Findings, Trial

SHORT = range(len(KINDS))
"""The seeds of the usual run, one for each kind."""
LONG = range(len(KINDS), 5 * len(KINDS))
MOST_OF_THE_CROWD = 0.05
"""The share of workloads that may differ beside others and not alone."""
TABLE = Path(__file__).parents[3] / "docs" / "differences.md"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((UNCOORDINATED, SHORT), id="records"),
        pytest.param((COORDINATED, SHORT), id="protocols"),
        pytest.param((UNCOORDINATED, LONG), id="more records", marks=pytest.mark.prove),
        pytest.param((COORDINATED, LONG), id="more protocols", marks=pytest.mark.prove),
    ],
)
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """
    All workloads of these settings and seeds, played on both brokers. Options of the command line
    replace the seeds.
    """
    settings, seeds = request.param
    asked = seeds_asked_for(request.config)
    if asked is not None:
        if seeds is LONG:
            pytest.skip("the options name the workloads")
        seeds = asked
    kinds = (request.config.getoption("--kind") or ",".join(KINDS)).split(",")
    started_ms = round(time.time() * 1000)
    written = [write(seed, started_ms) for seed in seeds]
    workloads = [
        workload
        for workload in written
        if (workload.kind in COORDINATED_KINDS) == (settings is COORDINATED)
        and workload.kind in kinds
    ]
    if not workloads:
        pytest.skip("the workload needs other settings")
    directory = tmp_path_factory.mktemp("differential")
    trial = Trial(directory, workloads, started_ms, settings)
    asyncio.run(trial.run())
    return trial


def seeds_asked_for(config: pytest.Config) -> Sequence[int] | None:
    seed, first = config.getoption("--seed"), config.getoption("--first-seed")
    if seed is not None:
        return [seed]
    count = config.getoption("--workloads")
    return None if count is None and not first else range(first, first + (count or len(KINDS)))


def test_both_brokers_answer_and_write_the_same(trial: Trial, tmp_path: Path) -> None:
    """
    Every field of every answer, and every file after a clean stop and after a kill.

    Groups are not alone in a cluster: what other workloads create meanwhile has their patterns
    matched again, and how long these take decides which timers end. So one that differs is played
    again by itself, and only a few may do better then.
    """
    differing = [found for found in trial.findings if found.failed]
    failed = [found for found in differing if not _is_of_the_crowd(trial, found, tmp_path)]
    known = Counter(name for found in trial.findings for name in found.known)
    for found in differing:
        print(found.report(trial.started_ms), end="\n\n")
    crowd = len(differing) - len(failed)
    print(f"{crowd} workloads differ beside others only")
    print(f"{len(trial.findings)} workloads; known differences: {dict(known)}")
    kinds = Counter(found.workload.kind for found in failed)
    assert not failed, f"{len(failed)} workloads differ: {dict(kinds)}"
    played = Counter(found.workload.kind for found in trial.findings)
    by_chance = Counter(found.workload.kind for found in trial.findings if found.known & {*CHANCE})
    for kind, count in by_chance.items():
        assert count <= max(2, MOST_BY_CHANCE * played[kind]), (kind, count, played[kind])
    assert crowd <= max(2, MOST_OF_THE_CROWD * sum(played[kind] for kind in GROUP_KINDS))


def _is_of_the_crowd(trial: Trial, found: Findings, directory: Path) -> bool:
    """
    Whether the workload of a group differs beside others only.
    """
    workload = found.workload
    if workload.kind not in GROUP_KINDS or len(trial.findings) == 1:
        return False
    started_ms = round(time.time() * 1000)
    again = write(workload.seed, started_ms)
    alone = Trial(directory / f"alone-{workload.seed}", [again], started_ms, trial.settings)
    asyncio.run(alone.run())
    return not alone.findings[0].failed


def test_dump_tools_print_the_same_for_all_files(trial: Trial, tmp_path: Path) -> None:
    runs, found = compare_dumps(trial, tmp_path)

    print(f"{runs} dumps", *found[:10], sep="\n")
    assert runs > 0
    assert not found, f"{len(found)} of {runs} dumps differ"


def test_every_known_difference_is_explained() -> None:
    """
    The table names just those that are passed over, each with its reason.
    """
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|.*\|(.*)\|$", TABLE.read_text(), re.MULTILINE)

    assert sorted({*KNOWN, *LEFT_OUT}) == sorted(name for name, _ in rows)
    assert all(len(reason.split()) > 5 for _, reason in rows)
