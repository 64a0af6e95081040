"""
``barnabas graduate``: its files, its records, and its refusals.

``tests/interop/test_growing_out.py`` makes a cluster of the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.server.cli import main
from barnabas.server.cluster.metadata_log import MetadataLog
from barnabas.server.config import BrokerConfig
from barnabas.storage.clock import SystemClock
from barnabas.storage.directories.directory import LOCK_FILE
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.properties import read_properties
from barnabas.storage.state_files.meta_properties import MetaPropertiesEnsemble
from barnabas.storage.state_files.quorum_state import QuorumState
from barnabas.testing.manual_clock import ManualClock
from tests.support.server import START_MS, running

Refusal = Callable[..., str]
NODES = ("--node", "one.example", "--node", "two.example:9192", "--node", "[::1]:9292:9293")


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    async with running(DiskFiles(), ManualClock(START_MS), log_dirs=str(path)) as broker:
        await broker.create("orders", 3)
    return path


def graduate(data: Path, output: Path, *options: str) -> int:
    given = ["--data-dir", str(data), "--output", str(output)]
    return main(["graduate", *given, *(options or NODES)])


def properties(output: Path, node: int) -> dict[str, str]:
    return read_properties((output / f"node-{node}.properties").read_text())


def opened(data: Path) -> MetadataLog:
    return MetadataLog.open(
        data,
        node_id=1,
        config=BrokerConfig(),
        files=DiskFiles(),
        clock=SystemClock(),
        failures=LogDirFailureChannel(),
    )


def test_each_node_gets_its_own_options(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    assert 0 == graduate(data, out, *NODES, "--set", "log.retention.ms=5000", "--log-dir", "/k")

    first, second, third = (properties(out, node) for node in (1, 2, 3))
    controllers = "one.example:9093,two.example:9093,[::1]:9293"
    for number, each in enumerate((first, second, third), 1):
        assert str(number) == each["node.id"]
        assert "broker,controller" == each["process.roles"]
        assert controllers == each["controller.quorum.bootstrap.servers"]
        assert "controller.quorum.voters" not in each
        assert "5000" == each["log.retention.ms"]
        assert "3" == each["offsets.topic.replication.factor"]
        # Not before the replicas are there: producers with acks=all would fail until then.
        assert "min.insync.replicas" not in each
    assert "PLAINTEXT://one.example:9092,CONTROLLER://one.example:9093" == first["listeners"]
    assert "PLAINTEXT://two.example:9192" == second["advertised.listeners"]
    assert "PLAINTEXT://[::1]:9292,CONTROLLER://[::1]:9293" == third["listeners"]
    assert (str(data), "/k", "/k") == (first["log.dirs"], second["log.dirs"], third["log.dirs"])


def test_directory_paths_are_absolute(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Apache Kafka starts in another directory.
    """
    monkeypatch.chdir(tmp_path)
    metadata = ("--set", "metadata.log.dir=data")

    assert 0 == graduate(Path("data"), Path("out"), *NODES, *metadata)

    first = properties(tmp_path / "out", 1)
    assert (str(data), str(data)) == (first["log.dirs"], first["metadata.log.dir"])


def test_each_partition_gets_three_replicas(data: Path, tmp_path: Path) -> None:
    assert 0 == graduate(data, tmp_path / "out")

    plan = json.loads((tmp_path / "out" / "reassignment.json").read_text())
    assert [
        {"topic": "orders", "partition": 0, "replicas": [1, 2, 3]},
        {"topic": "orders", "partition": 1, "replicas": [2, 3, 1]},
        {"topic": "orders", "partition": 2, "replicas": [3, 1, 2]},
    ] == plan["partitions"]


def test_secured_listeners_stay_secured(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "listeners=IN://:9092,OUT://:9094\n"
        "listener.security.protocol.map=IN:SASL_PLAINTEXT,OUT:SASL_PLAINTEXT\n"
        "sasl.enabled.mechanisms=SCRAM-SHA-256\n"
        "inter.broker.listener.name=OUT\n"
        "barnabas.http.listener=0\n"
    )

    assert 0 == graduate(data, tmp_path / "out", "--config", str(config), *NODES)

    second = properties(tmp_path / "out", 2)
    assert "IN://two.example:9192,OUT://two.example:9094" == second["advertised.listeners"]
    assert "OUT" == second["inter.broker.listener.name"]
    assert "SCRAM-SHA-256" == second["sasl.enabled.mechanisms"]
    assert (
        "IN:SASL_PLAINTEXT,OUT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        == second["listener.security.protocol.map"]
    )
    assert not [name for name in second if name.startswith("barnabas.")]
    assert "Controllers speak without TLS or SASL" in capsys.readouterr().out


def test_voter_is_recorded_once(data: Path, tmp_path: Path) -> None:
    """
    The directory still opens here, and may be prepared again for another address.
    """
    assert 0 == graduate(data, tmp_path / "first")
    log = opened(data)
    voter = log.voter_directory_id
    log.lead()
    end = log.end_offset
    log.close()
    state = QuorumState.read(data / "__cluster_metadata-0", DiskFiles())

    assert 0 == graduate(data, tmp_path / "second")
    assert 0 == graduate(data, tmp_path / "third", "--node", "other.example")

    again = opened(data)
    assert voter.int
    assert voter == again.voter_directory_id
    # Each run begins an epoch; only the other address is written as well.
    assert end + 2 + 2 == again.end_offset
    assert ["orders"] == list(again.image.topics_by_name)
    again.close()
    assert state is not None
    assert 1 == state.data_version


