from __future__ import annotations

import struct
from random import Random
from typing import Any, Final

import pytest

from barnabas.protocol.codec.codec import (
    ANY_NUMBER,
    HOT_MESSAGES,
    decode,
    decode_from,
    encode,
    encode_in_steps,
    encode_parts,
)
from barnabas.protocol.codec.primitives import LeftToGeneralCodec
from barnabas.protocol.codec.schema import Message, fields
from barnabas.protocol.codec.struct_of import StructOf
from barnabas.protocol.codec.wire_types import Reader, Writer
from barnabas.protocol.errors import DecodeError, TooManyEntries
from barnabas.protocol.hot_messages import fetch, list_offsets, produce
from barnabas.protocol.messages import REQUESTS, RESPONSES
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tests.support.messages import ended
from tests.support.random_messages import random_message

HOT: Final[dict[int, Any]] = {0: produce, 1: fetch, 2: list_offsets}
REFUSALS: Final = (LeftToGeneralCodec, DecodeError, struct.error, IndexError)
SEEDS: Final = range(150)


def name_of(value: object) -> str:
    return value.__name__ if isinstance(value, type) else f"v{value}"


every_request = pytest.mark.parametrize(
    ("cls", "version"),
    [(REQUESTS[key], version) for key in HOT for version in REQUESTS[key].api.versions],
    ids=name_of,
)
every_response = pytest.mark.parametrize(
    ("cls", "version"),
    [(RESPONSES[key], version) for key in HOT for version in RESPONSES[key].api.versions],
    ids=name_of,
)


def general_codec(cls: type[Message], version: int) -> StructOf:
    return StructOf(cls, version, flexible=cls.api.is_flexible(version))


def read_in_general(
    cls: type[Message], version: int, data: memoryview, position: int, most_entries: int
) -> tuple[Any, int]:
    reader = Reader(data, position, most_entries)
    return general_codec(cls, version).read(reader), reader.position


def test_each_hot_message_has_a_specialised_codec() -> None:
    names = {codec.__name__.rpartition(".")[2] for codec in HOT.values()}

    assert names == HOT_MESSAGES


@every_request
def test_hot_request_is_decoded_as_by_the_general_codec(cls: type[Message], version: int) -> None:
    hot = HOT[cls.api.key].read_request
    for seed in SEEDS:
        message = random_message(cls, version, Random(seed))
        data = memoryview(b"head" + encode(message, version) + b"tail")

        assert read_in_general(cls, version, data, 4, ANY_NUMBER) == hot(
            data, 4, version, ANY_NUMBER
        )
        assert (message, len(data) - 4) == decode_from(cls, version, data, 4)


@every_request
def test_damaged_hot_request_is_decoded_or_refused_as_by_the_general_codec(
    cls: type[Message], version: int
) -> None:
    hot = HOT[cls.api.key].read_request
    outcomes = {"read": 0, "refused": 0}
    for seed in SEEDS:
        random = Random(seed)
        data = bytearray(encode(random_message(cls, version, random), version))
        data[random.randrange(len(data))] = random.choice((0, 1, 2, 127, 128, 255))
        whole = memoryview(data if seed % 3 else data[: random.randrange(len(data))])
        try:
            expected = read_in_general(cls, version, whole, 0, 2000)
        except (*REFUSALS, TooManyEntries):
            outcomes["refused"] += 1
            with pytest.raises(REFUSALS):
                hot(whole, 0, version, 2000)
        else:
            outcomes["read"] += 1
            assert expected == hot(whole, 0, version, 2000)

    assert min(outcomes.values()) > 0


@every_request
def test_unknown_tagged_field_is_skipped(cls: type[Message], version: int) -> None:
    if not cls.api.is_flexible(version):
        return
    hot = HOT[cls.api.key].read_request
    compared = 0
    for seed in SEEDS:
        message = random_message(cls, version, Random(seed))
        tagged = [field for field in fields(cls) if field.tag is not None]
        if any(getattr(message, field.name) != field.default for field in tagged):
            continue
        data = bytearray(encode(message, version))
        data[-1:] = b"\x01\x64\x03abc"
        compared += 1

        assert (message, len(data)) == hot(memoryview(data), 0, version, ANY_NUMBER)

    assert compared


