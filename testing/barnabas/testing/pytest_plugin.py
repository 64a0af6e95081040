"""
The pytest plugin: fixtures with brokers, and what was in them if a test fails.

pytest loads it in every run of an environment that has Barnabas, so that it imports a broker for
the first test only that uses one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from barnabas.testing.broker import Broker
    from barnabas.testing.topic import Topic

_BROKERS: Final = pytest.StashKey["list[Broker]"]()
_NUMBERS: Final = count(1)

_BROKER_OPTIONS: Final = {"config", "topics", "clock", "start_ms", "directory", "disk", "process"}
_TOPIC_OPTIONS: Final = {"partitions", "config"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """
    Declare the ini options.
    """
    parser.addini(
        "kafka_broker_config", "options of the brokers, one name=value a line", "linelist", []
    )
    parser.addini(
        "kafka_broker_topics",
        "topics to create, one name or name:partitions a line",
        "linelist",
        [],
    )
    parser.addini("kafka_broker_clock", "running, or still between two moves", default="running")


def pytest_configure(config: pytest.Config) -> None:
    """
    Declare the markers.
    """
    config.addinivalue_line(
        "markers",
        "kafka_broker(config, topics, clock, start_ms): options of the kafka_broker of the test.",
    )
    config.addinivalue_line(
        "markers", "kafka_topic(partitions, config): options of the kafka_topic of the test."
    )


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """
    A broker for one test alone, in memory, with the options of the marker kafka_broker.
    """
    marker = _options(request, "kafka_broker", _BROKER_OPTIONS)
    with _new_broker(request.config, marker) as broker:
        request.node.stash.setdefault(_BROKERS, []).append(broker)
        yield broker


@pytest.fixture(scope="session")
def kafka_session_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """
    A broker for all tests, or for all tests of one process of pytest-xdist.
    """
    with _new_broker(request.config, {}) as broker:
        yield broker


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest) -> Iterator[Topic]:
    """
    A topic for one test alone, with a name that no other test uses and the options of the marker
    kafka_topic. It is in the kafka_broker of the test if it has one, else in kafka_session_broker.
    """
    is_alone = "kafka_broker" in request.fixturenames
    broker: Broker = request.getfixturevalue("kafka_broker" if is_alone else "kafka_session_broker")
    if not is_alone:
        request.node.stash.setdefault(_BROKERS, []).append(broker)
    readable = re.sub("[^a-zA-Z0-9._-]+", "-", request.node.name).strip("-")
    topic = broker.topic(f"{readable[:80]}-{next(_NUMBERS)}")
    topic.create(**_options(request, "kafka_topic", _TOPIC_OPTIONS))
    yield topic
    if topic.exists:
        topic.delete()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """
    Add the contents of the brokers to the report of a test that fails, unless its message has them.
    """
    report = yield
    is_told = call.excinfo is not None and type(call.excinfo.value).__name__ == "WaitTimeout"
    if report.failed and report.when in ("setup", "call") and not is_told:
        # An error in this hook would end pytest, and the remaining tests would not run.
        try:
            for broker in _brokers_of(item):
                report.sections.append((f"Kafka broker {broker.port}", broker.summary()))
        except Exception as error:
            report.sections.append(("Kafka broker", f"no summary: {type(error).__name__}"))
    return report


def _brokers_of(item: pytest.Item) -> list[Broker]:
    brokers = list(item.stash.get(_BROKERS, None) or ())
    shared = getattr(item, "funcargs", {}).get("kafka_session_broker")
    if shared is not None and all(shared is not broker for broker in brokers):
        brokers.append(shared)
    return brokers


def _options(request: pytest.FixtureRequest, name: str, known: set[str]) -> dict[str, Any]:
    """
    The keyword arguments of all markers of a test, the nearest first.
    """
    options: dict[str, Any] = {}
    for marker in request.node.iter_markers(name):
        unknown = marker.kwargs.keys() - known
        if marker.args or unknown:
            raise pytest.UsageError(
                f"pytest.mark.{name} takes {', '.join(sorted(known))} by keyword, not"
                f" {', '.join(map(repr, marker.args or sorted(unknown)))}"
            )
        options = marker.kwargs | options
    return options


def _new_broker(config: pytest.Config, marker: dict[str, Any]) -> Broker:
    """
    A broker with the ini options and, before them, those of a marker.
    """
    from barnabas.testing.broker import Broker  # noqa: PLC0415  # only for tests that use it
    from barnabas.testing.defaults import partition_counts  # noqa: PLC0415  # likewise

    given = dict(_assignment(line) for line in config.getini("kafka_broker_config"))
    topics = dict(_seed(line) for line in config.getini("kafka_broker_topics"))
    return Broker(
        **{
            "clock": config.getini("kafka_broker_clock"),
            **marker,
            "config": given | dict(marker.get("config", {})),
            "topics": topics | partition_counts(marker.get("topics", ())),
        }
    )


def _assignment(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise pytest.UsageError(f"kafka_broker_config: {line!r} is not name=value")
    return name.strip(), value.strip()


def _seed(line: str) -> tuple[str, int]:
    name, colon, partitions = line.partition(":")
    if colon and not partitions.strip().isdecimal():
        raise pytest.UsageError(f"kafka_broker_topics: {line!r} is not name or name:partitions")
    return name.strip(), int(partitions) if colon else 1
