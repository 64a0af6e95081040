from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.segment.fetch_data import FetchDataInfo, FileSlice
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.testing.disks.memory import MemoryFiles


def test_slice_is_read_from_its_file() -> None:
    files = MemoryFiles()
    file = files.open(Path("/log"))
    file.append(b"abcdef")
    files.is_cold = True

    slice_ = FileSlice(file, 1, 3)

    assert b"bcd" == slice_.read()
    with pytest.raises(WouldBlock):
        slice_.read(nowait=True)


def test_offset_metadata_may_have_no_segment_position() -> None:
    alone = LogOffsetMetadata(5)
    first = LogOffsetMetadata(5, 0, 750)

    assert alone.message_offset_only
    assert not first.message_offset_only


def test_fetch_begins_with_the_batch_that_holds_the_offset() -> None:
    info = FetchDataInfo(LogOffsetMetadata(100, 100, 0), None)

    assert 100 == info.fetch_offset
    assert (None, False) == (info.aborted_transactions, info.first_entry_incomplete)
