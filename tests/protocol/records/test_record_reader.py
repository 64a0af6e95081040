from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.record import (
    Header,
    Record,
    RecordReader,
    encode_records,
    iter_records,
)
from barnabas.protocol.records.scan import RecordScan
from barnabas.protocol.records.varints import int32, int64
from tests.support.compiled import plain
from tests.support.record_bytes import record_lists

PLAIN: Any = plain("barnabas.protocol.records.record")
RECORDS = record_lists((63, 64, 8191, 8192, 1 << 20), max_size=3)
READERS = pytest.mark.parametrize("cls", [RecordReader, PLAIN.RecordReader], ids=["run", "plain"])


def read(cls: Any, data: bytes, count: int, *, streamed: bool = False) -> list[Record]:
    reader = cls(
        data,
        count,
        base_offset=0,
        base_timestamp=0,
        base_sequence=-1,
        log_append_time=None,
        streamed=streamed,
    )
    found = []
    while reader.advance():
        headers = tuple(Header(name.decode(), value) for name, value in reader.headers())
        key, value = reader.key(), reader.value()
        assert (reader.key_size, reader.value_size, reader.header_count) == (
            -1 if key is None else len(key),
            -1 if value is None else len(value),
            len(headers),
        )
        found.append(Record(reader.offset, reader.timestamp, key, value, headers))
    return found


@READERS
@given(records=RECORDS, streamed=st.booleans())
def test_records_are_read_as_written(cls: Any, records: list[Record], streamed: bool) -> None:
    data = bytes(encode_records(records, 0, 0))

    assert records == read(cls, data, len(records), streamed=streamed)


@READERS
@given(records=RECORDS.filter(bool), data=st.data())
def test_reader_and_scan_agree_about_malformed_records(
    cls: Any, records: list[Record], data: Any
) -> None:
    encoded = encode_records(records, 0, 0)
    encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    payload = bytes(encoded)
    scan = RecordScan(len(records), 0)
    scan.walk(memoryview(payload))

    if scan.malformed:
        with pytest.raises(InvalidRecord):
            read(cls, payload, len(records))
    else:
        try:
            assert len(records) == len(read(cls, payload, len(records)))
        except UnicodeDecodeError:
            names = [header for each in iter_records(payload, len(records)) for header in each[4]]
            assert "\ufffd" in str(names)


@READERS
def test_timestamps_and_offsets_wrap_like_java_longs(cls: Any) -> None:
    data = bytes(encode_records([Record(1, 2, None, None)], 0, 0))
    reader = cls(
        data,
        1,
        base_offset=2**63 - 1,
        base_timestamp=2**63 - 1,
        base_sequence=2**31 - 1,
        log_append_time=None,
        streamed=False,
    )

    assert reader.advance()
    assert (-(2**63), -(2**63) + 1, 0) == (reader.offset, reader.timestamp, reader.sequence)


@given(st.integers(-(2**40), 2**40))
def test_ints_and_longs_wrap_around(number: int) -> None:
    assert int32(number) == int32(number + 2**32)
    assert int64(number) == number == int64(number + 2**64)
    assert -(2**31) <= int32(number) < 2**31
