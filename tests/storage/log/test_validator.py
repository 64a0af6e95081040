from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import (
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    UnknownServerError,
)
from barnabas.protocol.records.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    RecordBatch,
    TimestampType,
    build_batch,
    read_batch,
)
from barnabas.protocol.records.record import Header, Record, SimpleRecord, encode_records
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import BatchTakesLong, RecordValidationError
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.validator import (
    EXAMINED_AT_ONCE_BYTES,
    REBUILT_AT_ONCE_BYTES,
    LogValidator,
)
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.threads.turns import ThreadTurns
from tests.support.record_bytes import sealed

NOW = 1_700_000_000_000
CODECS = [codec for codec in CompressionType if codec]
TARGETS = pytest.mark.parametrize(
    "target", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]
)
RECORDS = [
    SimpleRecord(NOW + 5, b"a", b"1" * 50),
    SimpleRecord(NOW, None, b"2", (Header("h", b"x"), Header("n", None))),
    SimpleRecord(NOW + 7, b"c", None),
]


def validate(
    data: bytes | bytearray,
    *,
    offset: int = 100,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    now_ms: int = NOW,
    **config: Any,
) -> tuple[RecordBatch, LogAppendInfo]:
    """
    The batch as it would be appended at *offset*, and what is known of it.
    """
    info = LogAppendInfo()
    info.first_offset = offset
    validator = LogValidator("t-0", LogConfig(**config))
    sent = read_batch(memoryview(bytearray(data)))
    examined = validator.examine(sent, origin=origin, now_ms=now_ms)
    view = validator.assign_offsets(examined, info, leader_epoch=7, now_ms=now_ms)
    batch = read_batch(view)
    assert batch.is_valid()
    assert len(view) == batch.size
    return batch, info


def name_of(codec: CompressionType) -> str:
    return codec.name.lower().replace("none", "uncompressed")


def simple(batch: RecordBatch) -> list[SimpleRecord]:
    return [SimpleRecord(*record[1:]) for record in batch.records()]


@pytest.mark.scenario(6)
@pytest.mark.parametrize("own", [True, False], ids=["own codec", "producer"])
@pytest.mark.parametrize("codec", CompressionType)
def test_batch_is_stored_unchanged_if_the_topic_has_its_codec(
    codec: CompressionType, own: bool
) -> None:
    level = 1 if codec is CompressionType.GZIP else None
    data = build_batch(RECORDS, compression=codec, compression_level=level)

    batch, info = validate(data, compression_type=name_of(codec) if own else "producer")

    assert bytes(data[16:]) == bytes(batch.data[16:])
    assert (100, 102, 7) == (batch.base_offset, info.last_offset, batch.partition_leader_epoch)
    assert (NOW + 7, -1) == (info.max_timestamp, info.log_append_time)


def with_deltas(deltas: list[int], codec: CompressionType = CompressionType.NONE) -> bytearray:
    """
    A batch whose header is right, while its records have other offset deltas.
    """
    records = [Record(delta, NOW, b"k", b"v") for delta in deltas]
    return sealed(encode_records(records, 0, NOW), len(records), compression=codec, timestamp=NOW)


def test_uncompressed_batch_keeps_nonconsecutive_offset_deltas_unless_it_is_rebuilt() -> None:
    data = with_deltas([0, 3, 1])

    batch, info = validate(data)
    rebuilt, _ = validate(data, compression_type="lz4")

    assert bytes(data[HEADER_SIZE:]) == bytes(batch.payload)
    assert (100, 102) == (batch.base_offset, info.last_offset)
    assert [100, 101, 102] == [record.offset for record in rebuilt.records()]


@pytest.mark.parametrize("codec", CODECS)
def test_compressed_batch_with_nonconsecutive_offset_deltas_is_refused_or_rebuilt(
    codec: CompressionType,
) -> None:
    data = with_deltas([0, 3, 1], codec)

    with pytest.raises(UnknownServerError, match="not numbered in turn"):
        validate(data)
    batch, _ = validate(data, compression_type="uncompressed")

    assert [100, 101, 102] == [record.offset for record in batch.records()]


@pytest.mark.parametrize("codec", CompressionType)
def test_wrong_max_timestamp_is_corrected(codec: CompressionType) -> None:
    payload = encode_records([Record(0, NOW + 5, b"k", b"v")], 0, NOW)

    data = sealed(payload, timestamp=NOW, max_timestamp=NOW + 99, compression=codec)

    batch, info = validate(data)

    assert NOW + 5 == batch.max_timestamp == info.max_timestamp


