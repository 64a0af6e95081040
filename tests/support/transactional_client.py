"""
A transactional producer over the wire, in one protocol or the other, and its reader.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.records.batch import batches
from tests.support.group_requests import committed_request, coordinator_request
from tests.support.server import (
    PATIENCE,
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
)
from tests.support.transaction_requests import (
    add_offsets_request,
    add_partitions_request,
    commit_in_transaction_request,
    end_request,
)
from tests.support.wire_client import WireClient

ID, TOPIC, GROUP = "tx", "orders", "readers"
READ_COMMITTED = 1
FIRST, SECOND = 1, 2

VERSIONS = {
    FIRST: {"add": 3, "produce": 11, "end": 4, "commit": 4},
    SECOND: {"produce": 12, "end": 5, "commit": 5},
}


async def prepare(broker: TestBroker, partitions: int) -> None:
    """
    Make the topic of the records, and those of both coordinators.
    """
    await broker.create(TOPIC, partitions)
    async with await broker.client() as wire:
        for key_type in (0, 1):
            answer = await wire.ask(coordinator_request("any", key_type=key_type), 6)
            assert 0 == answer.coordinators[0].error_code


class Client:
    """
    A producer that says what it is told to, and a consumer of what it has committed.
    """

    def __init__(self, wire: WireClient, protocol: int) -> None:
        self.wire = wire
        self.protocol = protocol
        self.producer = ProducerIdAndEpoch(-1, -1)
        self.sequences = dict.fromkeys(range(3), 0)
        self._version = VERSIONS[protocol]

    async def init(self, timeout_ms: int = 60_000, version: int = 5, **options: Any) -> ErrorCode:
        request = InitProducerIdRequest(
            transactional_id=ID, transaction_timeout_ms=timeout_ms, **options
        )
        answer = await self.wire.ask(request, version)
        if answer.error_code == 0:
            self.producer = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
            self.sequences = dict.fromkeys(range(3), 0)
        return ErrorCode(answer.error_code)

    async def add(self, *partitions: int, topic: str = TOPIC, version: int = 3) -> list[ErrorCode]:
        request = add_partitions_request(ID, self.producer, {topic: partitions})
        answer = await self.wire.ask(request, version)
        [found] = answer.results_by_topic_v3_and_below
        return [ErrorCode(result.partition_error_code) for result in found.results_by_partition]

    async def produce(self, value: str, partition: int = 0) -> ErrorCode:
        if self.protocol == FIRST:
            await self.add(partition)
        return await self.produce_only(value, partition)

    async def produce_only(
        self, value: str, partition: int = 0, version: int | None = None
    ) -> ErrorCode:
        records = batch(
            value,
            is_transactional=True,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            base_sequence=self.sequences[partition],
        )
        request = produce_request(TOPIC, records, partition=partition, transactional_id=ID)
        answer = await self.wire.ask(request, version or self._version["produce"])
        code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        if code is ErrorCode.NONE:
            self.sequences[partition] += 1
        return code

    async def end(self, *, commit: bool, version: int | None = None) -> ErrorCode:
        request = end_request(ID, self.producer, commit=commit)
        answer = await self.wire.ask(request, version or self._version["end"])
        if answer.error_code == 0 and self.protocol == SECOND:
            self.producer = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
            self.sequences = dict.fromkeys(range(3), 0)
        return ErrorCode(answer.error_code)

    async def commit_offset(self, offset: int, *, add: bool = True) -> ErrorCode:
        if self.protocol == FIRST and add:
            answer = await self.wire.ask(add_offsets_request(ID, self.producer, GROUP), 4)
            assert 0 == answer.error_code
        request = commit_in_transaction_request(ID, self.producer, GROUP, {TOPIC: {0: offset}})
        answer = await self.wire.ask(request, self._version["commit"])
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def committed_offset(self) -> tuple[int, ErrorCode]:
        answer = await self.wire.ask(committed_request(GROUP, TOPIC, 0, require_stable=True), 8)
        [group] = answer.groups
        if group.error_code != 0:
            return -1, ErrorCode(group.error_code)
        [found] = group.topics[0].partitions
        return found.committed_offset, ErrorCode(found.error_code)

    async def fetch(self, partition: int = 0) -> Any:
        """
        What a partition has for a reader of what is committed.
        """
        request = fetch_request(
            fetch_topic(TOPIC, {partition: 0}), isolation_level=READ_COMMITTED, max_wait_ms=0
        )
        answer = await self.wire.ask(request, 12)
        [found] = answer.responses[0].partitions
        return found

    async def read(self, partition: int = 0) -> tuple[list[str], list[int]]:
        """
        The committed values of a partition, and the producers of aborted ones.
        """
        found = await self.fetch(partition)
        coming = sorted(found.aborted_transactions or [], key=lambda a: a.first_offset)
        aborted: set[int] = set()
        values = []
        for one in batches(found.records or b""):
            while coming and coming[0].first_offset <= one.last_offset:
                aborted.add(coming.pop(0).producer_id)
            if one.is_control:
                aborted.discard(one.producer_id)
            elif not (one.is_transactional and one.producer_id in aborted):
                values += [(record.value or b"").decode() for record in one.records()]
        return values, [a.producer_id for a in found.aborted_transactions or []]

    async def describe(self) -> Any:
        answer = await self.wire.ask(DescribeTransactionsRequest(transactional_ids=[ID]), 0)
        return answer.transaction_states[0]

    async def state(self) -> str:
        found = await self.describe()
        assert isinstance(found.transaction_state, str)
        return found.transaction_state

    async def wait_for(self, state: str) -> None:
        """
        Ask until the transaction is in that state: what the clock has set off takes a few turns.
        """
        found: str | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while found != state:
                    found = await self.state()
        except TimeoutError:
            raise AssertionError(f"it is {found}, not {state}") from None
