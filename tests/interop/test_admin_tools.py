"""
Administration of configs with Apache Kafka's own client and tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.clients.base import NewRecord
from tests.interop.clients.kafka_python import KafkaPython
from tests.interop.tools.toolbox import Toolbox
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess
from tests.support.java_programs import run_program

pytestmark = pytest.mark.prove

SOURCE = Path(__file__).parent / "java" / "Configs.java"
CONFIGS = "kafka-configs"
DELETE_RECORDS = "kafka-delete-records"
TOPICS = "kafka-topics"

_HINT = re.compile(r"; did you mean .*\?$", re.MULTILINE)


Run = Callable[..., str]


@pytest.fixture
def run(toolbox: Toolbox) -> Run:
    """
    Standard output of a tool that has to succeed.
    """

    def run_it(tool: str, *arguments: str) -> str:
        printed = toolbox.start(tool, *arguments).wait()
        assert printed.status == 0, f"{tool} {arguments}\n{printed.out}\n{printed.err[-4000:]}"
        return printed.out

    return run_it


def test_java_client_sees_the_same_values_and_errors_as_with_kafka(tmp_path: Path) -> None:
    """
    Line for line: every value with its source, type and synonyms, every exception with its text.
    """
    with BothBrokers.side_by_side(tmp_path) as both:
        both.start()
        expected, told = (run_program(SOURCE, broker.bootstrap, "t") for broker in both)

    assert len(expected.splitlines()) > 100
    assert expected.splitlines() == _HINT.sub("", told).splitlines()


def test_kafka_configs_tool_changes_topics_and_brokers(
    broker: BrokerProcess, run: Run, topic: str
) -> None:
    server = ("--bootstrap-server", broker.bootstrap)
    run(TOPICS, *server, "--create", "--topic", topic)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)

    done = run(CONFIGS, *server, *of_topic, "--alter", "--add-config", "retention.ms=77,flush.ms=5")
    assert f"Completed updating config for topic {topic}." in done
    run(CONFIGS, *server, *of_topic, "--alter", "--delete-config", "flush.ms")
    shown = run(CONFIGS, *server, *of_topic, "--describe")
    assert "retention.ms=77 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=77" in shown
    assert "flush.ms" not in shown

    brokers = ("--entity-type", "brokers", "--entity-default")
    run(CONFIGS, *server, *brokers, "--alter", "--add-config", "log.segment.bytes=2000000")
    shown = run(CONFIGS, *server, *brokers, "--describe")
    assert "log.segment.bytes=2000000 sensitive=false" in shown
    shown = run(CONFIGS, *server, *of_topic, "--describe", "--all")
    assert "segment.bytes=2000000 sensitive=false" in shown
    run(CONFIGS, *server, *brokers, "--alter", "--delete-config", "log.segment.bytes")

    loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    run(CONFIGS, *server, *loggers, "--alter", "--add-config", "root=INFO")
    assert "root=INFO" in run(CONFIGS, *server, *loggers, "--describe")


def test_kafka_tools_add_partitions_and_delete_records(
    broker: BrokerProcess, run: Run, topic: str, tmp_path: Path
) -> None:
    server = ("--bootstrap-server", broker.bootstrap)
    run(TOPICS, *server, "--create", "--topic", topic)
    client = KafkaPython()
    client.produce(broker.bootstrap, topic, [NewRecord(b"%d" % n) for n in range(5)], "none")
    wanted = tmp_path / "offsets.json"
    wanted.write_text(
        f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 3}}], "version": 1}}'
    )

    run(TOPICS, *server, "--alter", "--topic", topic, "--partitions", "4")
    done = run(DELETE_RECORDS, *server, "--offset-json-file", str(wanted))

    assert f"partition: {topic}-0\tlow_watermark: 3" in done
    assert "PartitionCount: 4" in run(TOPICS, *server, "--describe", "--topic", topic)
    client.produce(broker.bootstrap, topic, [NewRecord(b"last", partition=3)], "none")
    assert {b"3", b"4", b"last"} == {
        seen.value for seen in client.read(broker.bootstrap, topic, 4, 3)
    }
