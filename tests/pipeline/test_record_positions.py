from __future__ import annotations

from barnabas.pipeline.decoding.record_positions import note_records
from barnabas.protocol.records.record import Record, encode_records


def test_varint_lengths_of_one_to_four_bytes_are_read() -> None:
    sizes = [0, 1, 55, 56, 57, 8_180, 8_190, 1_048_570, 1_048_580, 3]
    data, expected = b"..", []
    for size in sizes:
        expected.append(len(data))
        data += bytes(encode_records([Record(0, 0, None, bytes(size))], 0, 0))

    found: list[int] = []

    assert note_records(data + b"..", 2, len(data), len(sizes), found)
    assert expected == found


def test_records_that_end_in_the_wrong_place_are_refused() -> None:
    data = bytes(encode_records([Record(0, 0, b"k", b"v")] * 2, 0, 0))
    half = len(data) // 2

    def fits(raw: bytes, end: int, count: int) -> bool:
        return note_records(raw, 0, end, count, [])

    assert fits(data, len(data), 2)
    assert fits(data + bytes(1), len(data), 2)
    assert fits(b"\x80\x80\x80\x80\x00", 5, 1)
    assert not fits(data, len(data), 1)
    assert not fits(data, len(data), 3)
    assert not fits(data, half, 2)
    assert not fits(data[:half], len(data), 2)
    assert not fits(b"\x01" + data, len(data) + 1, 1)
    assert not fits(b"\x80", 1, 1)
    assert not fits(b"\xff\xff\xff\xff\x80\x00", 6, 1)
