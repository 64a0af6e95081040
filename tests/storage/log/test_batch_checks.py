from __future__ import annotations

import pytest

from barnabas.protocol.compression import UnknownCompression
from barnabas.protocol.errors import CorruptMessage, InvalidRecord
from barnabas.protocol.records.batch import RecordBatch, build_batch_with_offsets, read_batch
from barnabas.protocol.records.record import Record
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.batch_checks import check_batches
from barnabas.storage.producers.append_origin import AppendOrigin

CLIENT = AppendOrigin.CLIENT


def batch(offset: int = 0, epoch: int = -1) -> bytearray:
    return build_batch_with_offsets(
        [Record(offset, 0, b"k", b"v")], base_offset=offset, partition_leader_epoch=epoch
    )


def check(
    data: bytes | bytearray,
    origin: AppendOrigin = CLIENT,
    *,
    leader_epoch: int = 0,
    max_batch_size: int = 1000,
) -> list[RecordBatch]:
    return check_batches(
        memoryview(data),
        "t-0",
        origin=origin,
        leader_epoch=leader_epoch,
        max_batch_size=max_batch_size,
    )


def test_empty_append_has_no_batch() -> None:
    assert [] == check(b"")


def test_new_append_info_has_no_offsets() -> None:
    info = LogAppendInfo()

    assert (-1, -1, 0) == (info.first_offset, info.last_offset, info.valid_bytes)
    assert info != LogAppendInfo()


@pytest.mark.parametrize("length", [*range(14, 49), 13, 0, -1, -(2**31)])
def test_batch_smaller_than_its_header_is_corrupt(length: int) -> None:
    data = batch()
    data[8:12] = length.to_bytes(4, signed=True)

    for size in {len(data), max(length + 12, 17)}:
        with pytest.raises(CorruptMessage):
            check(data[:size])


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_unknown_magic_byte_is_corrupt(magic: int) -> None:
    data = batch()
    data[16] = magic

    with pytest.raises(CorruptMessage, match="Invalid magic found in record"):
        check(data)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_an_unknown_server_error(codec: int) -> None:
    data = batch()
    data[22] |= codec
    data[17:21] = read_batch(memoryview(data)).computed_crc().to_bytes(4)

    with pytest.raises(UnknownCompression):
        check(data)


def test_client_batch_must_have_base_offset_0() -> None:
    with pytest.raises(InvalidRecord, match="should be 0, but it is 1"):
        check(batch(1))
    assert [1] == [found.base_offset for found in check(batch(1), AppendOrigin.COORDINATOR)]


def test_metadata_log_batch_must_have_the_current_leader_epoch() -> None:
    assert 1 == len(check(batch(3, epoch=5), AppendOrigin.RAFT_LEADER, leader_epoch=5))
    with pytest.raises(InvalidRecord, match="expected 5 but the batch has 4"):
        check(batch(3, epoch=4), AppendOrigin.RAFT_LEADER, leader_epoch=5)