@pytest.mark.parametrize("target", ["producer", "zstd"])
def test_log_append_time_stamps_all_records(target: str) -> None:
    batch, info = validate(
        build_batch(RECORDS),
        now_ms=NOW + 1000,
        message_timestamp_type="LogAppendTime",
        compression_type=target,
    )

    assert TimestampType.LOG_APPEND_TIME is batch.timestamp_type
    assert NOW + 1000 == info.log_append_time == info.max_timestamp
    assert {NOW + 1000} == {record.timestamp for record in batch.records()}


def test_unknown_attribute_bits_are_kept_unless_the_header_is_rewritten() -> None:
    data = build_batch(RECORDS)
    data[ATTRIBUTES_AT] = 0x7F
    data[17:21] = read_batch(memoryview(data)).computed_crc().to_bytes(4)

    batch, _ = validate(data)
    assert 0x7F00 == batch.attributes
    batch, _ = validate(data, message_timestamp_type="LogAppendTime")
    assert 0x08 == batch.attributes


@pytest.mark.parametrize(
    ("source", "target", "texts"),
    [
        (0, "producer", ("DefaultRecord", "key=1 bytes, value=0 bytes")),
        (0, "gzip", ("DefaultRecord", "key=1 bytes, value=0 bytes")),
        (1, "lz4", ("DefaultRecord", "key=1 bytes, value=0 bytes")),
        (1, "producer", ("PartialDefaultRecord", "key=1 bytes, value=-1 bytes")),
    ],
)
@pytest.mark.parametrize(
    ("timestamp", "timestamp_type"), [(-1, "CreateTime"), (NOW, "LogAppendTime")]
)
def test_client_batch_with_log_append_time_is_refused(
    timestamp: int, timestamp_type: str, source: int, target: str, texts: tuple[str, str]
) -> None:
    """
    With the message of Kafka, which prints a Java object and null.
    """
    kind, sizes = texts
    data = build_batch(
        [SimpleRecord(NOW, b"k", None)],
        log_append_time=timestamp,
        compression=CompressionType(source),
    )

    with pytest.raises(RecordValidationError) as caught:
        validate(data, message_timestamp_type=timestamp_type, compression_type=target)

    assert InvalidTimestamp.code is caught.value.code
    ((_, message),) = caught.value.record_errors
    assert message == (
        f"Invalid timestamp type in message {kind}(offset=0, timestamp={timestamp}, {sizes}). "
        "Producer should not set timestamp type to LogAppendTime."
    )


@pytest.mark.parametrize("codec", CompressionType)
def test_timestamps_out_of_bounds_are_reported_per_record(codec: CompressionType) -> None:
    times = [NOW, NOW - 1001, NOW + 2001, NOW - 1000, NOW + 2000, -1]
    data = build_batch([SimpleRecord(at, b"k", b"v") for at in times], compression=codec)

    with pytest.raises(RecordValidationError) as caught:
        validate(data, message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=2000)

    assert InvalidTimestamp.code is caught.value.code
    assert [1, 2] == [index for index, _ in caught.value.record_errors]
    assert f"Timestamp {NOW - 1001} of message with offset 1 is out of range" in str(
        caught.value.record_errors[0].message
    )
    assert f"[{NOW - 1000}, {NOW + 2000}]" in caught.value.record_errors[1].message


def test_wrong_timestamp_is_reported_before_a_missing_key() -> None:
    data = build_batch([SimpleRecord(NOW, None, b"v"), SimpleRecord(NOW * 2, b"k", b"v")])

    with pytest.raises(RecordValidationError) as caught:
        validate(data, cleanup_policy=("compact",))

    assert InvalidTimestamp.code is caught.value.code
    assert [0, 1] == [index for index, _ in caught.value.record_errors]


def test_invalid_compressed_data_is_an_unknown_server_error() -> None:
    data = build_batch(RECORDS)
    data[ATTRIBUTES_AT + 1] |= CompressionType.GZIP

    with pytest.raises(UnknownServerError):
        validate(data)


@pytest.mark.parametrize("codec", CODECS)
def test_decompressed_batch_size_may_be_limited(codec: CompressionType) -> None:
    """
    The error is Kafka's for data that cannot be decompressed, and names the option.
    """
    data = build_batch([SimpleRecord(NOW, b"k", bytes(100_000))], compression=codec)

    validate(data, barnabas_max_decompressed_bytes=100_100)
    with pytest.raises(
        UnknownServerError,
        match=r"more than 100000 bytes.*barnabas\.max\.decompressed\.bytes \(100000\)",
    ):
        validate(data, barnabas_max_decompressed_bytes=100_000)


