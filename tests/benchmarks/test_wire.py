from __future__ import annotations

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from benchmarks import wire

TOPIC = "a-topic"
HEAD = bytes(4 + 4)  # size and correlation id


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


def test_records_begin_at_the_offset_of_the_fetch_response() -> None:
    partition = PartitionData(
        partition_index=0, error_code=0, high_watermark=1, aborted_transactions=None, records=b"hi"
    )
    topic = FetchableTopicResponse(topic=TOPIC, partitions=[partition])

    response = HEAD + encode(FetchResponse(responses=[topic]), 4)

    assert b"hi" == response[wire.following_fetch(TOPIC, 0).records_at :]
