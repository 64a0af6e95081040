"""
docs/limits.md states what the tests assert, and nothing else.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.server.config import BrokerConfig
from tests.support.limits import rows, stated

TESTS = Path(__file__).parents[1]


def test_every_limit_of_the_page_is_asserted_by_a_test() -> None:
    """
    Each row of the page is read by a test with ``stated("the-name-of-the-row")``.
    """
    asserted = {
        name
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r'stated\(\s*"([a-z0-9-]+)"', path.read_text())
    }

    assert set(rows()) == asserted - {"the-name-of-the-row"}


@pytest.mark.parametrize("name", rows())
def test_every_row_states_a_quantity(name: str) -> None:
    """
    A limit is a number, with a unit where it has one.
    """
    assert stated(name) > 0


def test_largest_request() -> None:
    """
    The page states the default of ``socket.request.max.bytes``.
    """
    assert stated("request-size") == BrokerConfig().socket_request_max_bytes
