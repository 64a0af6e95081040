"""
Offset commits: requests, and the records that coordinators write for them.
"""

from __future__ import annotations

from typing import Unpack

from barnabas.coordination.groups.records import OffsetRecord, encode_record
from barnabas.protocol.internal_topics.group_records import OffsetCommitValue
from barnabas.protocol.records.batch import BatchOptions, build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.support.group_requests import commit_request
from tests.support.server import TestBroker


async def commit(broker: TestBroker, group_id: str, topic: str, *offsets: int) -> None:
    request = commit_request(group_id, topic, dict(enumerate(offsets)), metadata=None)
    async with await broker.client() as client:
        answer = await client.ask(request, 7)
    assert {0} == {each.error_code for each in answer.topics[0].partitions}


def commit_batch(
    group_id: str, topic: str, offset: int, time_ms: int, **options: Unpack[BatchOptions]
) -> bytearray:
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=time_ms)
    key, data = encode_record(OffsetRecord(group_id, topic, 0, value))
    return build_batch([SimpleRecord(time_ms, key, data)], **options)