@pytest.fixture
def refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refusal:
    def refused(data: Path, *options: str, status: int = 1) -> str:
        assert status == graduate(data, tmp_path / "out", *options)
        assert not (tmp_path / "out").exists()
        return capsys.readouterr().err

    return refused


def test_graduate_refuses_a_running_broker(data: Path, refusal: Refusal) -> None:
    lock = DiskFiles().lock(data / LOCK_FILE)
    assert lock is not None
    try:
        assert f"a broker runs on {data}: stop it first" in refusal(data)
    finally:
        lock.release()

    assert not opened(data).voter_directory_id.int


def test_graduate_refuses_a_member_of_a_cluster(data: Path, refusal: Refusal) -> None:
    QuorumState(leader_id=2, leader_epoch=9, voters=(1, 2, 3)).write(
        data / "__cluster_metadata-0", DiskFiles()
    )

    assert "this is part of a cluster already" in refusal(data)


def test_existing_files_are_kept(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == graduate(data, tmp_path / "out")
    written = properties(tmp_path / "out", 1)

    assert 1 == graduate(data, tmp_path / "out", "--node", "other.example")

    assert "is no empty directory" in capsys.readouterr().err
    assert written == properties(tmp_path / "out", 1)


def test_provider_variables_are_kept_and_files_are_private(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_PASSWORD", "secret-of-the-store")
    config = tmp_path / "server.properties"
    config.write_text(
        "config.providers=env\n"
        "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        "ssl.keystore.password=${env:STORE_PASSWORD}\n"
    )

    assert 0 == graduate(data, tmp_path / "out", "--config", str(config), *NODES)

    for node in (1, 2, 3):
        path = tmp_path / "out" / f"node-{node}.properties"
        assert (
            "${env:STORE_PASSWORD}" == properties(tmp_path / "out", node)["ssl.keystore.password"]
        )
        assert "config.providers.env.class" in path.read_text()
        assert "secret-of-the-store" not in path.read_text()
        assert 0o600 == path.stat().st_mode & 0o777


def test_single_node_options_are_not_carried_over(data: Path, tmp_path: Path) -> None:
    given = {"offsets.topic.replication.factor": "1", "broker.rack": "attic"}
    assignments = [word for name, text in given.items() for word in ("--set", f"{name}={text}")]

    assert 0 == graduate(data, tmp_path / "out", *NODES, *assignments)

    first, second = (properties(tmp_path / "out", node) for node in (1, 2))
    assert "3" == first["offsets.topic.replication.factor"]
    assert "attic" == first["broker.rack"]
    assert "broker.rack" not in second


def test_directory_without_a_started_broker_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    data = tmp_path / "data"
    assert 0 == main(["format", "--data-dir", str(data)])
    before = sorted(data.iterdir())

    assert "no broker was started on it" in refusal(data)
    assert [data / ".lock", *before] == sorted(data.iterdir())


@pytest.mark.parametrize("output", ["s3://bucket/plan", "file:///tmp/plan"])
def test_url_is_not_accepted_as_a_directory(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    output: str,
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit, match="2"):
        main(["graduate", "--data-dir", str(data), "--output", output, *NODES])

    assert "is a URL" in capsys.readouterr().err
    assert [data] == list(tmp_path.iterdir())


def test_directory_without_a_broker_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    assert "no log directory of a broker: it has no meta.properties" in refusal(tmp_path)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (("--node", "http://one"), "--node http://one: it must look like"),
        (("--node", "one:0"), "a port is a number from 1 to 65535"),
        (("--node", "one:9092:70000"), "a port is a number from 1 to 65535"),
        (("--node", "one:9092:9092"), "one:9092 is there twice"),
        (("--node", "one", "--node", "one:9094"), "one:9093 is there twice"),
        (("--node", ""), "--node : it must look like"),
    ],
)
def test_invalid_node_is_named(
    data: Path, refusal: Refusal, nodes: tuple[str, ...], says: str
) -> None:
    assert says in refusal(data, *nodes, status=2)


def test_single_node_needs_no_further_step(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == graduate(data, tmp_path / "out", "--node", "one.example")

    said = capsys.readouterr().out
    assert "1. On one.example" in said
    assert "2." not in said
    assert "1" == properties(tmp_path / "out", 1)["default.replication.factor"]


def test_graduate_page_shows_the_real_output(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.properties").write_text(f"log.dirs={data}\nlog.retention.ms=604800000\n")
    page = (Path(__file__).parents[3] / "docs" / "growing.md").read_text()
    command, _, shown = page.partition("$ barnabas ")[2].partition("```")[0].partition("\n    ")
    given, _, printed = shown.partition("\n")

    assert 0 == main([*command.rstrip("\\").split(), *given.split()])

    cluster_id = str(MetaPropertiesEnsemble(DiskFiles(), [data]).cluster_id)
    assert printed.replace("4L6g3nShT-eMCtK--X86sw", cluster_id) == capsys.readouterr().out
