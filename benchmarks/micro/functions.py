"""
The functions through which every request goes, each with an input as clients send it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crc32c import crc32c

from barnabas.protocol.codec.codec import decode_from, encode_parts
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.framing import FrameMemory, FrameReceiver
from barnabas.protocol.headers import decode_request_header
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.records.batch import ATTRIBUTES_AT, build_batch, read_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.batch_checks import check_batches
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log.validator import LogValidator
from barnabas.storage.producers.append_origin import AppendOrigin
from benchmarks import wire
from tests.support.log_directory import WrittenDirectory
from tests.support.segments import FIRST_TIMESTAMP

Work = Callable[[], object]

_FRAME_LIMIT: Final = 100 << 20
_INDEXED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Function:
    """
    Attributes:
        per: how many records, or other things, one call is about.
        unit: what these are.
    """

    name: str
    work: Work
    per: int = 1
    unit: str = "call"


@contextmanager
def functions(directory: Path) -> Iterator[list[Function]]:
    """
    All of them, in the order in which a record meets them; logs are below *directory*.
    """
    written = WrittenDirectory(directory)
    log = written.log()
    yield [
        *_frames(),
        *_batches("1 KB", 16, 1024, CompressionType.NONE),
        *_batches("100 B", 160, 100, CompressionType.NONE),
        *_batches("100 B, lz4", 160, 100, CompressionType.LZ4),
        *_storage(log, directory),
    ]
    written.stop()


def _batch(count: int, size: int, codec: CompressionType = CompressionType.NONE) -> bytearray:
    value = b"".join(b"%d, " % number for number in range(size))[:size]
    records = [SimpleRecord(FIRST_TIMESTAMP + number, None, value) for number in range(count)]
    return bytearray(build_batch(records, compression=codec))


def _frames() -> list[Function]:
    produce = wire.produce_batch_request("topic", bytes(_batch(16, 1024)))
    fetch = wire.fetch_request("topic", 1000)
    receiver = FrameReceiver(_FRAME_LIMIT, FrameMemory())

    def receive() -> None:
        remaining = memoryview(produce)
        while remaining:
            room = receiver.get_buffer()
            count = min(len(room), len(remaining))
            room[:count] = remaining[:count]
            receiver.buffer_updated(count)
            while receiver.take_frame() is not None:
                pass
            remaining = remaining[count:]

    def decoded(frame: bytes, kind: type[ProduceRequest | FetchRequest], version: int) -> Work:
        body = memoryview(bytearray(frame))[4:]

        def decode() -> object:
            _, position = decode_request_header(body)
            return decode_from(kind, version, body, position)

        return decode

    return [
        Function("receive a frame of 16 KiB", receive),
        Function("decode Produce v7", decoded(produce, ProduceRequest, 7)),
        Function("decode Fetch v4", decoded(fetch, FetchRequest, 4)),
        Function("encode Produce v7", _produce_response),
        Function("encode Fetch v12", _fetch_response),
    ]


def _produce_response() -> object:
    partition = PartitionProduceResponse(index=0, error_code=0, base_offset=1000)
    topic = TopicProduceResponse(name="topic", partition_responses=[partition])
    return encode_parts(ProduceResponse(responses=[topic]), 7)


def _fetch_response() -> object:
    partition = PartitionData(partition_index=0, error_code=0, high_watermark=1000, records=b"x")
    topic = FetchableTopicResponse(topic="topic", partitions=[partition])
    return encode_parts(FetchResponse(responses=[topic]), 12)


def _batches(name: str, count: int, size: int, codec: CompressionType) -> list[Function]:
    """
    What is done with a batch before it is written.
    """
    data = _batch(count, size, codec)
    view = memoryview(data)
    batch = read_batch(view)
    validator = LogValidator("topic-0", LogConfig())

    def check() -> object:
        return check_batches(
            view, "topic-0", origin=AppendOrigin.CLIENT, leader_epoch=0, max_batch_size=1 << 20
        )

    def validate() -> object:
        info = LogAppendInfo()
        info.first_offset = 0
        now_ms = FIRST_TIMESTAMP
        examined = validator.examine(batch, origin=AppendOrigin.CLIENT, now_ms=now_ms, at_once=True)
        return validator.assign_offsets(examined, info, leader_epoch=0, now_ms=now_ms)

    def checksum() -> object:
        return crc32c(view[ATTRIBUTES_AT:])

    return [
        Function(f"checksum, {name}", checksum, count, "record"),
        Function(f"header and checksum, {name}", check, count, "record"),
        Function(f"walk over the records, {name}", batch.scan, count, "record"),
        Function(f"validate and number, {name}", validate, count, "record"),
        Function(f"records as objects, {name}", lambda: list(batch.records()), count, "record"),
    ]


def _storage(log: Log, directory: Path) -> list[Function]:
    """
    Appends, look-ups and reads of a log on the disk.
    """
    small, middle, large = _batch(1, 100), _batch(16, 1024), _batch(960, 1024)
    index = OffsetIndex.open(DiskFiles(), directory / "0.index", 0, 10 << 20)
    for number in range(_INDEXED):
        index.append(10 * number, 4096 * number)

    def append(data: bytearray) -> Work:
        pristine = bytes(data)
        return lambda: log.append_as_leader(memoryview(bytearray(pristine)), 0)

    def read(size: int) -> Work:
        def found() -> object:
            place = log.read(0, size, FetchIsolation.LOG_END, min_one_message=True, nowait=True)
            assert place.records is not None
            return place.records.read(nowait=True)

        return found

    return [
        Function("append one record of 100 B", append(small)),
        Function("append 16 records of 1 KB", append(middle), 16, "record"),
        Function("append 960 records of 1 KB", append(large), 960, "record"),
        Function("look up an offset", lambda: index.lookup(54_321)),
        Function("read 16 KiB", read(16 << 10)),
        Function("read 1 MiB", read(1 << 20)),
    ]