@TARGETS
@pytest.mark.parametrize("codec", CompressionType)
def test_only_small_batches_are_validated_on_the_event_loop(
    codec: CompressionType, target: str
) -> None:
    """
    The limit is lower for batches that have to be recompressed.
    """
    validator = LogValidator("t-0", LogConfig(compression_type=target, max_message_bytes=2**30))
    rebuilt = target not in ("producer", name_of(codec))
    most = REBUILT_AT_ONCE_BYTES if rebuilt else EXAMINED_AT_ONCE_BYTES

    def examine(size: int) -> None:
        data = build_batch([SimpleRecord(NOW, b"k", bytes(size))], compression=codec)
        batch = read_batch(memoryview(data))
        validator.examine(batch, origin=AppendOrigin.CLIENT, now_ms=NOW, at_once=True)

    examine(most - 1000)
    if codec or rebuilt:
        with pytest.raises(BatchTakesLong):
            examine(most)
    else:
        examine(2 * most)  # It is as large on the wire.


@TARGETS
@pytest.mark.parametrize("codec", CompressionType)
@pytest.mark.parametrize("gap", [False, True])
def test_validation_with_yields_has_the_same_result(
    codec: CompressionType, target: str, *, gap: bool
) -> None:
    records = [
        Record(number + gap * (number > 50), NOW + number % 7, b"k" * number, b"v" * 100 * number)
        for number in range(100)
    ]
    payload = encode_records(records, 0, NOW)
    data = sealed(payload, 100, timestamp=NOW, max_timestamp=NOW + 6, compression=codec)
    validator = LogValidator("t-0", LogConfig(compression_type=target))

    def made(turns: ThreadTurns | None) -> bytes | str:
        batch = read_batch(memoryview(bytearray(data)))
        info = LogAppendInfo()
        info.first_offset = 0
        try:
            examined = validator.examine(batch, origin=AppendOrigin.CLIENT, now_ms=NOW, turns=turns)
        except KafkaError as error:
            return repr(error)
        return bytes(validator.assign_offsets(examined, info, leader_epoch=3, now_ms=NOW))

    assert made(None) == made(ThreadTurns())


def changed(codec: CompressionType, change: Callable[[bytes], bytes]) -> bytearray:
    """
    A batch of one record whose bytes were changed before they were compressed.
    """
    payload = encode_records([Record(0, NOW, b"k", b"v")], 0, NOW)
    return sealed(change(bytes(payload)), compression=codec, timestamp=NOW)


