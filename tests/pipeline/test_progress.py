from __future__ import annotations

import io

from barnabas.pipeline.jobs.progress import ProgressBar
from tests.support.clock import StillClock

MiB = 1 << 20


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_bar_shows_position_and_rate() -> None:
    terminal, clock = Terminal(), StillClock(0)
    bar = ProgressBar("archived", 10 * MiB, terminal, clock)

    clock.advance(1000)
    bar.advance(2 * MiB)
    bar.advance(8 * MiB)
    bar.close()

    lines = terminal.getvalue().split("\r")[1:]
    erased = "\x1b[K"
    assert [
        f"archived [{'.' * 30}]   0% of 10 MiB{erased}",
        f"archived [{'#' * 6}{'.' * 24}]  20% of 10 MiB, 2 MiB/s, 4 seconds left{erased}",
        f"archived [{'#' * 30}] 100% of 10 MiB, 10 MiB/s{erased}\n",
    ] == lines


def test_progress_is_logged_occasionally() -> None:
    log, clock = io.StringIO(), StillClock(0)
    bar = ProgressBar("archived", 100 * MiB, log, clock)

    for _ in range(10):
        clock.advance(10_000)
        bar.advance(10 * MiB)
    bar.close()

    assert [
        "archived  30% of 100 MiB, 1 MiB/s, 1 minute 10 seconds left",
        "archived  60% of 100 MiB, 1 MiB/s, 40 seconds left",
        "archived  90% of 100 MiB, 1 MiB/s, 10 seconds left",
    ] == log.getvalue().splitlines()


def test_progress_is_not_written_without_a_terminal() -> None:
    file, terminal = io.StringIO(), Terminal()
    for stream, total in ((file, 10), (terminal, 0)):
        bar = ProgressBar("archived", total, stream, StillClock(0))
        bar.advance(total)
        bar.close()

    assert ("", "") == (file.getvalue(), terminal.getvalue())
