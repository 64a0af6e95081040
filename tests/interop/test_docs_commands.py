"""
Every command of the documentation is run: by a test here, or by another one that is named here.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from barnabas.protocol.records.batch import batches
from barnabas.server.cli import _parser
from barnabas.testing import Broker
from benchmarks.compare import _parser as benchmarks_parser
from tests.interop.page_reader import ROOT, Reader, blocks_of, is_open
from tests.interop.tools.toolbox import TOOLS
from tests.support.apache_kafka import java
from tests.support.broker_process import free_port, wait_for
from tests.support.commands import output_of
from tests.support.wheel import variables

PAGES: Final = sorted(
    str(path.relative_to(ROOT))
    for folder in (ROOT, ROOT / "docs", ROOT / "examples")
    for path in folder.glob("*.md")
)

HERE: Final = frozenset(
    {
        "docs/dump-log.md",
        "docs/http-api.md",
        "docs/metrics.md",
        "docs/operating.md",
        "docs/spark-archive.md",
        "docs/spark-compact.md",
        "docs/spark-replay.md",
        "docs/spark-report.md",
        "docs/terminal.md",
    }
)
"""The pages whose commands run one after the other on a directory with topics."""

ALONE: Final = frozenset({"docs/operating.md", "docs/spark-archive.md", "docs/spark-replay.md"})
"""Those of them that have a test of their own: one command needs what another one has made."""

LONG: Final = frozenset({"docs/spark-compact.md", "docs/spark-report.md"})
"""Those of them that start Spark several times."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "CONTRIBUTING.md": "tests/interop/test_docs_commands.py",
    "README.md": "tests/interop/test_readme.py",
    "docs/command-line.md": "tests/server/test_docs_storage.py",
    "docs/containers.md": "tests/interop/test_container.py",
    "docs/growing.md": "tests/interop/test_growing_out.py",
    "docs/performance.md": "tests/interop/test_benchmarks.py",
    "docs/security.md": "tests/interop/test_docs_commands.py",
    "docs/spark-cluster.md": "tests/pipeline/cluster/test_standalone.py",
    "docs/spark-connector.md": "tests/pipeline/connector/test_equality.py",
    "docs/spark-values.md": "tests/pipeline/values/test_docs_spark_values.py",
    "docs/spark.md": "tests/pipeline/test_docs_spark.py",
    "docs/storage.md": "tests/server/test_docs_storage.py",
    "docs/testing.md": "tests/testing/test_docs_testing.py",
    "docs/tutorial.md": "tests/interop/test_tutorial.py",
    "docs/verify.md": "tests/storage/verify/test_verify_command.py",
    "docs/web.md": "tests/interop/page/test_pictures.py",
    "examples/README.md": "tests/interop/test_container.py",
}
"""The tests that run the commands of the other pages."""

FIRST: Final = frozenset({"docs/growing.md", "docs/web.md"})
"""The pages whose first example runs here; tests of ``ELSEWHERE`` do what the others are about."""

NOT_RUN: Final[Mapping[str, str]] = {
    "make unit": "this test is one of them",
    "make test": "this test is one of them",
    "make prove": "this test is one of them",
}
"""Why no test runs a command."""


def commands_of(page: str) -> Iterator[str]:
    """
    The lines of a page that call ``barnabas``, each with those that continue it.
    """
    for language, block in blocks_of(page):
        if language != "python":
            for line in re.sub(r"\\\n *", " ", block).splitlines():
                command = line.removeprefix("$ ").split(" | ")[0].rstrip(" |&")
                if re.match(r"barnabas \S", command) and (language == "sh" or line[0] == "$"):
                    yield command


def test_every_page_with_commands_has_a_test() -> None:
    with_commands = {page for page in PAGES if any(blocks_of(page))}

    assert set() == with_commands - HERE - ELSEWHERE.keys()
    assert all((ROOT / test).exists() for test in ELSEWHERE.values())


@pytest.mark.parametrize("page", sorted(ELSEWHERE.keys() - FIRST))
def test_test_of_a_page_reads_its_examples_from_the_page(page: str) -> None:
    program = (ROOT / ELSEWHERE[page]).read_text()

    assert re.search(rf'"({re.escape(page)}|{re.escape(Path(page).name)})"', program)


