"""
The bar of a long job.
"""

from __future__ import annotations

import io

from barnabas.pipeline.jobs.progress import ProgressBar
from tests.support.clock import StillClock

MiB = 1 << 20


class Terminal(io.StringIO):
    """
    What is written, and that somebody looks at it.
    """

    def isatty(self) -> bool:
        return True


def test_a_bar_shows_how_far_and_how_fast() -> None:
    """
    Over and over in one line.
    """
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


def test_nothing_is_written_where_nobody_looks() -> None:
    """
    Into a file, or of nothing to do.
    """
    file, terminal = io.StringIO(), Terminal()
    for stream, total in ((file, 10), (terminal, 0)):
        bar = ProgressBar("archived", total, stream, StillClock(0))
        bar.advance(total)
        bar.close()

    assert ("", "") == (file.getvalue(), terminal.getvalue())
