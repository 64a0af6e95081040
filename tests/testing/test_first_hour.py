from __future__ import annotations

import importlib
import os
import re
from pathlib import Path

import kafka  # type: ignore[import-untyped]  # the library has no type hints
import pytest

import barnabas.testing
from barnabas.testing import Broker, InvalidConfig
from barnabas.testing import errors as kit_errors
from tests.support.examples import run_pytest


@pytest.mark.parametrize("topics", [["orders"], ("orders",), {"orders"}, {"orders": 1}])
def test_topics_are_a_list_of_names_or_partition_counts(topics: list[str]) -> None:
    with Broker(topics=topics) as broker:
        assert broker.topic("orders").partitions == 1


def test_one_text_is_no_list_of_topics() -> None:
    with pytest.raises(TypeError, match=r"as in topics=\['orders'\]"):
        Broker(topics="orders")


@pytest.mark.kafka_broker(topics=["orders", "customers"])
def test_marker_takes_a_list_of_topics(kafka_broker: Broker) -> None:
    assert sorted(topic.name for topic in kafka_broker.topics) == ["customers", "orders"]


def test_every_public_name_exists_at_run_time() -> None:
    for name in ("Broker", "Clock", "Fault", "Faults", "Chaos", "Topic", "Group", "Record"):
        assert name in barnabas.testing.__all__
        assert getattr(importlib.import_module("barnabas.testing"), name).__name__ == name


def test_options_take_units() -> None:
    with Broker(config={"log.retention.ms": "7d"}) as broker:
        broker.topic("t").create(config={"retention.ms": "1.5h"}).append(["x"])
        broker.clock.advance(hours=2)
        assert broker.topic("t").records() == []


def test_small_segment_names_the_option_for_tests() -> None:
    with Broker() as broker, pytest.raises(InvalidConfig) as refused:
        broker.topic("t").create(config={"segment.bytes": 1000})
    assert "configuration segment.bytes" in str(refused.value)
    assert "internal.segment.bytes has no lower limit" in str(refused.value)


def test_unit_that_does_not_fit_is_refused() -> None:
    with Broker() as broker, pytest.raises(InvalidConfig, match="GiB is not a unit of retention"):
        broker.topic("t").create(config={"retention.ms": "1GiB"})


def test_modules_that_raise_errors_of_the_kit_leave_out_their_frames() -> None:
    errors = "|".join(
        name
        for name, each in vars(kit_errors).items()
        if isinstance(each, type) and issubclass(each, kit_errors.BrokerError)
    )
    folder = Path(kit_errors.__file__).parent
    shown = [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(rf"raise ({errors})\(", text := path.read_text())
        and "\n__tracebackhide__ = hides_frame\n" not in text
    ]

    assert [] == shown


@pytest.mark.parametrize(
    "failing", ["topic('odrers').records()", "wait_until(lambda: 0, seconds=0)"]
)
def test_failure_report_fits_one_screen_and_repeats_nothing(tmp_path: Path, failing: str) -> None:
    done = run_pytest(
        tmp_path,
        "def test_it(kafka_broker):\n"
        "    kafka_broker.topic('orders').create().append(map(str, range(30)))\n"
        f"    kafka_broker.{failing}\n",
        # With CI pytest repeats whole messages in its last lines.
        env={name: value for name, value in os.environ.items() if name != "CI"},
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stdout
    assert len(lines) < 40, done.stdout
    assert done.stdout.count("29 ") <= 2
    assert done.stdout.count("Created topic orders with 1 partition") == 1
    assert "concurrent/futures" not in done.stdout
    assert "testing/topic.py" not in done.stdout


def test_lag_counts_what_a_member_has_not_committed(kafka_broker: Broker) -> None:
    kafka_broker.topic("orders").create().append(["one", "two"])
    consumer = kafka.KafkaConsumer(
        "orders",
        bootstrap_servers=kafka_broker.bootstrap_servers,
        group_id="office",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        next(consumer)
        kafka_broker.wait_until(lambda: kafka_broker.groups["office"].members)
        assert kafka_broker.groups["office"].lag == 2
        consumer.commit()
        kafka_broker.wait_until(lambda: kafka_broker.groups["office"].lag == 1)
    finally:
        consumer.close()