@pytest.mark.parametrize("page", PAGES)
def test_documented_targets_of_make_exist(page: str) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = [
        line.removeprefix("$ ").partition("#")[0].split()
        for language, block in blocks_of(page)
        if language != "python"
        for line in block.splitlines()
        if re.match(r"(\$ )?make ", line)
    ]
    named = {word for _, *words in commands for word in words if word.isalpha()}

    assert set() == named - set(targets)


def test_documented_commands_of_the_benchmarks_are_accepted() -> None:
    commands = [
        line.partition("benchmarks.compare ")[2]
        for _, block in blocks_of("docs/performance.md")
        for line in re.sub(r"\\\n *", " ", block).splitlines()
        if "-m benchmarks.compare" in line
    ]

    for command in commands:
        benchmarks_parser().parse_args(shlex.split(re.sub(r"/opt/\S+", "/bin/sh", command)))
    assert len(commands) >= 5


@pytest.mark.parametrize("page", PAGES)
def test_every_documented_command_is_accepted_by_barnabas(page: str) -> None:
    for command in commands_of(page):
        given = shlex.split(command, comments=True)[1:]
        if given[0] not in ("dump-log", "--help", "--version") and "--help" not in given:
            _parser(given[0]).parse_args(given)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """
    A reader with a directory of two topics, and an archive of one of them.
    """
    data = tmp_path / "data"
    with Broker(data) as broker:
        orders = broker.topic("orders").create(
            partitions=3, config={"internal.segment.bytes": 20_000}
        )
        for number in range(900):
            orders.append([f"order {number} " + 90 * "x"])
        customers = broker.topic("customers").create(
            config={"cleanup.policy": "compact", "internal.segment.bytes": 5000}
        )
        for number in range(300):
            customers.append([(f"customer {number % 20}", f"points {number}" + 90 * "x")])
    places = {
        "/var/lib/barnabas": str(data),
        "/mnt/archive": str(tmp_path / "archive"),
        "/mnt/latest": str(tmp_path / "latest"),
        "/data/orders-0": str(data / "orders-0"),
        "--files orders-0": f"--files {data}/orders-0",
    }
    made = Reader(tmp_path, places)
    (tmp_path / "server.properties").write_text(
        f"log.dirs={data}\nlisteners=PLAINTEXT://127.0.0.1:{made.port}\n"
    )
    yield made
    made.end()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.prove] if page in LONG else [])
        for page in sorted(HERE - ALONE)
    ],
)
def test_documented_commands_of_a_page_work(page: str, reader: Reader) -> None:
    for language, block in blocks_of(page):
        if language != "python":
            reader.follow(language, block, compare=False)

    assert reader.commands


@pytest.mark.parametrize("page", sorted(FIRST))
def test_first_example_of_a_page_works(page: str, reader: Reader) -> None:
    language, block = next(blocks_of(page))

    reader.follow(language, block, compare=False)


@pytest.mark.prove
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_documented_installation_works_in_a_fresh_clone(page: str, tmp_path: Path) -> None:
    """
    The lines up to the first broker, as printed; only the home directory is another one.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    clone = tmp_path / "barnabas"
    output_of("git", "clone", "--quiet", ROOT, clone)
    block = next(block for _, block in blocks_of(page) if "-m venv" in block)
    lines, _, _ = block.partition("barnabas serve")

    printed = output_of(
        "bash",
        "-ec",
        f"{lines}\ncommand -v barnabas\nbarnabas --version",
        cwd=clone,
        env=variables() | {"HOME": str(tmp_path)},
        seconds=300,
    )

    *_, program, version = printed.splitlines()
    assert Path(program).is_relative_to(tmp_path)
    assert "(plain Python)" in version


@pytest.mark.prove
def test_commands_for_contributors_work_in_a_fresh_clone(tmp_path: Path) -> None:
    """
    As printed, but for the ports and the files of pytest's cache.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    clone = tmp_path / "barnabas"
    output_of("git", "clone", "--quiet", ROOT, clone)
    start, one_file, *_ = (block for _, block in blocks_of("CONTRIBUTING.md"))
    commands = [line.partition("#")[0].strip() for line in start.splitlines()]
    assert ["make run", *NOT_RUN, "make help"] == commands

    listed = output_of("make", "help", cwd=clone)
    assert all(f"\n{command} " in f"\n{listed}" for command in commands)
    port = free_port()
    ports = [f"LISTENERS=PLAINTEXT://127.0.0.1:{port}", f"HTTP_LISTENER=127.0.0.1:{free_port()}"]
    with subprocess.Popen(
        ["make", "run", *ports], cwd=clone, env=variables(), start_new_session=True
    ) as process:
        try:
            wait_for(lambda: is_open(port), "the broker", 300)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
    python, *arguments = shlex.split(one_file, comments=True)
    assert python == ".venv/bin/python"
    printed = output_of(sys.executable, *arguments, "-p", "no:cacheprovider", cwd=ROOT)
    assert re.search(r"\d+ passed", printed)


