"""
What tests of all packages share.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from tests.support.checkers import findings, hook
from tests.support.crash.count import CRASH_POINTS
from tests.support.forgotten_sockets import close_forgotten_sockets
from tests.support.maven import PrerequisiteMissing

CRASH_POINTS_OF_WORKER: Final = "crash_points"
WATCHED_OF_WORKER: Final = "watched_brokers"
WATCHED: Final[Counter[str]] = Counter()
"""The number of brokers that checkers have watched."""

SHOWN_LINES: Final = 100
"""Lines of each captured stream that the report of a failed test shows."""

USUAL_POWER_LOSSES: Final = 20

SPARK_MARK: Final = "pytest.mark.spark"
"""The text by which the scheduler, which imports no tests, knows the files that need Spark."""

_NEED_SPARK: Final = (
    "tests/pipeline",
    "tests/golden/test_pipeline.py",
    "tests/benchmarks/test_spark_connector.py",
)
"""What can only be imported where the extra ``spark`` is installed."""

_ROOT: Final = Path(__file__).parent.parent

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
    group = parser.getgroup("differential", "comparing Barnabas with Apache Kafka")
    group.addoption("--workloads", type=int, help="how many workloads to generate")
    group.addoption("--first-seed", type=int, default=0, help="the first of them, others follow")
    group.addoption("--kind", help="only those of them that are of these kinds")
    group.addoption("--seed", type=int, help="the one workload to play")
    group = parser.getgroup("ecosystem", "tools around a broker")
    group.addoption(
        "--ecosystem",
        choices=("light", "all"),
        default="light",
        help="which tools: those that are installed in seconds, or the large ones, too",
    )
    group = parser.getgroup("page", "the page in a browser")
    group.addoption("--page-images", metavar="FOLDER", help="where to put pictures of the page")
    group = parser.getgroup("crashes", "machines that lose power")
    group.addoption(
        "--power-losses", type=int, default=USUAL_POWER_LOSSES, help="how many instants"
    )


def pytest_configure(config: pytest.Config) -> None:
    """
    Let checkers watch every broker: those of this process, and those of processes that tests start.
    """
    folder = tempfile.mkdtemp(prefix="barnabas-checkers-")
    config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    os.environ[findings.VARIABLE] = folder
    site = str(_ROOT / "tests/support/checkers/site")
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join([site, *(path for path in others if path != site)])
    hook.install(str(_ROOT))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    """
    Fail a test whose brokers, those of its fixtures included, have broken a rule.
    """
    yield
    if found := findings.collect():
        pytest.fail("\n".join(["brokers have broken rules:", *found]), pytrace=False)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    left_out = collection_path.relative_to(_ROOT).as_posix() in _NEED_SPARK
    return True if left_out and not has_spark() else None


def pytest_report_header() -> list[str]:
    return [] if has_spark() else [f"left out, no PySpark: {', '.join(_NEED_SPARK)}"]


@cache
def has_spark() -> bool:
    try:
        return find_spec("pyspark") is not None
    except ModuleNotFoundError:
        return False


@cache
def needs_spark(file: str) -> bool:
    """
    Whether the tests of a file, named as in a node id, belong to the process of the Spark session.
    """
    return SPARK_MARK in (_ROOT / file).read_text()


def is_longer_than_usual(config: pytest.Config) -> bool:
    """
    Whether an option asks for more than a usual run: then no test is too long.
    """
    return (
        config.getoption("--crash-points") == "all"
        or config.getoption("--workloads") is not None
        or config.getoption("--power-losses") > USUAL_POWER_LOSSES
        or config.getoption("--ecosystem") == "all"
        or "BARNABAS_HOSTILE" in os.environ
        or "BARNABAS_SWEEP" in os.environ
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    Files with Spark begin first, then real clients, so that no process waits for them at the end.
    """
    if is_longer_than_usual(config):
        for item in items:
            item.add_marker(pytest.mark.timeout(0))

    def place(item: pytest.Item) -> int:
        file = item.nodeid.partition("::")[0]
        return 0 if needs_spark(file) else 1 if file.startswith("tests/interop/") else 2

    items.sort(key=place)


def pytest_collection_finish() -> None:
    close_forgotten_sockets()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """
    Where files of tests run side by side, those with Spark share one process: a session is large.
    """
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415  # not there without xdist

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist comes without types
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return SPARK_MARK if needs_spark(file) else file

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    with prerequisites():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    with prerequisites():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """
    Keep the end of what a test printed and logged: clients log thousands of lines when they retry.
    """
    report = yield
    report.sections = [(title, last_lines(text)) for title, text in report.sections]
    return report


def last_lines(text: str) -> str:
    lines = text.splitlines(keepends=True)
    left_out = len(lines) - SHOWN_LINES
    if left_out <= 0:
        return text
    return f"[{left_out} lines left out]\n{''.join(lines[left_out:])}"


@contextmanager
def prerequisites() -> Iterator[None]:
    """
    A test that lacks a prerequisite is skipped, in its fixtures too; in CI everything has to run.
    """
    try:
        yield
    except PrerequisiteMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def pytest_sessionfinish(session: pytest.Session) -> None:
    here, below = findings.brokers()
    WATCHED.update({"in the process of the test": here, "in processes of their own": below})
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[CRASH_POINTS_OF_WORKER] = dict(CRASH_POINTS)
        output[WATCHED_OF_WORKER] = dict(WATCHED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # One of the processes in which tests run side by side; what it has counted is counted here.
    output = getattr(node, "workeroutput", {})
    CRASH_POINTS.update(output.get(CRASH_POINTS_OF_WORKER, {}))
    WATCHED.update(output.get(WATCHED_OF_WORKER, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if WATCHED.total():
        terminalreporter.section("brokers that checkers have watched")
        for name, count in WATCHED.items():
            terminalreporter.write_line(f"{count:6d}  {name}")
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

    ``BARNABAS_GOLDEN=none`` skips the tests that need it, in CI too.
    """
    directory = os.environ.get("BARNABAS_GOLDEN")
    if directory == "none":
        pytest.skip("BARNABAS_GOLDEN=none leaves out the directories that Apache Kafka has written")
    if directory:
        return Path(directory)
    raise PrerequisiteMissing("BARNABAS_GOLDEN names no directory that Apache Kafka has written")
