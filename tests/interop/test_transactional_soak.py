"""
Exactly once, while producers abort, are killed and fenced, and the broker is killed.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.interop.committed import read_committed
from tests.interop.conftest import new_broker
from tests.interop.soak.run import Command, Run
from tests.interop.soak.task import FENCED, PARTITIONS, Task, Transaction
from tests.support.apache_kafka import java
from tests.support.broker_process import BrokerProcess
from tests.support.java_programs import compiled
from tests.support.some import some

pytestmark = pytest.mark.prove

SOURCE = Path(__file__).parent / "java" / "Transformer.java"
ROOT = Path(__file__).parents[2]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """
    As many seeds as ``--soaks`` asks for.
    """
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--soaks")))


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """
    A broker for all runs, which are many restarts to it.
    """
    # As many partitions of the coordinators as there are producers are enough, and soon recovered.
    with new_broker(
        tmp_path_factory.mktemp("soaked"),
        offsets__topic__num__partitions="5",
        transaction__state__log__num__partitions="5",
    ) as broker:
        yield broker


@pytest.fixture(scope="module")
def classes() -> str:
    return compiled(SOURCE)


def _python(library: str) -> Command:
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import runpy; "
    start += "runpy.run_module('tests.interop.soak.transformer', run_name='__main__')"

    def command(task: Task) -> list[str]:
        return [sys.executable, "-c", start, library, *task.arguments()]

    return command


def test_transactions_of_version_1_survive_kills(
    soaked: BrokerProcess, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    commands = [_python(library) for library in ("librdkafka", "kafka-python", "aiokafka")]
    _soak(soaked, seed, commands, tmp_path_factory.mktemp(f"first-{seed}-"))


def test_transactions_of_version_2_survive_kills(
    soaked: BrokerProcess, seed: int, classes: str, tmp_path_factory: pytest.TempPathFactory
) -> None:

    def command(task: Task) -> list[str]:
        return java("Transformer", *task.arguments(), extra_class_path=classes)

    _soak(soaked, seed, [command] * PARTITIONS, tmp_path_factory.mktemp(f"second-{seed}-"))


def _soak(broker: BrokerProcess, seed: int, commands: Sequence[Command], directory: Path) -> None:
    run = Run(broker, seed, commands, directory)

    run.play()

    print(run.story())
    where = f"seed {seed}"
    found = read_committed(broker.bootstrap, run.topic_out, PARTITIONS)
    read = [[value.decode() for value in values] for values in found]
    for source in range(PARTITIONS):
        _assert_exactly_once(read, source, run.records[source], where)
        _assert_as_the_ledgers_say(read, source, run.transactions(source), where)
    _assert_that_it_was_hard(run, where)


def _assert_exactly_once(read: list[list[str]], source: int, count: int, where: str) -> None:
    """
    Each record of the source is there once and in order.
    """
    for partition, texts in some(enumerate(read)):
        values = [int(text.split()[3]) for text in texts if int(text.split()[0]) == source]
        assert list(range(partition, count, PARTITIONS)) == values, where


def _assert_as_the_ledgers_say(
    read: list[list[str]], source: int, ledger: list[Transaction], where: str
) -> None:
    """
    What is committed is there, what is not is not, and what may be is there whole or not at all.
    """
    found: dict[tuple[str, int], set[int]] = defaultdict(set)
    for texts in read:
        for text in texts:
            of, name, number, value = text.split()
            if int(of) == source:
                found[name, int(number)].add(int(value))
    for one in some(ledger):
        values = found.pop((one.name, one.number), set())
        whole = set(range(one.first, one.end))
        assert values in ([whole] if one.is_committed else [set(), whole]), f"{where}: {one}"
        assert one.may_be_committed or not values, f"{where}: {one}"
    assert not found, where


def _assert_that_it_was_hard(run: Run, where: str) -> None:
    """
    Producers aborted, were killed in the middle of a transaction, and told that they are fenced.
    """
    processes = [process for processes in run.processes for process in processes]
    assert any(one.is_aborted for process in processes for one in process.transactions), where
    assert any(process.was_killed and process.is_in_transaction for process in processes), where
    assert 1 == run.broker_kills, where
    assert run.fenced, where
    for process in some(run.fenced):
        assert process.failure in FENCED, f"{where}: {process.story}"