@pytest.mark.parametrize("codec", CompressionType)
@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0"])
def test_malformed_records_are_refused(
    codec: CompressionType, change: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(InvalidRecord, match="Found invalid records in topic partition t-0"):
        validate(changed(codec, change))


@pytest.mark.parametrize("first", [b"\x7e", b"\x02", b"\x01"])
def test_wrong_record_length_is_refused_where_records_are_examined(first: bytes) -> None:
    """
    Kafka does not examine compressed records that it stores unchanged, and accepts them.
    """
    plain, gzip = (
        changed(codec, lambda data: first + data[1:])
        for codec in (CompressionType.NONE, CompressionType.GZIP)
    )

    with pytest.raises(InvalidRecord):
        validate(plain)
    with pytest.raises(InvalidRecord):
        validate(gzip, compression_type="zstd")
    validate(gzip)


@pytest.mark.parametrize("compression_type", ["producer", "uncompressed", "gzip"])
@pytest.mark.parametrize("length", [b"\xff" * 5, b"\xff" * 11, b"\x80" * 5 + b"\0"])
@pytest.mark.parametrize(
    ("codec", "error"),
    [(CompressionType.NONE, UnknownServerError), (CompressionType.ZSTD, InvalidRecord)],
)
def test_malformed_length_varint_is_found_earlier_in_uncompressed_batches(
    codec: CompressionType, error: type[KafkaError], length: bytes, compression_type: str
) -> None:
    """
    Kafka handles this error only within a record, and in data that it decompresses.
    """
    data = changed(codec, lambda data: length + data[1:])

    with pytest.raises(error):
        validate(data, compression_type=compression_type)


@pytest.mark.parametrize("place", range(2, 6))
def test_endless_varint_within_a_record_is_an_invalid_record(place: int) -> None:
    data = changed(CompressionType.NONE, lambda data: data[:place] + b"\xff" * 11 + data[place:])

    with pytest.raises(InvalidRecord):
        validate(data)


def test_coordinator_may_append_control_records() -> None:
    data = build_batch([SimpleRecord(NOW, b"\0\0\0\0", b"")], is_control=True, producer_id=3)

    batch, _ = validate(data, origin=AppendOrigin.COORDINATOR)
    assert batch.is_control

    with pytest.raises(InvalidRecord):
        validate(data)


@pytest.mark.parametrize("compression", ["uncompressed", "gzip"])
def test_batch_that_would_grow_beyond_max_message_bytes_is_refused(compression: str) -> None:
    records = [SimpleRecord(NOW, b"k", bytes(range(256)) * 4)]
    codec = CompressionType.ZSTD if compression == "uncompressed" else CompressionType.NONE
    data = build_batch(records, compression=codec)
    batch, _ = validate(data, compression_type=compression)

    with pytest.raises(MessageTooLarge, match=f"is {batch.size} bytes .* size of {batch.size - 1}"):
        validate(data, compression_type=compression, max_message_bytes=batch.size - 1)
    validate(data, compression_type=compression, max_message_bytes=batch.size)


# What Kafka's builder refuses, if a batch has to be rebuilt.


@pytest.mark.parametrize("timestamps", [[NOW, -7], [-7, NOW], [-2]])
@pytest.mark.parametrize("base", [0, NOW])
def test_negative_timestamps_cannot_be_rebuilt(timestamps: list[int], base: int) -> None:
    records = [Record(at, timestamp, b"k", b"v") for at, timestamp in enumerate(timestamps)]
    payload = encode_records(records, 0, base)
    data = sealed(payload, len(records), timestamp=NOW, base_timestamp=base)

    validate(data)
    with pytest.raises(UnknownServerError, match="Invalid negative timestamp"):
        validate(data, compression_type="gzip")


def test_records_without_timestamps_can_be_rebuilt() -> None:
    batch, _ = validate(build_batch([SimpleRecord(-1, b"k", b"v")]), compression_type="gzip")

    assert -1 == batch.max_timestamp


@pytest.mark.parametrize(
    ("producer", "reason"),
    [
        ({"producer_id": 9, "producer_epoch": -1, "base_sequence": 0}, "producer epoch"),
        ({"is_transactional": True}, "without a valid producer ID"),
        ({"producer_id": -2, "producer_epoch": 0, "base_sequence": -1}, "sequence number"),
    ],
)
def test_invalid_producer_fields_cannot_be_rebuilt(producer: dict[str, Any], reason: str) -> None:
    data = build_batch(RECORDS, **producer)

    validate(data)
    with pytest.raises(UnknownServerError, match=reason):
        validate(data, compression_type="gzip")


def test_rebuilt_batch_has_no_delete_horizon() -> None:
    data = build_batch(RECORDS, delete_horizon_ms=NOW + 77)

    batch, _ = validate(data)
    assert NOW + 77 == batch.delete_horizon_ms
    batch, _ = validate(data, compression_type="gzip")
    assert None is batch.delete_horizon_ms
    assert NOW + 5 == batch.base_timestamp
    assert simple(batch) == RECORDS


def test_rebuilt_batch_with_log_append_time_keeps_that_time() -> None:
    data = build_batch(RECORDS, log_append_time=NOW + 9)

    batch, info = validate(data, compression_type="gzip")

    assert TimestampType.CREATE_TIME is batch.timestamp_type
    assert [NOW + 9] * 3 == [record.timestamp for record in batch.records()]
    assert NOW + 9 == info.max_timestamp == batch.base_timestamp


SIMPLE_RECORDS = st.builds(
    SimpleRecord,
    st.integers(0, NOW),
    st.none() | st.binary(max_size=9),
    st.none() | st.binary(max_size=300),
    st.lists(st.builds(Header, st.text(max_size=3), st.none() | st.binary(max_size=3))).map(tuple),
)


@given(
    records=st.lists(SIMPLE_RECORDS, min_size=1, max_size=20),
    source=st.sampled_from(CompressionType),
    target=st.sampled_from([None, *CompressionType]),
    offset=st.integers(0, 2**62),
)
def test_rebuild_preserves_records(
    records: list[SimpleRecord],
    source: CompressionType,
    target: CompressionType | None,
    offset: int,
) -> None:
    producer: dict[str, Any] = {"producer_id": 5, "producer_epoch": 2, "base_sequence": 9}
    data = build_batch(records, compression=source, **producer)

    batch, info = validate(
        data, offset=offset, compression_type="producer" if target is None else name_of(target)
    )

    last = offset + len(records) - 1
    assert (offset, last, last) == (batch.base_offset, batch.last_offset, info.last_offset)
    assert records == simple(batch)
    assert list(range(offset, last + 1)) == [record.offset for record in batch.records()]
    assert producer == {name: getattr(batch, name) for name in producer}
    assert (source if target is None else target) is batch.compression
    if batch.compression is CompressionType.NONE:
        assert batch.data == build_batch(
            records, base_offset=offset, partition_leader_epoch=7, **producer
        )
    assert max(record.timestamp for record in records) == batch.max_timestamp
