"""
Apache Kafka's own command-line tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.conftest import new_broker
from tests.interop.tools.toolbox import Toolbox
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.prove


class Tools:
    """
    Runs the tools against one broker.
    """

    def __init__(self, broker: BrokerProcess, toolbox: Toolbox) -> None:
        self.broker = broker
        self._toolbox = toolbox

    def __call__(self, tool: str, *arguments: str, given: str = "") -> str:
        """
        Standard output of a *tool* that has to succeed.
        """
        return self.run(tool, "--bootstrap-server", self.broker.bootstrap, *arguments, given=given)

    def run(self, tool: str, *arguments: str, given: str = "") -> str:
        """
        The same without the address of the broker.
        """
        printed = self._toolbox.start(tool, *arguments, given=given).wait()
        assert printed.status == 0, f"{tool} {arguments}\n{printed.out}\n{printed.err}"
        return printed.out


@pytest.fixture
def tools(broker: BrokerProcess, toolbox: Toolbox) -> Tools:
    """
    The tools, at the broker of all tests.
    """
    return Tools(broker, toolbox)


def test_kafka_topics_tool_creates_lists_describes_and_deletes(tools: Tools, topic: str) -> None:
    """
    ``kafka-topics`` sees at once what it did.
    """
    tools("kafka-topics", "--create", "--topic", topic, "--partitions", "3")
    assert topic in tools("kafka-topics", "--list").splitlines()

    described = tools("kafka-topics", "--describe", "--topic", topic)
    tools("kafka-topics", "--delete", "--topic", topic)
    left = tools("kafka-topics", "--list").splitlines()

    assert "PartitionCount: 3" in described
    assert 4 == len(described.splitlines())
    assert topic not in left


def test_kafka_consumer_groups_tool_describes_and_deletes_a_group(tools: Tools, topic: str) -> None:
    """
    The console tools write and read in a group; ``kafka-consumer-groups`` shows where it is.
    """
    group = f"{topic}-group"
    lines = "".join(f"line {n}\n" for n in range(10))
    tools("kafka-console-producer", "--topic", topic, given=lines)
    ends = tools("kafka-get-offsets", "--topic", topic)
    settings = ("--from-beginning", "--max-messages", "6", "--timeout-ms", "60000")

    read = tools("kafka-console-consumer", "--topic", topic, "--group", group, *settings)
    described = tools("kafka-consumer-groups", "--describe", "--group", group)
    state = tools("kafka-consumer-groups", "--describe", "--group", group, "--state")
    tools("kafka-consumer-groups", "--delete", "--group", group)
    left = tools("kafka-consumer-groups", "--list").splitlines()

    assert f"{topic}:0:10" == ends.strip()
    assert "".join(lines.splitlines(keepends=True)[:6]) == read
    [row] = [line.split() for line in described.splitlines() if line.startswith(group)]
    assert [group, topic, "0", "6", "10", "4"] == row[:6]
    assert "Empty" in state
    assert group not in left


def test_kafka_tools_get_api_versions_and_the_cluster_id(tools: Tools) -> None:
    versions = tools("kafka-broker-api-versions")
    server = ("--bootstrap-server", tools.broker.bootstrap)
    cluster_id = tools.run("kafka-cluster", "cluster-id", *server)

    assert "Produce(0): 0 to 13" in versions
    assert cluster_id.startswith("Cluster ID: ")


def test_performance_tools_see_every_record_acknowledged(tools: Tools, topic: str) -> None:
    """
    ``kafka-producer-perf-test`` and ``kafka-verifiable-producer`` count no failure.
    """
    server = ("--bootstrap-server", tools.broker.bootstrap)
    load = ("--num-records", "200000", "--record-size", "100", "--throughput", "-1")

    loaded = tools.run("kafka-producer-perf-test", "--topic", topic, *load, *server)
    verified = tools("kafka-verifiable-producer", "--topic", topic, "--max-messages", "500")
    ends = tools("kafka-get-offsets", "--topic", topic)

    assert "200000 records sent" in loaded
    assert '"acked":500' in verified
    assert f"{topic}:0:200500" == ends.strip()


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[BrokerProcess]:
    """
    A broker of its own that the test stops before it looks at the files.
    """
    with new_broker(tmp_path) as broker:
        yield broker


def test_kafka_dump_log_tool_finds_the_files_sound(
    stopped: BrokerProcess, toolbox: Toolbox, topic: str
) -> None:
    tools = Tools(stopped, toolbox)
    settings = ("--config", "segment.bytes=1048576", "--config", "index.interval.bytes=4096")
    tools("kafka-topics", "--create", "--topic", topic, *settings)
    load = ("--num-records", "50000", "--record-size", "100", "--throughput", "-1")
    server = ("--bootstrap-server", stopped.bootstrap)
    tools.run("kafka-producer-perf-test", "--topic", topic, *load, *server)
    stopped.stop()

    files = sorted(str(path) for path in (stopped.data / f"{topic}-0").glob("0*"))
    logs = [path for path in files if path.endswith(".log")]
    indexes = [path for path in files if path.endswith("index")]
    dumped = tools.run("kafka-dump-log", "--deep-iteration", "--files", ",".join(logs))
    checked = tools.run("kafka-dump-log", "--index-sanity-check", "--files", ",".join(indexes))

    assert len(logs) > 1
    assert "isvalid: false" not in dumped
    assert 50_000 == dumped.count("| offset:")
    assert len(indexes) == checked.count("passed sanity check")
