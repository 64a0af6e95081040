"""
``barnabas topics``, ``produce``, ``consume`` and ``groups`` beside Kafka's tools, on Barnabas and
on a newer Apache Kafka than that of the other tests.
"""

from __future__ import annotations

import io
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from barnabas.server.cli import main
from tests.interop.tools.toolbox import Toolbox
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import Barnabas, BrokerProcess
from tests.support.certificates import Certificates, java_can_read
from tests.support.sasl_client import add_scram_user

PASSWORD = "p=w, 1"
USERS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
PATIENCE_S = 30.0


Run = Callable[[list[str], str], tuple[int, str, str]]
"""Runs a command of ours with a standard input; returns exit status, output and errors."""


class Terminal:
    """
    Our commands and Kafka's tools on one broker.
    """

    def __init__(self, broker: BrokerProcess, toolbox: Toolbox, run: Run, folder: Path) -> None:
        self.broker = broker
        self._toolbox = toolbox
        self._run = run
        self._folder = folder
        self.connection = ["--bootstrap-server", broker.bootstrap]
        self.errors = ""

    def connect_as(
        self,
        certificates: Certificates,
        protocol: str,
        mechanism: str | None,
        password: str = PASSWORD,
    ) -> None:
        """
        Let our commands use a listener with TLS from now on.
        """
        properties = {
            "security.protocol": protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.ca),
            "request.timeout.ms": "5000",
        }
        if mechanism is None:
            properties["ssl.keystore.type"] = "PEM"
            properties["ssl.keystore.location"] = str(certificates.client("alice"))
        else:
            quoted = password.replace('"', '\\"')
            properties["sasl.mechanism"] = mechanism
            properties["sasl.jaas.config"] = (
                f'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice"'
                f' password="{quoted}";'
            )
        file = self._folder / "client.properties"
        escaped = {name: value.replace("\\", "\\\\") for name, value in properties.items()}
        file.write_text("".join(f"{name}={value}\n" for name, value in escaped.items()))
        port = self.broker.ports[protocol]
        self.connection = ["--bootstrap-server", f"127.0.0.1:{port}", "--command-config", str(file)]

    def run(self, command: str, given: str = "", status: int = 0) -> str:
        """
        Standard output of a command of ours; its errors are in ``self.errors``.
        """
        found, out, self.errors = self._run([*command.split(), *self.connection], given)
        assert found == status, self.errors
        return out

    def json(self, command: str) -> Any:
        return json.loads(self.run(f"{command} --json"))

    def consumed(self, command: str) -> list[dict[str, Any]]:
        lines = self.run(f"consume {command} --json").splitlines()
        return [json.loads(line) for line in lines]

    def tool(self, name: str, *arguments: str, given: str = "") -> str:
        """
        Standard output of a tool of Kafka.
        """
        arguments = ("--bootstrap-server", self.broker.bootstrap, *arguments)
        printed = self._toolbox.start(f"kafka-{name}", *arguments, given=given).wait()
        assert printed.status == 0, printed
        return printed.out


class NewerKafka(ApacheKafka):
    name = "Apache Kafka 4.4.0"
    version = "4.4.0"


class _Input:
    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())

    def isatty(self) -> bool:
        return False


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    java_can_read(made.broker)
    return made


@pytest.fixture(
    scope="module", params=[pytest.param(NewerKafka, marks=pytest.mark.prove), Barnabas]
)
def secured(
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[BrokerProcess]:
    settings = {
        **certificates.settings(),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.ssl.ssl.client.auth": "required",
        "group.initial.rebalance.delay.ms": "0",
    }
    folder = tmp_path_factory.mktemp("broker")
    with request.param(folder, settings=settings, secured=["SSL", "SASL_SSL"]) as broker:
        add_scram_user(broker.port, "alice", PASSWORD)
        yield broker


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run_it(arguments: list[str], given: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", _Input(given))
        status = main(arguments)
        out, errors = capsys.readouterr()
        return status, out, errors

    return run_it


@pytest.fixture
def terminal(secured: BrokerProcess, toolbox: Toolbox, run: Run, tmp_path: Path) -> Terminal:
    return Terminal(secured, toolbox, run, tmp_path)


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("SSL", None),
        ("SASL_SSL", "PLAIN"),
        ("SASL_SSL", "SCRAM-SHA-256"),
        ("SASL_SSL", "SCRAM-SHA-512"),
    ],
)
def test_commands_work_over_tls_and_sasl(
    terminal: Terminal, certificates: Certificates, protocol: str, mechanism: str | None
) -> None:
    topic = f"over-{protocol}-{mechanism}"
    terminal.connect_as(certificates, protocol, mechanism)
    terminal.run(f"topics create {topic} --partitions 1")
    terminal.run(f"produce {topic}", given="one\ntwo\n")
    assert terminal.run(f"consume {topic} --values") == "one\ntwo\n"
    terminal.run(f"groups reset-offsets {topic} --topic {topic} --to 1 --execute")
    assert terminal.json(f"groups describe {topic}")["offsets"][0]["lag"] == 1


