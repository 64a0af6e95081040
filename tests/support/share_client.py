"""
A client of share groups at the level of the wire, without a membership.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Self
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    write_share_group_state,
)
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.uuids import uuid_text
from tests.support.server import START_MS
from tests.support.topic_requests import creatable
from tests.support.wire_client import WireClient

Acknowledged = tuple[int, int, Sequence[int]]
"""
The first and the last offset, and the types.
"""
Batch = tuple[int, int, int, int]
"""
The first and the last offset, the state and the count of deliveries.
"""
PATIENCE_S = 60


class Member:
    """
    A member of a group, and the epoch of its session.
    """

    def __init__(self, group_id: str | None, member_id: str | None = "m") -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = -1

    def next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch


class ShareClient:
    """
    A connection, and a topic.
    """

    def __init__(self, client: WireClient, topic: str, topic_id: UUID) -> None:
        self.client = client
        self.topic = topic
        self.topic_id = topic_id

    @classmethod
    async def of(cls, port: int, topic: str, partitions: int = 1) -> Self:
        """
        Connect, and create the topic if it is not there.
        """
        client = await WireClient.open(port)
        created = creatable(topic, partitions)
        await client.ask(CreateTopicsRequest(topics=[created], timeout_ms=30_000), 7)
        return cls(client, topic, await topic_id_of(client, topic))

    async def another(self) -> Self:
        """
        The same topic over another connection.
        """
        _, port = self.client.peer
        return type(self)(await WireClient.open(port), self.topic, self.topic_id)

    async def close(self) -> None:
        await self.client.close()

    async def produce(self, *batches: Sequence[bytes], partition: int = 0) -> None:
        """
        Append batches, each of these values.
        """
        for values in batches:
            records = build_batch([SimpleRecord(START_MS, None, value) for value in values])
            await self.produce_bytes(records, partition)

    async def produce_bytes(self, records: bytes | bytearray, partition: int = 0) -> None:
        data = PartitionProduceData(index=partition, records=records)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )
        answer = await self.client.ask(request, 9)
        assert 0 == answer.responses[0].partition_responses[0].error_code

    # Fetches and acknowledgements

    async def share_fetch(
        self,
        member: Member,
        acknowledged: Sequence[Acknowledged] = (),
        *,
        partitions: Sequence[int] = (0,),
        forgotten: Sequence[int] = (),
        epoch: int | None = None,
        version: int = 2,
        **values: Any,
    ) -> Any:
        """
        One request in the session of a member, and its answer.
        """
        await self.send_share_fetch(
            member,
            acknowledged,
            partitions=partitions,
            forgotten=forgotten,
            epoch=epoch,
            version=version,
            **values,
        )
        return await self.client.receive()

    async def send_share_fetch(
        self,
        member: Member,
        acknowledged: Sequence[Acknowledged] = (),
        *,
        partitions: Sequence[int] = (0,),
        forgotten: Sequence[int] = (),
        epoch: int | None = None,
        version: int = 2,
        **values: Any,
    ) -> None:
        given = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            **values,
        }
        topics = [
            share_fetch.FetchTopic(
                topic_id=self.topic_id,
                partitions=[
                    share_fetch.FetchPartition(
                        partition_index=index,
                        acknowledgement_batches=[
                            share_fetch.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=[*types]
                            )
                            for first, last, types in acknowledged
                        ],
                    )
                    for index in partitions
                ],
            )
        ]
        request = share_fetch.ShareFetchRequest(
            group_id=member.group_id,
            member_id=member.member_id,
            share_session_epoch=member.next_epoch() if epoch is None else epoch,
            topics=topics if partitions else [],
            forgotten_topics_data=[
                share_fetch.ForgottenTopic(topic_id=self.topic_id, partitions=[*forgotten])
            ]
            if forgotten
            else [],
            **given,
        )
        self.client.send(request, version=version)

    async def share_acknowledge(
        self, member: Member, acknowledged: Sequence[Acknowledged], **options: Any
    ) -> Any:
        """
        One request in the session of a member, and its answer.
        """
        self.send_share_acknowledge(member, acknowledged, **options)
        return await self.client.receive()

    def send_share_acknowledge(
        self,
        member: Member,
        acknowledged: Sequence[Acknowledged],
        *,
        partition: int = 0,
        epoch: int | None = None,
        is_renew_ack: bool = False,
        version: int = 2,
    ) -> None:
        batches = [
            share_acknowledge.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=[*types]
            )
            for first, last, types in acknowledged
        ]
        data = share_acknowledge.AcknowledgePartition(
            partition_index=partition, acknowledgement_batches=batches
        )
        request = share_acknowledge.ShareAcknowledgeRequest(
            group_id=member.group_id,
            member_id=member.member_id,
            share_session_epoch=member.next_epoch() if epoch is None else epoch,
            is_renew_ack=is_renew_ack,
            topics=[share_acknowledge.AcknowledgeTopic(topic_id=self.topic_id, partitions=[data])],
        )
        self.client.send(request, version=version)

    # The share coordinator

    async def find_coordinator(self, group: str, partition: int = 0) -> Any:
        key = f"{group}:{uuid_text(self.topic_id)}:{partition}"
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
        answer = await self.client.ask(request, 6)
        return answer.coordinators[0]

    async def initialize(
        self, group: str, start_offset: int = -1, *, partition: int = 0, state_epoch: int = 0
    ) -> Any:
        messages = initialize_share_group_state
        data = messages.PartitionData(
            partition=partition, state_epoch=state_epoch, start_offset=start_offset
        )
        request = messages.InitializeShareGroupStateRequest(
            group_id=group,
            topics=[messages.InitializeStateData(topic_id=self.topic_id, partitions=[data])],
        )
        return _only(await self.client.ask(request, 0))

    async def read(self, group: str, leader_epoch: int = 0, *, partition: int = 0) -> Any:
        messages = read_share_group_state
        data = messages.PartitionData(partition=partition, leader_epoch=leader_epoch)
        request = messages.ReadShareGroupStateRequest(
            group_id=group,
            topics=[messages.ReadStateData(topic_id=self.topic_id, partitions=[data])],
        )
        return _only(await self.client.ask(request, 0))

    async def write(
        self, group: str, batches: Sequence[Batch], *, partition: int = 0, **values: int
    ) -> Any:
        messages = write_share_group_state
        given = {
            "state_epoch": 0,
            "leader_epoch": 0,
            "start_offset": -1,
            "delivery_complete_count": 0,
            **values,
        }
        data = messages.PartitionData(
            partition=partition,
            state_batches=[
                messages.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in batches
            ],
            **given,
        )
        request = messages.WriteShareGroupStateRequest(
            group_id=group,
            topics=[messages.WriteStateData(topic_id=self.topic_id, partitions=[data])],
        )
        return _only(await self.client.ask(request, 1))

    async def delete(self, group: str, *, partition: int = 0) -> Any:
        messages = delete_share_group_state
        request = messages.DeleteShareGroupStateRequest(
            group_id=group,
            topics=[
                messages.DeleteStateData(
                    topic_id=self.topic_id, partitions=[messages.PartitionData(partition=partition)]
                )
            ],
        )
        return _only(await self.client.ask(request, 0))

    async def summary(self, group: str, *, partition: int = 0) -> Any:
        messages = read_share_group_state_summary
        data = messages.PartitionData(partition=partition, leader_epoch=0)
        request = messages.ReadShareGroupStateSummaryRequest(
            group_id=group,
            topics=[messages.ReadStateSummaryData(topic_id=self.topic_id, partitions=[data])],
        )
        return _only(await self.client.ask(request, 1))


def _only(answer: Any) -> Any:
    """
    The result for the partition that was asked for.
    """
    (topic,) = answer.results
    (result,) = topic.partitions
    return result


async def topic_id_of(client: WireClient, topic: str) -> UUID:
    """
    The id of a topic that exists.

    Apache Kafka answers CreateTopics when its controller has the topic. Its broker may know the
    topic a moment later only.

    Raises:
        TimeoutError: the broker does not know the topic within ``PATIENCE_S`` seconds.
    """
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await client.ask(request, 12)
            found: UUID = answer.topics[0].topic_id
            if found != ZERO_UUID:
                return found
            await asyncio.sleep(0.05)
