"""
Opening a log whose broker has crashed.
"""

from __future__ import annotations

from tests.support.logs import LogHome, append
from tests.support.segments import padded_batch


def test_a_segment_whose_offsets_go_backwards_is_emptied() -> None:
    home = LogHome(index_interval_bytes=1)
    append(home.open())
    home.file(0, ".log")[:] = b"".join(bytes(padded_batch(offset)) for offset in (0, 5, 3))

    log = home.open()

    assert (0, 0) == (log.log_end_offset, log.active_segment.size)
