from __future__ import annotations

import pytest

from barnabas.protocol.compression import CompressionType, decompress
from barnabas.protocol.records.batch import RecordBatch, build_batch, read_batch
from barnabas.protocol.records.record import Header, Record, SimpleRecord, encode_records
from barnabas.protocol.records.scan import WINDOW_BYTES
from barnabas.storage.log.batch_rebuild import rebuild_batch
from tests.support.bombs import memory_below
from tests.support.limits import stated
from tests.support.random_logs import strange_record
from tests.support.record_bytes import sealed

COUNT = 50_000
NOW = 1_700_000_000_000


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_recompression_takes_bounded_memory(codec: CompressionType) -> None:
    records = [SimpleRecord(1, None, bytes(2**20))] * (int(stated("decompressed")) // 2**20 - 1)
    batch = read_batch(memoryview(build_batch(records, compression=codec)))
    scan = batch.scan()

    for target in CompressionType:
        with memory_below(int(stated("recompression"))):
            rebuild_batch(batch, scan, codec=target, level=None)


def compressed(payload: bytes | bytearray, count: int, timestamp: int = NOW) -> RecordBatch:
    data = sealed(payload, count, timestamp=timestamp, compression=CompressionType.ZSTD)
    return read_batch(memoryview(data))


def test_renumbering_records_takes_bounded_memory() -> None:
    """
    Their offset deltas are wrong, so each record has to be read and written again.
    """
    records = [SimpleRecord(1, None, b"x")] * COUNT
    data = bytearray(build_batch(records, compression=CompressionType.ZSTD))
    batch = read_batch(memoryview(data))
    payload = bytearray(decompress(batch.compression, batch.payload))
    payload[3] = 2  # the offset delta of the first record: 1
    renumbered = compressed(payload, COUNT, timestamp=1)
    scan = renumbered.scan()
    assert not scan.consecutive

    with memory_below(4 * len(payload)):
        rebuilt = rebuild_batch(renumbered, scan, codec=CompressionType.ZSTD, level=None)

    offsets = [record.offset for record in read_batch(memoryview(rebuilt)).records()]
    assert list(range(COUNT)) == offsets


def rebuilt_payload(payload: bytes | bytearray, count: int) -> bytes:
    """
    The records of a batch with *payload* that was compressed, after it was rebuilt without.
    """
    batch = compressed(payload, count)
    assert not batch.scan().malformed
    rebuilt = rebuild_batch(batch, batch.scan(), codec=CompressionType.NONE, level=None)
    return bytes(read_batch(memoryview(rebuilt)).payload)


@pytest.mark.parametrize("how", [0, 1, 2])
@pytest.mark.parametrize("before", [0, 1, 9, 30])
def test_rebuilt_records_have_kafkas_encoding(how: int, before: int) -> None:
    records = [Record(at, NOW, b"key", b"v" * (at % 20)) for at in range(before + 2)]
    if before:
        records[0] = Record(0, NOW, b"key", bytes(2 * WINDOW_BYTES))
    regular = bytes(encode_records(records, 0, NOW))
    start = len(encode_records(records[:before], 0, NOW))
    strange = regular[:start] + bytes(strange_record(bytearray(regular[start:]), how))
    assert regular != strange

    assert regular == rebuilt_payload(strange, len(records))


def test_length_below_minus_one_becomes_minus_one() -> None:
    payload = bytearray(encode_records([Record(0, NOW, None, None)], 0, NOW))
    payload[4:6] = b"\x05\x0b"

    assert bytes.fromhex("0c 00 00 00 01 01 00") == rebuilt_payload(payload, 1)


def test_invalid_utf_8_in_a_header_key_is_replaced() -> None:
    record = Record(0, NOW, b"k", b"v", (Header("??", b"x"),))
    payload = bytearray(encode_records([record], 0, NOW)).replace(b"??", b"\xff?")

    expected = encode_records([record._replace(headers=(Header("\ufffd?", b"x"),))], 0, NOW)
    assert expected == rebuilt_payload(payload, 1)


@pytest.mark.parametrize("size", [WINDOW_BYTES - 30, WINDOW_BYTES, 3 * WINDOW_BYTES + 1])
def test_records_of_any_size_survive_a_rebuild(size: int) -> None:
    records = [Record(at, NOW, b"key", b"v" * (size if at == 2 else 9)) for at in range(5)]
    payload = bytes(encode_records(records, 0, NOW))

    assert payload == rebuilt_payload(payload, len(records))
