"""
Fetch of the plain form is read and answered as the general codec does.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.headers import response_header
from barnabas.protocol.hot_messages.plain_fetch import (
    FIRST_REPLICA_STATE_VERSION,
    FIRST_TOPIC_ID_VERSION,
    PlainFetch,
    plain_fetch_answer,
    read_plain_fetch,
)
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

HEAD = b"header"
TOPIC = UUID(int=7)
VERSIONS = [v for v in FetchRequest.api.versions if v >= FIRST_TOPIC_ID_VERSION]

int8s = st.integers(-(2**7), 2**7 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
versions = st.sampled_from(VERSIONS)
racks = st.text(st.characters(codec="ascii"), max_size=126)
partitions = st.builds(
    FetchPartition,
    partition=int32s,
    current_leader_epoch=int32s,
    fetch_offset=int64s,
    last_fetched_epoch=int32s,
    log_start_offset=int64s,
    partition_max_bytes=int32s,
)


def one(**options: Any) -> FetchPartition:
    given = {"partition": 0, "fetch_offset": 5, "partition_max_bytes": 100}
    return FetchPartition(**(given | options))


def request_of(*wanted: FetchPartition, topic_id: UUID = TOPIC, **options: Any) -> FetchRequest:
    given: dict[str, Any] = {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "topics": [FetchTopic(topic_id=topic_id, partitions=list(wanted))],
    }
    return FetchRequest(**(given | options))


requests = st.builds(
    request_of,
    partitions,
    topic_id=st.uuids(),
    max_wait_ms=int32s,
    min_bytes=int32s,
    max_bytes=int32s,
    isolation_level=int8s,
    session_id=int32s,
    session_epoch=int32s,
    rack_id=racks,
)
ONE = one()


def read(body: bytes, version: int) -> PlainFetch | None:
    return read_plain_fetch(memoryview(HEAD + body), len(HEAD), version)


def is_plain(request: FetchRequest, version: int) -> bool:
    return read(encode(request, version), version) is not None


def is_as_decoded(plain: PlainFetch, request: FetchRequest) -> bool:
    """
    Whether *plain* has all of *request* that makes a difference for a broker.
    """
    (topic,) = request.topics
    return (
        (plain.min_bytes, plain.max_bytes, plain.isolation_level)
        == (request.min_bytes, request.max_bytes, request.isolation_level)
        and (plain.session_id, plain.session_epoch) == (request.session_id, request.session_epoch)
        and plain.topic_id == topic.topic_id.bytes
        and [plain.partition] == topic.partitions
    )


@given(versions, requests)
def test_a_request_of_the_plain_form_is_read_as_by_the_codec(
    version: int, request: FetchRequest
) -> None:
    plain = read(encode(request, version), version)

    assert plain is not None
    assert is_as_decoded(plain, request)


@given(
    versions,
    requests,
    int32s,
    st.tuples(int64s, int64s, int64s),
    st.binary(min_size=1, max_size=20_000),
)
def test_it_is_answered_as_by_the_codec(
    version: int,
    request: FetchRequest,
    correlation_id: int,
    offsets: tuple[int, int, int],
    records: bytes,
) -> None:
    high_watermark, last_stable_offset, log_start_offset = offsets
    plain = read(encode(request, version), version)
    assert plain is not None
    wanted = request.topics[0].partitions[0]
    response = FetchResponse(
        session_id=request.session_id,
        responses=[
            FetchableTopicResponse(
                topic_id=request.topics[0].topic_id,
                partitions=[
                    PartitionData(
                        partition_index=wanted.partition,
                        error_code=0,
                        high_watermark=high_watermark,
                        last_stable_offset=last_stable_offset,
                        log_start_offset=log_start_offset,
                        aborted_transactions=[] if request.isolation_level == 1 else None,
                        records=records,
                    )
                ],
            )
        ],
    )
    encoded = response_header(FetchRequest.api.key, version, correlation_id) + encode(
        response, version
    )

    head, tail = plain_fetch_answer(
        correlation_id,
        plain,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        records_bytes=len(records),
    )

    assert len(encoded).to_bytes(4) + encoded == head + records + tail


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_only_who_reads_committed_records_is_told_that_none_was_aborted(
    isolation_level: int,
) -> None:
    request = request_of(ONE, isolation_level=isolation_level)
    plain = read(encode(request, 17), 17)
    assert plain is not None

    head, tail = plain_fetch_answer(
        1, plain, high_watermark=9, last_stable_offset=9, log_start_offset=0, records_bytes=3
    )

    (topic,) = decode(FetchResponse, 17, (head + b"abc" + tail)[9:]).responses
    assert ([] if isolation_level else None) == topic.partitions[0].aborted_transactions


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_of_another_form_are_left_to_the_codec(version: int) -> None:
    follower = (
        {"replica_id": 1}
        if version < FIRST_REPLICA_STATE_VERSION
        else {"replica_state": ReplicaState(replica_id=1)}
    )
    gone = [ForgottenTopic(topic_id=TOPIC, partitions=[1])]
    another = FetchTopic(topic_id=UUID(int=8), partitions=[ONE])
    two = request_of(ONE)
    two.topics.append(another)

    assert is_plain(request_of(ONE), version)
    assert is_plain(request_of(ONE, rack_id="r" * 126), version)
    assert not is_plain(request_of(ONE, rack_id="r" * 127), version)
    assert not is_plain(request_of(), version)
    assert not is_plain(request_of(ONE, topics=[]), version)
    assert not is_plain(request_of(ONE, ONE), version)
    assert not is_plain(two, version)
    assert not is_plain(request_of(ONE, forgotten_topics_data=gone), version)
    assert not is_plain(request_of(ONE, **follower), version)
    assert not is_plain(request_of(ONE, cluster_id="c"), version)


def test_what_only_brokers_that_follow_say_of_a_partition_is_left_to_the_codec() -> None:
    assert not is_plain(request_of(one(replica_directory_id=UUID(int=1))), 17)
    assert not is_plain(request_of(one(high_watermark=1)), 18)


@pytest.mark.parametrize(
    "at",
    [21, 38, -5, -4, -3, -1],
    ids=["topics", "partitions", "partition", "topic", "forgotten", "request"],
)
def test_each_count_is_looked_at(at: int) -> None:
    body = bytearray(encode(request_of(ONE), 17))
    body[at] ^= 1

    assert read(bytes(body), 17) is None


def test_a_length_of_two_bytes_is_left_to_the_codec() -> None:
    head, end = encode(request_of(ONE), 17)[:-2], bytes(1)

    assert read(head + b"\x7f" + b"r" * 126 + end, 17) is not None
    assert read(head + b"\x80" + b"r" * 127 + end, 17) is None


@pytest.mark.parametrize("version", range(FetchRequest.api.versions[0], FIRST_TOPIC_ID_VERSION))
def test_older_versions_are_left_to_the_codec(version: int) -> None:
    for name in ("t", "long as ids are"):
        request = request_of(ONE, topics=[FetchTopic(topic=name, partitions=[ONE])])

        assert not is_plain(request, version)


@given(versions, requests, st.data())
def test_damaged_requests_are_read_as_by_the_codec_or_left_to_it(
    version: int, request: FetchRequest, data: st.DataObject
) -> None:
    body = bytearray(encode(request, version))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))] + data.draw(st.binary(max_size=3))

    plain = read(bytes(body), version)

    if plain is not None:
        assert is_as_decoded(plain, decode(FetchRequest, version, body))


@pytest.mark.parametrize("version", [14, 17])
def test_a_request_that_ends_early_is_left_to_the_codec(version: int) -> None:
    body = encode(request_of(ONE, rack_id="here"), version)

    assert not any(read(body[:end], version) for end in range(len(body)))
