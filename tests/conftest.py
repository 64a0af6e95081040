"""
What tests of all packages share.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from tests.support.crash.count import CRASH_POINTS

CRASH_POINTS_OF_WORKER: Final = "crash_points"

_PIPELINE: Final = "tests/pipeline"
_LONGEST: Final = (_PIPELINE, "tests/interop")
"""The folders whose tests take most of the time."""

# How long an example takes is the affair of the machine, which may be busy with something else.
settings.register_profile("barnabas", deadline=None)
settings.load_profile("barnabas")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--crash-points",
        choices=("some", "all"),
        default="some",
        help="how many instants to crash at: each change of the disk, or more of each",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    What takes long begins first, so that nobody waits for it alone in the end.
    """

    def place(item: pytest.Item) -> int:
        folders = enumerate(_LONGEST)
        return next((n for n, name in folders if item.nodeid.startswith(f"{name}/")), len(_LONGEST))

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """
    Where files of tests run side by side, those of the pipeline share one process: Spark is large.
    """
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415  # not there without xdist

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist comes without types
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return _PIPELINE if file.startswith(f"{_PIPELINE}/") else file

    return Scheduling(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[CRASH_POINTS_OF_WORKER] = dict(CRASH_POINTS)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # One of the processes in which tests run side by side; what it has counted is counted here.
    CRASH_POINTS.update(getattr(node, "workeroutput", {}).get(CRASH_POINTS_OF_WORKER, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if CRASH_POINTS:
        terminalreporter.section("crash points")
        for name, count in sorted(CRASH_POINTS.items()):
            terminalreporter.write_line(f"{count:6d}  {name}")
        terminalreporter.write_line(f"{CRASH_POINTS.total():6d}  in all")


@pytest.fixture(scope="session")
def all_crash_points(request: pytest.FixtureRequest) -> bool:
    """
    Whether the run was started with ``--crash-points all``.
    """
    return bool(request.config.getoption("--crash-points") == "all")


@pytest.fixture
def silent_logs() -> Iterator[None]:
    """
    What recovery has to say is formatted otherwise, thousands of times.
    """
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="session")
def golden() -> Path:
    """
    The directory of log directories that Apache Kafka wrote, named by ``BARNABAS_GOLDEN``.
    """
    if directory := os.environ.get("BARNABAS_GOLDEN"):
        return Path(directory)
    sentence = "BARNABAS_GOLDEN does not name a directory that Apache Kafka has written"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)
