"""
Administration of configs with Apache Kafka's own client; ``tools`` has its tools.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.both_brokers import BothBrokers
from tests.support.java_programs import run_program

pytestmark = pytest.mark.prove

SOURCE = Path(__file__).parent / "java" / "Configs.java"
_HINT = re.compile(r"; did you mean .*\?$", re.MULTILINE)


def test_java_client_sees_the_same_values_and_errors_as_with_kafka(tmp_path: Path) -> None:
    """
    Line for line: every value with its source, type and synonyms, every exception with its text.
    """
    with BothBrokers.side_by_side(tmp_path) as both:
        both.start()
        expected, told = (run_program(SOURCE, broker.bootstrap, "t") for broker in both)

    assert len(expected.splitlines()) > 100
    assert expected.splitlines() == _HINT.sub("", told).splitlines()
