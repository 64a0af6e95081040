from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from barnabas.server.cli import main
from barnabas.server.config import BrokerConfig, Listener, Settings, load_settings
from barnabas.server.tools.doctor.command import check
from barnabas.server.tools.doctor.facts import Descriptors, Facts
from barnabas.server.tools.doctor.findings import Finding, Level
from tests.support.broker_process import Barnabas, free_port

NOW_S = 1_800_000_000.0


class Healthy(Facts):
    def __init__(self) -> None:
        self.limit: Descriptors | None = Descriptors(20_000, 17_500, 7_500)
        self.memory = 8 << 30
        self.most_buffer: int | None = 4 << 20
        self.now = NOW_S
        self.newest = NOW_S - 5
        self.free = 100 << 30
        self.kind = "ext4"
        self.sync = 0.001
        self.modules = {"uvloop"}
        self.compiled = True
        self.maps = 65_530
        self.address_space: int | None = None
        self.resolved = {"127.0.0.1", "localhost", "kafka.example"}

    def is_compiled(self) -> bool:
        return self.compiled

    def has_module(self, name: str) -> bool:
        return name in self.modules

    def descriptors(self) -> Descriptors | None:
        return self.limit

    def memory_bytes(self) -> int:
        return self.memory

    def sysctl(self, name: str) -> int | None:
        return self.maps if name == "vm.max_map_count" else self.most_buffer

    def address_space_bytes(self) -> int | None:
        return self.address_space

    def now_s(self) -> float:
        return self.now

    def newest_change_s(self, directory: Path) -> float | None:
        return self.newest

    def free_bytes(self, directory: Path) -> int:
        return self.free

    def file_system(self, directory: Path) -> str:
        return self.kind

    def sync_s(self, directory: Path) -> float:
        return self.sync

    def resolve(self, host: str) -> None:
        if host not in self.resolved:
            raise socket.gaierror

    def bind(self, listener: Listener, config: BrokerConfig) -> None:
        pass


def findings(tmp_path: Path, facts: Facts, **options: str) -> list[Finding]:
    settings = loaded(tmp_path, **options)
    return [
        each for each in check(settings.config(), settings, facts) if each.level is not Level.OK
    ]


def loaded(tmp_path: Path, **options: str) -> Settings:
    texts = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    texts |= {name.replace("_", "."): value for name, value in options.items()}
    return load_settings(assignments=[f"{name}={value}" for name, value in texts.items()])


def test_doctor_finds_nothing_on_a_healthy_machine(tmp_path: Path) -> None:
    assert [] == findings(tmp_path, Healthy())


@pytest.mark.parametrize(
    ("name", "value", "level", "fact"),
    [
        ("compiled", False, Level.ADVICE, "plain Python"),
        ("modules", set(), Level.ADVICE, "uvloop is not installed"),
        ("limit", Descriptors(1024, 896, 384), Level.ADVICE, "may have 1,024 open files"),
        ("memory", 100 << 20, Level.ADVICE, "100 MiB of memory"),
        ("maps", 10_000, Level.ADVICE, "vm.max_map_count is 10,000"),
        ("address_space", 2 << 30, Level.ADVICE, "space of a process is limited to 2 GiB"),
        ("most_buffer", 212_992, Level.ADVICE, "is 208 KiB, the broker asks for 1 MiB"),
        ("now", 1_000_000_000.0, Level.PROBLEM, "before 2026"),
        ("newest", NOW_S + 7200, Level.PROBLEM, "2 hours behind the newest file"),
        ("kind", "tmpfs", Level.ADVICE, "in memory"),
        ("kind", "overlay", Level.ADVICE, "gone with the container"),
        ("kind", "nfs4", Level.ADVICE, "on another machine"),
        ("free", 1 << 20, Level.PROBLEM, "1 MiB free: a directory goes offline"),
        ("free", 500 << 20, Level.ADVICE, "less than a segment"),
        ("sync", 0.05, Level.ADVICE, "an fsync takes 50.0 ms"),
        ("resolved", set(), Level.ADVICE, "does not resolve"),
    ],
)
def test_doctor_reports_missing_resources_of_the_machine(
    tmp_path: Path, name: str, value: object, level: Level, fact: str
) -> None:
    facts = Healthy()
    setattr(facts, name, value)

    found = findings(tmp_path, facts)

    assert found
    assert {level} == {each.level for each in found}
    assert fact in found[0].fact
    assert all(each.remedy for each in found)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"queued_max_request_bytes": str(6 << 30)}, ["requests may take 6 GiB of it"]),
        (
            {
                "listeners": "PLAINTEXT://0.0.0.0:9092",
                "advertised_listeners": "PLAINTEXT://localhost:9092",
            },
            ["for each its own machine", "may read, write and delete"],
        ),
        (
            {
                "listeners": "PLAINTEXT://0.0.0.0:9092",
                "advertised_listeners": "PLAINTEXT://kafka.example:9092",
                "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super_users": "User:a",
            },
            [],
        ),
        ({"listeners": "SSL://127.0.0.1:9093"}, ["listener SSL"]),
    ],
)
def test_doctor_warns_of_a_dangerous_configuration(
    tmp_path: Path, options: dict[str, str], facts: list[str]
) -> None:
    found = findings(tmp_path, Healthy(), **options)

    assert len(facts) == len(found)
    assert all(fact in each.fact for fact, each in zip(facts, found, strict=True))