def test_wrong_password_and_wrong_protocol_are_named(
    terminal: Terminal, certificates: Certificates
) -> None:
    terminal.connect_as(certificates, "SASL_SSL", "SCRAM-SHA-256", "wrong")
    terminal.run("topics list", status=1)
    assert "SASL_AUTHENTICATION_FAILED" in terminal.errors
    port = terminal.broker.ports["SASL_SSL"]
    terminal.connection = ["--bootstrap-server", f"127.0.0.1:{port}"]
    terminal.run("topics list", status=1)
    assert f"127.0.0.1:{port}" in terminal.errors


def test_created_topic_looks_the_same_to_kafka_topics(terminal: Terminal) -> None:
    terminal.run(
        "topics create made --partitions 3 --replication-factor 1 --config retention.ms=7d"
        " --config segment.bytes=2MiB"
    )
    (ours,) = terminal.json("topics describe made")
    theirs = terminal.tool("topics", "--describe", "--topic", "made")
    assert re.findall(r"Partition: (\d+)\tLeader: (\d+)\tReplicas: (\d+)\tIsr: (\d+)", theirs) == [
        (str(each["partition"]), str(each["leader"]), *map(str, each["replicas"] + each["isr"]))
        for each in ours["partitions"]
    ]
    (configs,) = re.findall(r"Configs: (\S+)", theirs)
    shown = dict(each.split("=") for each in configs.split(","))
    assert {name: shown[name] for name in ours["configs"]} == ours["configs"]
    assert ours["configs"]["retention.ms"] == "604800000"
    assert terminal.tool("topics", "--list").split() == [
        each["name"] for each in terminal.json("topics list --internal")
    ]


def test_keys_have_the_partitions_that_kafkas_producer_chooses(terminal: Terminal) -> None:
    for topic in ("ours", "theirs"):
        terminal.run(f"topics create {topic} --partitions 7")
    lines = "".join(f"key-{number}-é:{number}\n" for number in range(100))
    terminal.run("produce ours --key-separator :", given=lines)
    separated = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    terminal.tool("console-producer", "--topic", "theirs", *separated, given=lines)
    placed = [
        {(each["partition"], each["key"], each["value"]) for each in terminal.consumed(topic)}
        for topic in ("ours", "theirs")
    ]
    assert placed[0] == placed[1]
    assert len(placed[0]) == 100


def test_console_consumer_reads_the_same_records(terminal: Terminal) -> None:
    terminal.run("topics create read --partitions 1")
    chance = random.Random(1)
    lines = [
        json.dumps(
            {
                "key": chance.choice([None, "a", "b"]),
                "value": chance.choice([None, "x", "y z"]),
                "headers": [{"name": "h", "value": str(chance.random())}],
            }
        )
        for _ in range(50)
    ]
    terminal.run("produce read --json --compression lz4", given="\n".join(lines))
    printed = terminal.tool(
        "console-consumer",
        *("--topic", "read", "--from-beginning", "--max-messages", "50"),
        *("--formatter-property", "print.key=true"),
        *("--formatter-property", "print.offset=true"),
        *("--formatter-property", "print.headers=true"),
        *("--formatter-property", "print.timestamp=true"),
    )
    assert printed.splitlines() == [
        "\t".join(
            [
                f"CreateTime:{each['timestamp']}",
                f"Offset:{each['offset']}",
                ",".join(f"{header['name']}:{header['value']}" for header in each["headers"]),
                each["key"] or "null",
                each["value"] or "null",
            ]
        )
        for each in terminal.consumed("read")
    ]


