from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.commands import output_of
from tests.support.examples import run_pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return partial(run_pytest, tmp_path)


def test_each_test_has_its_own_broker_besides_the_shared_one(run: Run) -> None:
    done = run(
        """
ports = set()

def test_one(kafka_broker, kafka_session_broker, kafka_topic):
    assert kafka_broker.port != kafka_session_broker.port
    assert [kafka_topic.name] == [topic.name for topic in kafka_broker.topics]
    ports.update({kafka_broker.port, kafka_session_broker.port})
    kafka_broker.topic("orders").create()

def test_two(kafka_broker, kafka_session_broker):
    assert [] == kafka_broker.topics
    assert kafka_session_broker.port in ports

def test_three(kafka_topic, kafka_session_broker):
    assert [kafka_topic.name] == [topic.name for topic in kafka_session_broker.topics]
    assert kafka_topic.name.startswith("test_three")

def test_four(kafka_session_broker):
    assert [] == kafka_session_broker.topics
"""
    )

    assert "4 passed" in done.stdout, done.stdout


def test_markers_and_ini_options_configure_the_broker(run: Run) -> None:
    done = run(
        """
import pytest

pytestmark = pytest.mark.kafka_broker(topics={"payments": 2}, config={"num.partitions": 5})

def partitions(broker):
    return {topic.name: topic.partitions for topic in broker.topics}

def test_module(kafka_broker, kafka_session_broker):
    assert {"orders": 3, "seeds": 1, "payments": 2} == partitions(kafka_broker)
    assert {"orders": 3, "seeds": 1} == partitions(kafka_session_broker)
    before = kafka_broker.clock.now_ms()
    assert kafka_broker.wait_until(lambda: kafka_broker.clock.now_ms()) == before

@pytest.mark.kafka_broker(config={"num.partitions": 6}, clock="running", start_ms=0)
@pytest.mark.kafka_topic(partitions=-1, config={"retention.ms": 1})
def test_nearer(kafka_broker, kafka_topic):
    assert 6 == kafka_topic.partitions
    assert kafka_broker.clock.now_ms() < 60_000
""",
        ini="kafka_broker_topics =\n  orders:3\n  seeds\nkafka_broker_clock = still\n"
        "kafka_broker_config =\n  num.partitions=4\n  log.retention.ms = 60000\n",
    )

    assert "2 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("marker", "ini", "message"),
    [
        ('kafka_broker("x")', "", "pytest.mark.kafka_broker takes clock, config"),
        ("kafka_broker(topic={})", "", "by keyword, not 'topic'"),
        ("kafka_broker(config={'num.partition': 1})", "", "did you mean num.partitions"),
        ("kafka_broker()", "kafka_broker_config = num.partitions\n", "is not name=value"),
        ("kafka_broker()", "kafka_broker_topics = a:b\n", "is not name or name:partitions"),
    ],
)
def test_plugin_explains_usage_errors(run: Run, marker: str, ini: str, message: str) -> None:
    done = run(
        f"import pytest\n@pytest.mark.{marker}\ndef test_it(kafka_broker): pass\n",
        "--strict-markers",
        ini=ini,
    )

    assert "1 error" in done.stdout, done.stdout
    assert message in done.stdout


def test_failure_report_shows_the_broker_log_and_the_records(run: Run) -> None:
    done = run(
        """
def test_it(kafka_broker):
    kafka_broker.topic("orders").create().append([("key", f"order {n}") for n in range(100)])
    assert 0

def test_topic(kafka_topic):
    kafka_topic.append(["of the shared broker"])
    assert 0

def test_fine(kafka_broker):
    pass
"""
    )

    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert 2 == done.stdout.count("- Kafka broker ")
    assert "orders: 1 partition, 100 records" in done.stdout
    assert "b'key' b'order 99'" in done.stdout
    assert "b'key' b'order 90'" not in done.stdout, "only the last records"
    assert "b'of the shared broker'" in done.stdout
    assert "Created topic orders with 1 partition" in done.stdout
    assert "Captured log call" not in done.stdout, "the log of the broker is shown once"


@pytest.mark.parametrize("plugin", ["asyncio", "anyio"])
def test_plugin_supports_asynchronous_tests(run: Run, plugin: str) -> None:
    pytest.importorskip({"asyncio": "pytest_asyncio", "anyio": "anyio"}[plugin])
    done = run(
        f"""
import asyncio
import pytest

@pytest.mark.{plugin}
async def test_it(kafka_broker, kafka_topic):
    reader, writer = await asyncio.open_connection("127.0.0.1", kafka_broker.port)
    writer.close()
    kafka_topic.append(["one"])
    assert await kafka_broker.wait_until_async(kafka_topic.records)

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""
    )

    assert "1 passed" in done.stdout, done.stdout


def test_xdist_workers_have_a_shared_broker_each(run: Run) -> None:
    pytest.importorskip("xdist")
    done = run(
        """
import pytest

@pytest.mark.parametrize("number", range(8))
def test_it(kafka_session_broker, kafka_topic, number):
    assert [] == kafka_topic.append([str(number)]).records(0)[1:]
    assert 1 == len(kafka_session_broker.topics)
""",
        "-n",
        "4",
    )

    assert "8 passed" in done.stdout, done.stdout


def test_run_without_a_broker_does_not_import_one() -> None:
    """
    The plugin is loaded in every run: it takes less than 10 ms of processor time.
    """
    script = """
import sys, time
import pytest
before = set(sys.modules)
began = time.process_time()
import barnabas.testing.pytest_plugin
print(1000 * (time.process_time() - began))
print(*(set(sys.modules) - before))
"""
    runs = [output_of(sys.executable, "-c", script).split() for _ in range(5)]

    assert min(float(run[0]) for run in runs) < 10
    assert {"barnabas", "barnabas.testing", "barnabas.testing.pytest_plugin"} == set(runs[0][1:])
