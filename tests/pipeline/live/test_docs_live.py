from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.live.conftest import Live
from tests.pipeline.test_docs_spark import PAGE
from tests.pipeline.topics import Topic, records, seen_in
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.spark, pytest.mark.prove]


def test_documented_programs_run(connector: Live, broker: BrokerProcess, tmp_path: Path) -> None:
    orders, copies = Topic(broker, "orders"), Topic(broker, "copies")
    orders.send(records(50))
    found = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    programs = [each for each in found if "bootstrap" in each]
    names: dict[str, Any] = {"spark": connector.spark}

    for program in programs:
        here = program.replace("localhost:9092", broker.bootstrap).replace("/tmp", str(tmp_path))
        exec(here, names)  # what a reader does

    assert 3 == len(programs)
    expected = [(seen.key, seen.value) for seen in orders.expected] * 2
    assert expected == [(seen.key, seen.value) for seen in seen_in(connector.read(copies))]
