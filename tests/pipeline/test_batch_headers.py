from __future__ import annotations

import random
from types import ModuleType

import pytest

from barnabas.pipeline.decoding import batch_headers
from barnabas.pipeline.decoding.batch_headers import HEADERS, Walk, compiled_walk, walk_by_arrays
from barnabas.protocol.records.batch import HEADER_SIZE, build_batch_with_offsets, read_batch
from barnabas.protocol.records.record import Record
from tests.support.compiled import compiled, plain
from tests.support.some import some

NAME = "barnabas.pipeline.decoding.header_walk"
PLAIN = plain(NAME)


def by_loop(module: ModuleType, buffer: bytes, start: int) -> Walk:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(batch_headers, "whole_batches", module.whole_batches)
        monkeypatch.setattr(batch_headers, "header_numbers", module.header_numbers)
        return compiled_walk(buffer, start)


def all_ways(buffer: bytes, start: int = 0) -> list[Walk]:
    return [
        walk_by_arrays(buffer, start),
        by_loop(PLAIN, buffer, start),
        by_loop(compiled(NAME), buffer, start),
    ]


def told(walk: Walk) -> tuple[list[tuple[int, ...]], int, int]:
    assert HEADERS == walk.headers.dtype
    return walk.headers.tolist(), walk.end, walk.next_size


def batch(base: int, size: int = 3) -> bytes:
    records = [Record(base, base, None, bytes(size))]
    return bytes(build_batch_with_offsets(records, base_offset=base))


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_all_implementations_read_every_header_field(count: int) -> None:
    """
    Headers have random bytes except for the length, and a part of the next batch follows.
    """
    chance = random.Random(count)
    data = bytearray(b"before")
    for number in range(count):
        stored = bytearray(chance.randbytes(HEADER_SIZE) + bytes(number))
        stored[8:12] = (HEADER_SIZE - 12 + number).to_bytes(4, "big")
        data += stored
    buffer = bytes(data + batch(1)[:-1])
    expected = []
    position = len("before")
    for _ in range(count):
        view = memoryview(buffer)[position:].toreadonly()
        length = int.from_bytes(view[8:12], "big")
        parts = [(0, 8), (8, 12), (12, 16), (16, 17), (17, 21), (21, 23), (23, 27), (27, 35)]
        parts += [(35, 43), (43, 51), (51, 53), (53, 57), (57, 61)]
        expected.append(
            (
                position,
                *(
                    int.from_bytes(view[start:end], "big", signed=start != 17)
                    for start, end in parts
                ),
            )
        )
        position += 12 + length

    for walk in some(all_ways(buffer, len("before"))):
        assert (expected, position, len(batch(1))) == told(walk)


def test_header_fields_are_those_of_a_batch() -> None:
    stored = batch(5)
    view = read_batch(memoryview(stored).toreadonly())

    for walk in some(all_ways(stored)):
        (header,) = walk.headers
        assert [5, view.crc, 1] == [header[n] for n in ("base_offset", "crc", "record_count")]


@pytest.mark.parametrize("at", range(8, 12))
def test_all_implementations_stop_at_the_same_length(at: int) -> None:
    """
    One byte of the length of the second of three batches has any value, and the data may end
    anywhere.
    """
    whole = batch(1), batch(2, size=300), batch(3)
    ends = set()
    for byte in range(256):
        data = bytearray(b"".join(whole))
        data[len(whole[0]) + at] = byte
        first, *others = (told(walk) for walk in all_ways(bytes(data)))
        assert [first, first] == others
        ends.add(first[1])
    assert len(ends) > 1


def test_all_implementations_stop_at_the_end_of_the_data() -> None:
    data = batch(1) + batch(2)
    for size in range(len(data) + 1):
        first, *others = (told(walk) for walk in all_ways(data[:size]))
        assert [first, first] == others
        assert size // len(batch(1)) == len(first[0])