def test_documented_backup_and_restore_work(reader: Reader) -> None:
    (doctor, backup, restore) = (block for _, block in blocks_of("docs/operating.md"))

    reader.follow("sh", doctor)
    reader.follow("sh", backup)
    (made,) = (each for each in (reader.folder / "backups").iterdir() if each.is_dir())
    reader.follow("sh", re.sub(r"backups/[^/]+", f"backups/{made.name}", restore))
    reader.end()

    assert [] == [line for line in reader.run("barnabas verify restored") if "error " in line]


@pytest.mark.prove
def test_documented_replay_of_an_archive_works(reader: Reader, tools: None) -> None:
    archive, replay = (
        next(block for language, block in blocks_of(page) if language == "console")
        for page in ("docs/spark-archive.md", "docs/spark-replay.md")
    )
    reader.follow("console", archive, compare=False)
    reader.serve("barnabas serve --data-dir other")

    reader.follow("console", replay, compare=False)

    sent = sum(
        len(list(batch.records()))
        for log in (reader.folder / "other").glob("orders-*/*.log")
        for batch in batches(memoryview(log.read_bytes()))
        if not batch.is_control
    )
    assert 500 < sent <= 900, "all but those of the active segments are archived"


@pytest.fixture
def tools(reader: Reader) -> None:
    """
    The commands of Apache Kafka, on the reader's path.
    """
    _install_tools(reader)


def _install_tools(reader: Reader) -> None:
    folder = reader.folder / "bin"
    folder.mkdir()
    for name in ("kafka-topics", "kafka-acls", "kafka-configs", "kafka-delegation-tokens"):
        tool = folder / name
        tool.write_text(f'#!/bin/sh\nexec {shlex.join(java(TOOLS[name]))} "$@"\n')
        tool.chmod(0o755)
    reader.environment["PATH"] = f"{folder}:{reader.environment['PATH']}"


def test_documented_security_commands_work(tmp_path: Path) -> None:
    """
    The first broker of the page, with the further settings of the page, and each tool.
    """
    reader = Reader(
        tmp_path,
        {
            "/etc/barnabas": str(tmp_path),
            "broker.example:9093": "localhost:{port}",
            "0.0.0.0:9093": "127.0.0.1:{port}",
        },
    )
    _install_tools(reader)
    (tmp_path / "alice.properties").write_text(_ALICE.format(ca=tmp_path / "ca.pem"))
    blocks = [*blocks_of("docs/security.md")]
    commands = [block for language, block in blocks if language == "sh"]
    users, *tools = (each for each in commands if "docker" not in each)
    make, serve, options = users.partition("barnabas serve")
    (program,) = (block for language, block in blocks if language == "python")
    program += "\nproducer.send('orders', b'castle').get(10)\n"
    (tmp_path / "send.py").write_text(reader.as_here(program))

    try:
        reader.follow("sh", make)
        with (tmp_path / "server.properties").open("a") as file:
            file.writelines(_SETTINGS.findall((ROOT / "docs" / "security.md").read_text()))
        reader.follow("sh", serve + options)
        reader.run("python send.py")
        for block in tools:
            reader.follow("sh", block)
        listed = reader.run(next(each for each in reader.commands if each.endswith("--list")))
    finally:
        reader.end()

    assert any("User:carol" in line for line in listed)
    assert sum(command.startswith("kafka-") for command in reader.commands) >= 5


_SETTINGS: Final = re.compile(
    r"```properties\n((?:delegation\.token\.secret|authorizer\.class).*?)```", re.DOTALL
)
"""The further options of the page that its commands need."""

_ALICE: Final = """\
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={ca}
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule \\
  required username="alice" password="secret";
"""
