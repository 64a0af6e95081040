"""
Tools copy numbered records from one topic to another while the broker is restarted and killed.

``--ecosystem all`` adds the tools whose installation is large.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.interop.clients.confluent import Confluent
from tests.interop.conftest import IMPATIENT, new_broker
from tests.interop.ecosystem.copying import SOURCE, TARGET, Copier, Copies
from tests.interop.ecosystem.installing import command
from tests.interop.ecosystem.tools import TOOLS, Guarantee, Tool
from tests.interop.numbered import PARTITIONS, Sender
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.prove

COPIES = 100
"""How many are awaited between two disturbances."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "tool" in metafunc.fixturenames:
        with_all = metafunc.config.getoption("--ecosystem") == "all"
        tools = [tool for tool in TOOLS if tool.is_light or with_all]
        metafunc.parametrize("tool", tools, ids=[tool.id for tool in tools])


@pytest.fixture
def program(tool: Tool) -> list[str]:
    return command(tool)


@pytest.fixture
def own_broker(tool: Tool, program: list[str], tmp_path: Path) -> Iterator[BrokerProcess]:
    with new_broker(tmp_path / "broker", IMPATIENT) as broker:
        for name in (SOURCE, TARGET):
            Confluent().create_topic(broker.bootstrap, name, PARTITIONS, {})
        yield broker


@pytest.fixture
def copier(
    tool: Tool, own_broker: BrokerProcess, program: list[str], tmp_path: Path
) -> Iterator[Copier]:
    may_end = tool.ends_without_broker
    with Copier(tmp_path / "copier", own_broker, program, may_end=may_end) as copier:
        yield copier


def test_every_record_is_copied_by_the_tool(
    tool: Tool, own_broker: BrokerProcess, copier: Copier
) -> None:
    """
    The broker is restarted, killed, and killed together with the tool. In the end every record that
    was acknowledged has been copied; exactly once where the tool promises it.
    """
    sender = Sender(own_broker.bootstrap, SOURCE, 0, at_once=tool.at_once)
    try:
        with closing(Copies(own_broker.bootstrap, copier)) as copies:
            copies.wait_for_more(COPIES)
            own_broker.restart()
            copies.wait_for_more(COPIES)
            own_broker.kill()
            own_broker.start()
            copies.wait_for_more(COPIES)
            own_broker.kill()
            if tool.survives_kill:
                copier.kill()
            own_broker.start()
            if tool.survives_kill:
                copier.start()
            copies.wait_for_more(COPIES)
            sender.stop()
            copies.wait_for_all(sender.acknowledged)
    finally:
        sender.stop()

    assert set(copies.counts) == sender.acknowledged
    if tool.guarantee is Guarantee.EXACTLY_ONCE:
        assert {1} == set(copies.counts.values())
