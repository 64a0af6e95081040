from __future__ import annotations

from barnabas.protocol.codec.codec import decode_from, encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.headers import decode_request_header
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.records.batch import read_batch
from benchmarks import wire

TOPIC = "a-topic"
HEAD = bytes(4 + 4)  # size and correlation id


def decoded(frame: bytes, kind: type[Message], version: int) -> Message:
    assert len(frame) - 4 == int.from_bytes(frame[:4])
    header, position = decode_request_header(frame[4:])
    assert (kind.api.key, version) == (header.api_key, header.api_version)
    found, end = decode_from(kind, version, frame[4:], position)
    assert len(frame) - 4 == end
    return found


def test_batch_has_its_values_and_the_right_checksum() -> None:
    batch = read_batch(memoryview(wire.batch([b"one", b"two" * 100], 1234)))

    assert batch.is_valid()
    assert [b"one", b"two" * 100] == [record.value for record in batch.records()]
    assert 1234 == batch.max_timestamp


def test_produce_request_has_a_batch_for_each_partition() -> None:
    batch = wire.batch([b"value"], 1)

    frame = wire.produce_batches_request(TOPIC, {0: batch, 3: batch}, acks=-1)

    request = decoded(frame, ProduceRequest, 7)
    assert isinstance(request, ProduceRequest)
    [topic] = request.topic_data
    assert (TOPIC, -1) == (topic.name, request.acks)
    assert [(0, batch), (3, batch)] == [
        (p.index, bytes(p.records or b"")) for p in topic.partition_data
    ]


def test_error_codes_are_found_at_their_positions() -> None:
    """
    The size of a response is known without decoding it.
    """
    partitions = [
        PartitionProduceResponse(index=index, error_code=code, base_offset=7)
        for index, code in enumerate((0, 3, 87))
    ]
    topic = TopicProduceResponse(name=TOPIC, partition_responses=partitions)

    response = HEAD + encode(ProduceResponse(responses=[topic]), 7)

    assert [0, 3, 87] == [wire.produce_error(TOPIC, response, place) for place in range(3)]
    topic.partition_responses = partitions[:1]
    response = HEAD + encode(ProduceResponse(responses=[topic]), 7)
    assert wire.produce_response_size(TOPIC) == len(response)


def test_fetch_request_has_the_given_offset() -> None:
    following = wire.following_fetch(TOPIC, 5)
    frame = bytearray(following.request)
    frame[following.offset_at : following.offset_at + 8] = (2**40).to_bytes(8)

    request = decoded(bytes(frame), FetchRequest, 4)

    assert isinstance(request, FetchRequest)
    assert 2**40 == request.topics[0].partitions[0].fetch_offset
    assert 1 == request.min_bytes


def test_records_begin_at_the_offset_of_the_fetch_response() -> None:
    partition = PartitionData(
        partition_index=0, error_code=0, high_watermark=1, aborted_transactions=None, records=b"hi"
    )
    topic = FetchableTopicResponse(topic=TOPIC, partitions=[partition])

    response = HEAD + encode(FetchResponse(responses=[topic]), 4)

    assert b"hi" == response[wire.following_fetch(TOPIC, 0).records_at :]


def test_metadata_request_creates_the_topic() -> None:
    request = decoded(wire.metadata_request(TOPIC), MetadataRequest, 4)

    assert isinstance(request, MetadataRequest)
    assert request.allow_auto_topic_creation
    assert [TOPIC] == [topic.name for topic in request.topics or []]
