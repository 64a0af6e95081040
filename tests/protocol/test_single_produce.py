"""
Produce of one batch to one partition is read and answered as the general codec does.
"""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec import decode, encode
from barnabas.protocol.headers import response_header
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.protocol.single_produce import (
    FIRST_TOPIC_ID_VERSION,
    SingleProduce,
    read_single_produce,
    single_produce_answer,
)

TOPIC_ID = UUID(int=0x0123_4567_89AB_CDEF_8123_4567_89AB_CDEF)
HEAD = b"header"

names = st.text(max_size=300)
int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
versions = st.sampled_from(ProduceRequest.api.versions)


def topic_bytes(version: int, name: str) -> bytes:
    """
    What names the topic in that version.
    """
    return TOPIC_ID.bytes if version >= FIRST_TOPIC_ID_VERSION else name.encode()


def single_request(
    name: str = "t", index: int = 0, records: bytes | None = b"r", acks: int = 1
) -> ProduceRequest:
    """
    A request of the plain form.
    """
    data = PartitionProduceData(index=index, records=records)
    topic = TopicProduceData(name=name, topic_id=TOPIC_ID, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic])


def read(request: ProduceRequest, version: int) -> SingleProduce | None:
    frame = memoryview(HEAD + encode(request, version))
    return read_single_produce(frame, len(HEAD), version)


@given(versions, names, int32s, st.binary(max_size=20_000), int16s)
def test_a_request_of_the_plain_form_is_read_as_the_codec_reads_it(
    version: int, name: str, index: int, records: bytes, acks: int
) -> None:
    found = read(single_request(name, index, records, acks), version)

    assert (
        SingleProduce(acks, 30_000, topic_bytes(version, name), index, memoryview(records)) == found
    )


@pytest.mark.parametrize("version", ProduceRequest.api.versions)
def test_requests_of_another_form_are_left_to_the_codec(version: int) -> None:
    transactional, two_topics, two_partitions, no_topic, no_partition = (
        single_request() for _ in range(5)
    )
    transactional.transactional_id = ""
    two_topics.topic_data *= 2
    two_partitions.topic_data[0].partition_data *= 2
    no_topic.topic_data = []
    no_partition.topic_data[0].partition_data = []

    assert read(transactional, version) is None
    assert read(two_topics, version) is None
    assert read(two_partitions, version) is None
    assert read(no_topic, version) is None
    assert read(no_partition, version) is None
    assert read(single_request(records=None), version) is None


@given(versions, names, st.binary(max_size=300), st.data())
def test_what_is_read_of_damaged_requests_is_what_the_codec_reads_or_nothing(
    version: int, name: str, records: bytes, data: st.DataObject
) -> None:
    body = bytearray(encode(single_request(name, 1, records), version))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))] + data.draw(st.binary(max_size=3))

    found = read_single_produce(memoryview(body), 0, version)

    if found is not None:
        request = decode(ProduceRequest, version, body)
        (topic,) = request.topic_data
        (partition,) = topic.partition_data
        is_id = version >= FIRST_TOPIC_ID_VERSION
        assert found.topic.decode(errors="replace") == topic.name or is_id
        assert found.topic == topic.topic_id.bytes or not is_id
        assert request.transactional_id is None
        assert (request.acks, request.timeout_ms) == found[:2]
        assert (partition.index, partition.records) == found[3:]


@given(versions, names, int32s, st.tuples(int32s, int64s, int64s, int64s))
def test_an_answer_is_written_as_the_codec_writes_it(
    version: int, name: str, correlation_id: int, numbers: tuple[int, int, int, int]
) -> None:
    index, base_offset, time_ms, start_offset = numbers
    partition = PartitionProduceResponse(
        index=index,
        error_code=0,
        base_offset=base_offset,
        log_append_time_ms=time_ms,
        log_start_offset=start_offset,
    )
    topic = TopicProduceResponse(name=name, topic_id=TOPIC_ID, partition_responses=[partition])
    response = response_header(ProduceRequest.api.key, version, correlation_id) + encode(
        ProduceResponse(responses=[topic]), version
    )

    frame = single_produce_answer(
        version,
        correlation_id,
        topic_bytes(version, name),
        index,
        base_offset=base_offset,
        log_append_time_ms=time_ms,
        log_start_offset=start_offset,
    )

    assert len(response).to_bytes(4) + response == frame
