"""
Log messages caused by peers are bounded, and cannot forge lines.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from barnabas.server.log_setup import MOST_CHARACTERS, MOST_LINES, WINDOW_S, set_up_logging
from tests.support.limits import stated

logger = logging.getLogger("barnabas.server.groups")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers.clear()
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)


def left(member: str) -> None:
    logger.info("%s leaves", member)


def test_long_name_is_truncated_in_the_log(stream: io.StringIO) -> None:
    set_up_logging("INFO", "text", stream)

    left("x" * 30_000)

    line = stream.getvalue()
    assert stated("log-sentence") == MOST_CHARACTERS
    assert line.endswith(f"groups: {'x' * MOST_CHARACTERS}... (30007 characters)\n")


@pytest.mark.parametrize("form", ["text", "json"])
def test_name_with_a_line_break_cannot_start_a_log_line(stream: io.StringIO, form: str) -> None:
    set_up_logging("INFO", form, stream)

    left("a\n2026-11-21 ERROR forged\r\x1b[2J\x85")

    assert 1 == len(stream.getvalue().splitlines())
    assert r"a\x0a2026-11-21 ERROR forged\x0d\x1b[2J\x85 leaves" in stream.getvalue().replace(
        "\\\\", "\\"
    )


def test_repeated_log_events_of_a_kind_are_suppressed(stream: io.StringIO) -> None:
    """
    The last logged event announces the suppression. Other events are still logged.
    """
    set_up_logging("INFO", "json", stream)

    for number in range(MOST_LINES + 50):
        left(f"member-{number}")
    logger.info("another kind")

    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert stated("log-lines") == MOST_LINES
    assert MOST_LINES + 1 == len(events)
    assert f"member-{MOST_LINES - 1} leaves" == events[-2]["message"]
    assert [events[-2]] == [event for event in events if "omitted" in event]
    assert "another kind" == events[-1]["message"]


def test_suppression_restarts_with_the_next_window(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up_logging("INFO", "text", stream)
    for _ in range(MOST_LINES + 1):
        left("early")
    now = logging.time.time()  # type: ignore[attr-defined]  # what its records are stamped with
    monkeypatch.setattr("logging.time.time", lambda: now + WINDOW_S)

    left("late")

    assert "late leaves" in stream.getvalue()


def test_traceback_keeps_its_lines(stream: io.StringIO) -> None:
    set_up_logging("INFO", "text", stream)

    try:
        raise ValueError("of the broker")
    except ValueError:
        logger.exception("it fails")

    assert "it fails\nTraceback (most recent call last):\n" in stream.getvalue()


def test_preformatted_log_messages_count_as_one_kind(stream: io.StringIO) -> None:
    """
    asyncio's messages may contain what a peer has sent.
    """
    set_up_logging("INFO", "text", stream)

    for number in range(2 * MOST_LINES):
        logger.info(f"peer {number} fails")

    assert MOST_LINES == len(stream.getvalue().splitlines())