def test_read_committed_leaves_out_aborted_and_open_transactions(terminal: Terminal) -> None:
    terminal.run("topics create transactional --partitions 1")
    chance = random.Random(2)
    for number in range(12):
        producer = Producer(
            {"bootstrap.servers": terminal.broker.bootstrap, "transactional.id": f"t-{number % 3}"}
        )
        producer.init_transactions()
        producer.begin_transaction()
        for record in range(chance.randrange(1, 4)):
            producer.produce("transactional", f"{number}-{record}")
        if number == 11:
            producer.flush()
            break
        if chance.random() < 0.5:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    consumer = Consumer(
        {
            "bootstrap.servers": terminal.broker.bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("transactional", 0, 0)])
    committed = []
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        error, value = message.error(), message.value()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF
            break
        assert value is not None
        committed.append((message.offset(), value.decode()))
    consumer.close()
    ours = terminal.consumed("transactional --read-committed")
    assert [(each["offset"], each["value"]) for each in ours] == committed
    assert len(terminal.consumed("transactional")) > len(committed)
    producer.abort_transaction()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_describe_agrees_with_kafka_consumer_groups(terminal: Terminal, protocol: str) -> None:
    topic = group = f"members-{protocol}"
    terminal.run(f"topics create {topic} --partitions 3")
    terminal.run(f"produce {topic}", given="x\n" * 30)
    consumer = Consumer(
        {
            "bootstrap.servers": terminal.broker.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    try:
        read = 0
        end = time.monotonic() + PATIENCE_S
        while read < 20 and time.monotonic() < end:
            read += len(consumer.consume(20 - read, timeout=0.2))
        consumer.commit(asynchronous=False)
        ours = terminal.json(f"groups describe {group}")
        theirs = terminal.tool("consumer-groups", "--describe", "--group", group)
        members = terminal.tool("consumer-groups", "--describe", "--group", group, "--members")
        terminal.run(f"groups reset-offsets {group} --to beginning --execute", status=1)
        assert "The group has active members" in terminal.errors
    finally:
        consumer.close()
    assert (ours["type"], ours["state"]) == (protocol, "Stable")
    (member,) = ours["members"]
    assert member["client_id"] == "reader"
    assert len(member["partitions"]) == 3
    assert member["member_id"] in members
    committed = {
        (row[1], int(row[2])): tuple(map(str, row[3:6]))
        for row in map(str.split, theirs.splitlines())
        if row and row[0] == group
    }
    assert committed == {
        (each["topic"], each["partition"]): tuple(
            "-" if each[name] is None else str(each[name]) for name in ("committed", "end", "lag")
        )
        for each in ours["offsets"]
    }
    assert [group, protocol] in [
        [each["group_id"], each["type"]] for each in terminal.json("groups list")
    ]
    assert group in terminal.tool("consumer-groups", "--list").split()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("--to beginning", ["--to-earliest"]),
        ("--to end", ["--to-latest"]),
        ("--to 3", ["--to-offset", "3"]),
        ("--shift-by -2", ["--shift-by", "-2"]),
        ("--to 2026-01-01T00:02:00Z", ["--to-datetime", "2026-01-01T00:02:00.000"]),
        ("--to 2030-01-01T00:00:00Z", ["--to-datetime", "2030-01-01T00:00:00.000"]),
    ],
)
def test_reset_plans_the_offsets_that_kafkas_tool_plans(
    terminal: Terminal, ours: str, theirs: list[str]
) -> None:
    terminal.run("topics create reset --partitions 2 --if-not-exists")
    if not terminal.consumed("reset"):
        first = 1_767_225_600_000
        lines = [
            json.dumps({"value": "x", "partition": n % 2, "timestamp": first + n * 60_000})
            for n in range(10)
        ]
        terminal.run("produce reset --json", given="\n".join(lines))
    terminal.run("groups reset-offsets resetting --topic reset --to 4 --execute")
    planned = terminal.tool(
        *("consumer-groups", "--reset-offsets", "--group", "resetting", "--topic", "reset"),
        *("--dry-run", "--export", *theirs),
    )
    expected = sorted(line.split(",") for line in planned.splitlines() if line.startswith("reset,"))
    found = terminal.json(f"groups reset-offsets resetting {ours}")
    assert [["reset", str(each["partition"]), str(each["new"])] for each in found] == [
        each[-3:] for each in expected
    ]
    terminal.run(f"groups reset-offsets resetting {ours} --execute")
    offsets = terminal.json("groups describe resetting")["offsets"]
    assert [each["committed"] for each in offsets] == [each["new"] for each in found]
