"""
A client of share groups at the level of the wire, without a membership.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Self
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.storage.uuids import uuid_text
from tests.support.build import api_request
from tests.support.group_requests import coordinator_request
from tests.support.server import batch, metadata_request, produce_request
from tests.support.topic_requests import create_request
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
        await client.ask(create_request(**{topic: partitions}), 7)
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
            await self.produce_bytes(batch(*values), partition)

    async def produce_bytes(self, records: bytes | bytearray, partition: int = 0) -> None:
        request = produce_request(self.topic, bytes(records), partition=partition, acks=-1)
        answer = await self.client.ask(request, 9)
        assert 0 == answer.responses[0].partition_responses[0].error_code

    # Fetches and acknowledgements

    async def share_fetch(
        self, member: Member, acknowledged: Sequence[Acknowledged] = (), **options: Any
    ) -> Any:
        """
        One request in the session of a member, and its answer.
        """
        self.send_share_fetch(member, acknowledged, **options)
        return await self.client.receive()

    def send_share_fetch(
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
        given: dict[str, Any] = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            **values,
        }
        asked = [
            {"partition_index": index, "acknowledgement_batches": _batches(acknowledged)}
            for index in partitions
        ]
        request = api_request(
            "share_fetch",
            group_id=member.group_id,
            member_id=member.member_id,
            share_session_epoch=member.next_epoch() if epoch is None else epoch,
            topics=self._topics(*asked) if partitions else [],
            forgotten_topics_data=self._topics(*forgotten) if forgotten else [],
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
        batches = _batches(acknowledged)
        request = api_request(
            "share_acknowledge",
            group_id=member.group_id,
            member_id=member.member_id,
            share_session_epoch=member.next_epoch() if epoch is None else epoch,
            is_renew_ack=is_renew_ack,
            topics=self._topics({"partition_index": partition, "acknowledgement_batches": batches}),
        )
        self.client.send(request, version=version)

    def _topics(self, *partitions: Any) -> list[dict[str, Any]]:
        return [{"topic_id": self.topic_id, "partitions": partitions}]

    # The share coordinator

    async def find_coordinator(self, group: str, partition: int = 0) -> Any:
        key = f"{group}:{uuid_text(self.topic_id)}:{partition}"
        answer = await self.client.ask(coordinator_request(key, key_type=2), 6)
        return answer.coordinators[0]

    async def initialize(
        self, group: str, start_offset: int = -1, *, partition: int = 0, state_epoch: int = 0
    ) -> Any:
        return await self._ask_state(
            "initialize_share_group_state",
            group,
            partition,
            state_epoch=state_epoch,
            start_offset=start_offset,
        )

    async def read(self, group: str, leader_epoch: int = 0, *, partition: int = 0) -> Any:
        return await self._ask_state(
            "read_share_group_state", group, partition, leader_epoch=leader_epoch
        )

    async def write(
        self, group: str, batches: Sequence[Batch], *, partition: int = 0, **values: int
    ) -> Any:
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        given: dict[str, Any] = {
            "state_epoch": 0,
            "leader_epoch": 0,
            "start_offset": -1,
            "delivery_complete_count": 0,
            "state_batches": [dict(zip(names, each, strict=True)) for each in batches],
            **values,
        }
        return await self._ask_state(
            "write_share_group_state", group, partition, version=1, **given
        )

    async def delete(self, group: str, *, partition: int = 0) -> Any:
        return await self._ask_state("delete_share_group_state", group, partition)

    async def summary(self, group: str, *, partition: int = 0) -> Any:
        return await self._ask_state(
            "read_share_group_state_summary", group, partition, version=1, leader_epoch=0
        )

    async def _ask_state(
        self, api: str, group: str, partition: int, *, version: int = 0, **fields: Any
    ) -> Any:
        """
        The result for the only partition of a request.
        """
        topics = self._topics({"partition": partition, **fields})
        answer = await self.client.ask(api_request(api, group_id=group, topics=topics), version)
        (topic,) = answer.results
        (result,) = topic.partitions
        return result


def _batches(acknowledged: Sequence[Acknowledged]) -> list[dict[str, Any]]:
    return [
        {"first_offset": first, "last_offset": last, "acknowledge_types": types}
        for first, last, types in acknowledged
    ]


async def topic_id_of(client: WireClient, topic: str) -> UUID:
    """
    The id of a topic that exists.

    Apache Kafka answers CreateTopics when its controller has the topic. Its broker may know the
    topic a moment later only.

    Raises:
        TimeoutError: the broker does not know the topic within ``PATIENCE_S`` seconds.
    """
    request = metadata_request(topic)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await client.ask(request, 12)
            found: UUID = answer.topics[0].topic_id
            if found != ZERO_UUID:
                return found
            await asyncio.sleep(0.05)
