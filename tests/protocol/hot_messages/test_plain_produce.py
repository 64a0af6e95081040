"""
Produce of the plain form is read and answered as the general codec does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.headers import response_header
from barnabas.protocol.hot_messages.plain_produce import (
    FIRST_TOPIC_ID_VERSION,
    PlainProduce,
    ProducedBatch,
    ProducedTopic,
    plain_produce_answer,
    read_plain_produce,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

HEAD = b"header"

Found: TypeAlias = "tuple[int, int, list[tuple[bytes, list[tuple[int, bytes]]]]]"
"""Acks, timeout, and for each topic its index and records."""

int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
versions = st.sampled_from(ProduceRequest.api.versions)
names = st.text(max_size=300)
contents = st.lists(
    st.tuples(
        names,
        st.lists(st.tuples(int32s, st.binary(max_size=500)), min_size=1, max_size=3)
        | st.lists(st.tuples(int32s, st.binary(max_size=2)), min_size=126, max_size=130),
    ),
    min_size=1,
    max_size=3,
)


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b".")[:16])


def topic_bytes(version: int, name: str) -> bytes:
    """
    What names the topic in that version.
    """
    return topic_id(name).bytes if version >= FIRST_TOPIC_ID_VERSION else name.encode()


def plain_request(
    topics: Sequence[tuple[str, Sequence[tuple[int, bytes | None]]]], acks: int = 1
) -> ProduceRequest:
    """
    A request of the plain form, unless records are None.
    """
    return ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=topic_id(name),
                partition_data=[
                    PartitionProduceData(index=index, records=records) for index, records in batches
                ],
            )
            for name, batches in topics
        ],
    )


def found_in(request: PlainProduce | None) -> Found | None:
    if request is None:
        return None
    topics = [
        (topic.topic, [(batch.index, bytes(batch.records)) for batch in topic.batches])
        for topic in request.topics
    ]
    return request.acks, request.timeout_ms, topics


def read(request: ProduceRequest, version: int) -> Found | None:
    frame = memoryview(HEAD + encode(request, version))
    return found_in(read_plain_produce(frame, len(HEAD), version))


@given(versions, contents, int16s)
def test_a_request_of_the_plain_form_is_read_as_the_codec_reads_it(
    version: int, topics: list[tuple[str, list[tuple[int, bytes]]]], acks: int
) -> None:
    found = read(plain_request(topics, acks), version)

    expected = [(topic_bytes(version, name), batches) for name, batches in topics]
    assert (acks, 30_000, expected) == found


@pytest.mark.parametrize("version", ProduceRequest.api.versions)
def test_requests_of_another_form_are_left_to_the_codec(version: int) -> None:
    transactional = plain_request([("t", [(0, b"r")])])
    transactional.transactional_id = ""

    assert read(plain_request([("t", [(0, b"r")])]), version) is not None
    assert read(transactional, version) is None
    assert read(plain_request([]), version) is None
    assert read(plain_request([("t", [])]), version) is None
    assert read(plain_request([("t", [(0, b"r")]), ("u", [])]), version) is None
    assert read(plain_request([("t", [(0, b"r"), (1, None)])]), version) is None


@given(versions, contents, st.data())
def test_what_is_read_of_damaged_requests_is_what_the_codec_reads_or_nothing(
    version: int, topics: list[tuple[str, list[tuple[int, bytes]]]], data: st.DataObject
) -> None:
    body = bytearray(encode(plain_request(topics), version))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))] + data.draw(st.binary(max_size=3))

    found = found_in(read_plain_produce(memoryview(body), 0, version))

    if found is not None:
        request = decode(ProduceRequest, version, body)
        assert request.transactional_id is None
        assert (request.acks, request.timeout_ms) == found[:2]
        is_id = version >= FIRST_TOPIC_ID_VERSION
        for topic, (name, batches) in zip(request.topic_data, found[2], strict=True):
            assert name.decode(errors="replace") == topic.name or is_id
            assert name == topic.topic_id.bytes or not is_id
            assert batches == [(one.index, one.records) for one in topic.partition_data]


@given(
    versions,
    int32s,
    st.lists(
        st.tuples(
            names,
            st.lists(st.tuples(int32s, int64s, int64s, int64s), min_size=1, max_size=3)
            | st.lists(st.tuples(int32s, int64s, int64s, int64s), min_size=126, max_size=130),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_an_answer_is_written_as_the_codec_writes_it(
    version: int,
    correlation_id: int,
    topics: list[tuple[str, list[tuple[int, int, int, int]]]],
) -> None:
    request = PlainProduce(1, 0)
    responses = []
    for name, appended in topics:
        topic = ProducedTopic(topic_bytes(version, name))
        response = TopicProduceResponse(name=name, topic_id=topic_id(name), partition_responses=[])
        for index, base_offset, time_ms, start_offset in appended:
            batch = ProducedBatch(index, memoryview(b""))
            batch.base_offset = base_offset
            batch.log_append_time_ms = time_ms
            batch.log_start_offset = start_offset
            topic.batches.append(batch)
            response.partition_responses.append(
                PartitionProduceResponse(
                    index=index,
                    error_code=0,
                    base_offset=base_offset,
                    log_append_time_ms=time_ms,
                    log_start_offset=start_offset,
                )
            )
        request.topics.append(topic)
        responses.append(response)
    encoded = response_header(ProduceRequest.api.key, version, correlation_id) + encode(
        ProduceResponse(responses=responses), version
    )

    frame = plain_produce_answer(version, correlation_id, request)

    assert len(encoded).to_bytes(4) + encoded == frame
