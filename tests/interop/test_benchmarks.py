"""
The benchmarks still run: all measures of Barnabas alone, with next to nothing to do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import kafka  # type: ignore[import-untyped]
import pytest

from benchmarks import compare, java_tools, partitions, profile, results
from benchmarks.measure import Unavailable
from benchmarks.micro import __main__ as micro
from benchmarks.programs import compiler
from tests.interop.page_reader import blocks_of
from tests.support.broker_process import BrokerProcess, wait_for
from tests.support.commands import output_of
from tests.support.maven import PrerequisiteMissing
from tests.support.some import some

pytestmark = [pytest.mark.interop, pytest.mark.prove]
ROOT = Path(__file__).parents[2]
TINY = ("--broker", "barnabas", "--scale", "0.001", "--passes", "1")
PAGE = "".join(f"<!-- {name} -->\n<!-- end -->\n" for name in ("table", "dial", "machine"))


@pytest.mark.skipif(compiler() is None, reason="no C compiler, and load of frames is a C program")
def test_every_benchmark_gives_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Nothing is skipped, nothing is left behind, and table, page and plots are made of it.

    Without Kafka's tools, of which each run starts a virtual machine.
    """
    page, file, work = tmp_path / "page.md", tmp_path / "results.json", tmp_path / "work"
    page.write_text(PAGE)
    work.mkdir()
    monkeypatch.setattr(partitions, "SETTLED_S", 0.1)
    places = ["--json", str(file), "--page", str(page), "--plots", str(tmp_path / "plots")]

    assert 0 == compare.main([*TINY, "--skip", "java-*", "--directory", str(work), *places])

    found = results.read(file)
    assert [] == [(one.name, one.skipped) for one in found.measured if one.skipped]
    for line in some(found.lines()):
        assert line.barnabas is not None, line.figure.title
    for measured in some(found.measured):
        assert measured.figures[0].title.removeprefix("- ") in page.read_text()
    assert {"cpu", "durability", "latency", "rates"} == {
        path.stem.removeprefix("performance-") for path in (tmp_path / "plots").iterdir()
    }
    assert [] == list(work.iterdir())
    assert "start to first record" in capsys.readouterr().out


@pytest.mark.skipif(compiler() is None, reason="no C compiler, and load of frames is a C program")
def test_further_broker_is_benchmarked_beside_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Another Barnabas stands for it, which creates no topic by itself; a second one ends at once, and
    the run goes on.
    """
    serve = f"{sys.executable} -m barnabas.server serve --data-dir {{data}} --set"
    listening = f"Another={serve} listeners=PLAINTEXT://127.0.0.1:{{port}}"
    listening += " --set auto.create.topics.enable=false"
    failing = f"Failing={serve} no-such-option:{{port}}"
    beside = ["--beside", listening, "--beside", failing, "--directory", str(tmp_path)]
    file = tmp_path / "results.json"

    assert 0 == compare.main([*TINY, *beside, "--only", "requests-single", "--json", str(file)])

    [measured] = results.read(file).measured
    assert ["Barnabas", "Another"] == list(measured.samples)
    assert measured.failed["Failing"].startswith("Failing has ended: ")
    assert "Failing failed at requests-single" in capsys.readouterr().out
    assert [file] == list(tmp_path.iterdir())


SMALL = {
    "benchmarks.compare": " --broker barnabas --only start-0,requests-single --scale 0.001"
    " --passes 1",
    "benchmarks.micro": " --mode plain --seconds 0.001",
    "benchmarks.profile": " --scale 0.1",
}
NOT_RUN = {
    "make install compile": "it takes minutes, and this environment is installed",
    "alias compiled=": "plain Python is measured here",
    "python -m benchmarks.compare --only 'produce-*,requests-*,consume-*' --beside": "there are no"
    " such brokers; test_further_broker_is_benchmarked_beside_the_others has others",
}
"""Why no test runs a command of the page."""


@pytest.mark.skipif(compiler() is None, reason="no C compiler, and load of frames is a C program")
def test_documented_commands_work_in_small(tmp_path: Path) -> None:
    """
    One after the other on a copy of the page, with options that let them do little.
    """
    (tmp_path / "docs").mkdir()
    page = Path(shutil.copy(ROOT / "docs" / "performance.md", tmp_path / "docs"))
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    left_out = set(NOT_RUN)
    ran = 0
    for _, block in blocks_of("docs/performance.md"):
        for line in re.sub(r"\\\n *", "", block).splitlines():
            if reasons := [each for each in NOT_RUN if line.startswith(each)]:
                left_out -= set(reasons)
                continue
            if "py-spy" in line and shutil.which("py-spy") is None:
                continue
            command = line.removeprefix("compiled ").replace("python", sys.executable, 1)
            (more,) = (SMALL[each] for each in SMALL if f"-m {each}" in command)
            if not re.search("--list|--from", command):
                command += more
            output_of("bash", "-c", command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})
            ran += 1

    assert ran >= 6
    assert not left_out
    assert "| start to first record" in page.read_text()
    assert any((tmp_path / "docs" / "images").iterdir())


def test_java_producer_is_timed_more_precisely_than_by_kafkas_tool(broker: BrokerProcess) -> None:
    counts = {"warm_up": 100, "records": 1000, "per_second": 10_000}
    try:
        found = java_tools.produce_paced(broker.bootstrap, "paced", size=100, **counts)
    except Unavailable as missing:
        raise PrerequisiteMissing(str(missing)) from missing

    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap)
    try:
        assert [1100] == list(consumer.end_offsets([kafka.TopicPartition("paced", 0)]).values())
    finally:
        consumer.close()
    assert 0 < found["p50"] <= found["p95"] <= found["p99"] <= found["p999"]
    assert any(ms != round(ms) for ms in found.values())


def test_interrupted_run_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.compare", "--broker", "barnabas"]
    command += ["--only", "requests-single", "--scale", "1000", "--directory", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: any(tmp_path.glob("*/request-*")), "load", 60)
            # Not SIGINT: a shell lets background jobs ignore that, and all that they start.
            process.terminate()
            process.wait(60)
        finally:
            process.kill()

    assert [] == list(tmp_path.iterdir())
    assert not _processes_with(str(tmp_path))


def _processes_with(text: str) -> list[str]:
    """
    The command lines of other processes that have *text* in them.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if text in line:
            found.append(line)
    return found


def test_the_hot_functions_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == micro.main(["--mode", "compiled", "--seconds", "0.001"])

    assert "append 16 records of 1 KB" in capsys.readouterr().out


@pytest.mark.skipif(compiler() is None, reason="no C compiler, and load of frames is a C program")
def test_calls_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == profile.main(["requests-single", "--scale", "0.2"])

    assert "{built-in method posix.pwrite}" in capsys.readouterr().out


def test_places_are_profiled_by_their_own_time() -> None:
    samples = "main;read;recv 30\nmain;read 10\nmain;write;send 60\n"

    expected = ["  60.0%  send", "  30.0%  recv", "  10.0%  read"]
    assert expected == profile.own_time(samples).splitlines()