@every_response
def test_hot_response_is_encoded_as_by_the_general_codec(cls: type[Message], version: int) -> None:
    hot = HOT[cls.api.key].write_response
    for seed in SEEDS:
        message = random_message(cls, version, Random(seed))
        writer = Writer(ANY_NUMBER)
        general_codec(cls, version).write(writer, message)
        expected = b"".join(writer.finished())

        assert expected == b"".join(hot(message, version, ANY_NUMBER))
        assert expected == encode(message, version)


def produce_request(partitions: int) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=b"records") for index in range(partitions)]
    return ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )


def test_records_are_not_copied() -> None:
    frame = bytearray(encode(produce_request(1), 9))
    records = b"records of a file"
    data = PartitionData(partition_index=0, error_code=0, high_watermark=1, records=records)
    topic = FetchableTopicResponse(topic="t", partitions=[data])

    request = decode(ProduceRequest, 9, frame)
    parts = encode_parts(FetchResponse(responses=[topic]), 12)
    read = request.topic_data[0].partition_data[0].records
    assert isinstance(read, memoryview)
    frame[frame.index(b"records")] = ord("R")

    assert b"Records" == bytes(read)
    assert any(part is records for part in parts)


def test_fetch_response_without_records_is_one_buffer() -> None:
    """
    The answer to a consumer at the log end needs one write.
    """
    data = PartitionData(partition_index=0, error_code=0, high_watermark=1, records=b"")
    topic = FetchableTopicResponse(topic="t", partitions=[data, data])

    assert 1 == len(encode_parts(FetchResponse(responses=[topic]), 12))


def test_message_with_too_many_entries_is_not_reported_as_malformed() -> None:
    """
    It has to be decoded in steps.
    """
    partitions = [
        PartitionProduceResponse(index=index, error_code=0, base_offset=0) for index in range(9)
    ]
    response = ProduceResponse(
        responses=[TopicProduceResponse(name="t", partition_responses=partitions)]
    )
    frame = encode(produce_request(9), 9)

    with pytest.raises(TooManyEntries):
        decode_from(ProduceRequest, 9, frame, 0, 9)
    with pytest.raises(TooManyEntries):
        encode_parts(response, 9, 9)
    assert produce_request(9) == decode_from(ProduceRequest, 9, frame, 0, 10)[0]
    assert encode(response, 9) == b"".join(encode_parts(response, 9, 10))


@pytest.mark.parametrize("version", ProduceResponse.api.versions)
def test_appended_batch_is_encoded_as_its_full_produce_response(version: int) -> None:
    place = produce.AppendedResponse(3, 40, 50, 7)
    lost = produce.AppendedResponse(4, 41, -1, 7)
    lost.error_code, lost.base_offset = 7, -1
    wholes = [
        PartitionProduceResponse(
            index=3, error_code=0, base_offset=40, log_append_time_ms=50, log_start_offset=7
        ),
        PartitionProduceResponse(index=4, error_code=7, base_offset=-1, log_start_offset=7),
    ]
    whole = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=wholes)])
    topic = produce.topic_response(TopicProduceData(name="t", partition_data=[]), [place, lost])
    response = produce.produce_response([topic])

    assert encode(whole, version) == encode(response, version)
    assert encode(whole, version) == b"".join(ended(encode_in_steps(response, version)))


@pytest.mark.parametrize(
    ("message", "version", "wrong"),
    [
        (ListOffsetsRequest(replica_id=-1, topics=[]), 12, "no version 12"),
        (FetchResponse(responses=[], error_code=2**15), 12, "FetchResponse version 12"),
        (FetchResponse(responses=None), 12, "FetchResponse version 12"),  # type: ignore[arg-type]
    ],
)
def test_encoding_error_is_that_of_the_general_codec(
    message: Any, version: int, wrong: str
) -> None:
    with pytest.raises(ValueError, match=wrong):
        encode(message, version)


def test_decoding_error_is_that_of_the_general_codec() -> None:
    topic = ListOffsetsTopic(
        name="orders", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
    )
    data = bytearray(encode(ListOffsetsRequest(replica_id=-1, topics=[topic]), 5))
    data[9:11] = b"\x7f\xff"  # the length of the name

    with pytest.raises(DecodeError, match=r"ListOffsetsTopic\.name has 32767 bytes"):
        decode(ListOffsetsRequest, 5, data)