def test_doctor_names_options_without_effect(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, Healthy(), num_network_threads="3")

    assert "num.network.threads has no effect here" in found.fact


def test_doctor_reports_unusable_directories(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    for path in (file, file / "below"):
        (found,) = findings(tmp_path, Healthy(), log_dirs=str(path))
        assert (Level.PROBLEM, f"{file} is a file") == (found.level, found.fact)


def test_doctor_reports_a_port_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{port}"

        status = main(["doctor", "--data-dir", str(tmp_path), "--set", listeners])

    assert 1 == status
    assert (
        f"PLAINTEXT://127.0.0.1:{port} cannot be opened: Address already" in capsys.readouterr().out
    )


def test_doctor_reports_a_port_in_use_for_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        page = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ["--set", f"barnabas.http.listener={page}", "--set", "listeners=PLAINTEXT://:0"]
        main(["doctor", "--data-dir", str(tmp_path), *options])

    found = capsys.readouterr().out
    assert f"http://{page} cannot be opened: Address already in use\n" in found


def test_doctor_leaves_a_running_broker_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Barnabas(tmp_path) as broker:
        listeners = f"listeners={broker.listeners}"
        before = sorted(os.listdir(broker.data))
        status = main(
            ["doctor", "--data-dir", str(broker.data), "--set", listeners, "--format", "json"]
        )
        assert before == sorted(os.listdir(broker.data))

    found = json.loads(capsys.readouterr().out)
    assert 0 == status
    assert "a broker runs on it" in [each["fact"] for each in found]


def test_doctor_reports_a_wrong_configuration_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["doctor", "--set", "log.retention.ms=soon"])

    assert 1 == len(capsys.readouterr().err.splitlines())


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists its mounts")
def test_doctor_reads_the_properties_of_this_machine(tmp_path: Path) -> None:
    facts = Facts()

    assert facts.file_system(tmp_path)
    assert "proc" == facts.file_system(Path("/proc"))
    assert facts.sync_s(tmp_path) > 0
    assert facts.free_bytes(tmp_path) > 0
    assert facts.has_module("json")
    assert not facts.has_module("no_such_module")
    assert (facts.sysctl("net.core.somaxconn") or 0) > 0
    assert facts.sysctl("no.such.name") is None
    assert facts.newest_change_s(tmp_path / "none") is None
    with pytest.raises(OSError, match=r".+"):
        facts.resolve("no-such-name.invalid")
    listener = Listener("A", "127.0.0.1", free_port(), "127.0.0.1", 1)
    facts.bind(listener, BrokerConfig())
    assert [] == os.listdir(tmp_path)
