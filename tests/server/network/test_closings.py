"""
Lines of the log about closed connections.
"""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from barnabas.server.network.closings import MOST_LINES, WINDOW_S, Closings
from barnabas.testing.manual_clock import ManualClock


def test_peers_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    closings = Closings(cast(Any, clock))
    caplog.set_level(logging.INFO)

    for number in range(MOST_LINES + 50):
        closings.note(cast(Any, f"client {number}"), "it is rude")
    clock.advance(WINDOW_S)
    closings.note(cast(Any, "another"), "it is rude")
    clock.advance(WINDOW_S)

    lines = [record.getMessage() for record in caplog.records]
    assert MOST_LINES + 2 == len(lines)
    assert "closing the connection of client 0: it is rude" == lines[0]
    assert "closed 50 further connections in 10 s, the last lines say why" == lines[-2]
    assert "closing the connection of another: it is rude" == lines[-1]
