"""
What producers with a transactional id do, in the first protocol or in the second (KIP-890).

Nobody knows beforehand which producer id and epoch a broker gives: each side remembers its own, and
requests are made with those. Both give the same ids, as long as they are asked for one after the
other. So are requests for which Kafka's broker asks its coordinator: those that wait for it at the
same time are all answered with the errors that the oldest version among them knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from tests.interop.differential.recipes import Batch, Producer
from tests.interop.differential.sides import Identity, Session
from tests.interop.differential.steps import Answer, Ask, Step, produce_request
from tests.support.build import api_request
from tests.support.transaction_requests import (
    add_as_broker_request,
    add_offsets_request,
    add_partitions_request,
    end_request,
    marker,
    markers_request,
)

MEMBERS_VERSION: Final = 3
"""The version of TxnOffsetCommit from which on it names the member."""
RAISING_VERSION: Final = 5
"""The version of EndTxn from which on it tells the producer its next epoch."""


class Guise(NamedTuple):
    """
    How far from the truth a producer says it is.
    """

    id: int = 0
    epoch: int = 0
    sequence: int = 0

    def on(self, identity: Identity, sequence: int = -1) -> Producer:
        return Producer(
            identity.producer_id + self.id, identity.epoch + self.epoch, sequence + self.sequence
        )

    def ids(self, identity: Identity) -> tuple[int, int]:
        producer = self.on(identity)
        return producer.id, producer.epoch

    def __str__(self) -> str:
        shifts = zip(self._fields, self, strict=True)
        return ", ".join(f"{name} {shift:+}" for name, shift in shifts if shift)


HONEST: Final = Guise()
MadeUp = Callable[[Session, Identity], Message]


@dataclass(frozen=True, slots=True)
class Initialize:
    """
    InitProducerId: the answer is who the producer is from now on.

    Args:
        expected: how the producer says who it was before, if it does.
    """

    name: str
    who: str
    version: int
    timeout_ms: int
    expected: Guise | None = None
    alone: ClassVar[bool] = True

    async def run(self, session: Session) -> Any:
        identity = session.side.identities[self.who]
        before = Producer(-1, -1, -1) if self.expected is None else self.expected.on(identity)
        request = api_request(
            "init_producer_id",
            transactional_id=self.name,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=before.id if self.version >= 3 else -1,
            producer_epoch=before.epoch if self.version >= 3 else -1,
        )
        message = await session.ask(request, self.version)
        if isinstance(message, str):
            return message
        if message.error_code == ErrorCode.NONE:
            identity.become(message.producer_id, message.producer_epoch)
        return Answer(message, self.version)

    def __str__(self) -> str:
        expected = "" if self.expected is None else f", expecting itself {self.expected}"
        return f"{self.who}: InitProducerId v{self.version}, {self.timeout_ms} ms{expected}"


@dataclass(frozen=True, slots=True)
class Transacting:
    """
    A producer of a transactional id, and what it may do.

    Args:
        name: the transactional id.
        who: which of the producers that have this id.
    """

    topic: str
    name: str
    who: str

    def add_partitions(
        self, partitions: Mapping[str, Sequence[int]], version: int, guise: Guise = HONEST
    ) -> Step:
        """
        AddPartitionsToTxn, as clients send it.
        """

        def make(_: Session, identity: Identity) -> Message:
            return add_partitions_request(self.name, guise.ids(identity), partitions)

        return self._ask(f"AddPartitionsToTxn {dict(partitions)}", version, make, guise)

    def add_partitions_as_broker(
        self,
        others: Sequence[Transacting],
        partitions: Mapping[str, Sequence[int]],
        version: int,
        *,
        verify: bool,
        guise: Guise = HONEST,
    ) -> Step:
        """
        AddPartitionsToTxn, as brokers send it, for this producer and *others*.
        """

        def make(session: Session, _: Identity) -> Message:
            everybody = [
                (each.name, guise.ids(session.side.identities[each.who]))
                for each in (self, *others)
            ]
            return add_as_broker_request(everybody, partitions, verify=verify)

        names = [each.who for each in others]
        text = f"AddPartitionsToTxn {dict(partitions)}, also for {names}, verify {verify}"
        return self._ask(text, version, make, guise)

    def add_offsets(self, group: str, version: int, guise: Guise = HONEST) -> Step:
        def make(_: Session, identity: Identity) -> Message:
            return add_offsets_request(self.name, guise.ids(identity), group)

        return self._ask(f"AddOffsetsToTxn {group}", version, make, guise)

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[int, int],
        version: int,
        guise: Guise = HONEST,
        *,
        member_id: str = "",
        generation_id: int = -1,
    ) -> Step:
        def make(_: Session, identity: Identity) -> Message:
            producer = guise.on(identity)
            partitions = [
                {
                    "partition_index": partition,
                    "committed_offset": offset,
                    "committed_leader_epoch": 0 if version >= 2 and offset % 2 else -1,
                    "committed_metadata": f"m{offset}",
                }
                for partition, offset in offsets.items()
            ]
            knows_members = version >= MEMBERS_VERSION
            return api_request(
                "txn_offset_commit",
                transactional_id=self.name,
                group_id=group,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                topics=[{"name": self.topic, "partitions": partitions}],
                member_id=member_id if knows_members else "",
                generation_id=generation_id if knows_members else -1,
            )

        text = f"TxnOffsetCommit of {group} {dict(offsets)}"
        if member_id or generation_id != -1:
            text += f", member {member_id!r} of generation {generation_id}"
        return self._ask(text, version, make, guise, alone=True)

    def produce(
        self,
        batches: Mapping[int, Batch],
        version: int,
        guise: Guise = HONEST,
        *,
        transactional: bool = True,
    ) -> Step:
        """
        One batch to each of some partitions; the next ones follow if these were taken.
        """

        def make(session: Session, identity: Identity) -> Message:
            data = {
                partition: replace(
                    batch,
                    producer=guise.on(identity, identity.sequences[partition]),
                    transactional=transactional,
                ).build()
                for partition, batch in batches.items()
            }
            name = self.name if transactional else None
            return produce_request(
                session, self.topic, data, version=version, acks=-1, transactional_id=name
            )

        def learn(identity: Identity, answer: Any) -> None:
            for partition in answer.responses[0].partition_responses:
                if partition.error_code == ErrorCode.NONE and guise == HONEST:
                    count = len(batches[partition.index].times)
                    identity.sequences[partition.index] += count

        told = "; ".join(f"to {partition}: {batch}" for partition, batch in batches.items())
        kind = "" if transactional else "outside of transactions "
        return self._ask(f"Produce {kind}{told}", version, make, guise, learn, alone=True)

    def end(self, version: int, guise: Guise = HONEST, *, commit: bool) -> Step:
        """
        EndTxn; in the second protocol the answer has the next epoch.
        """

        def make(_: Session, identity: Identity) -> Message:
            return end_request(self.name, guise.ids(identity), commit=commit)

        def learn(identity: Identity, answer: Any) -> None:
            if version >= RAISING_VERSION and answer.error_code == ErrorCode.NONE:
                identity.become(answer.producer_id, answer.producer_epoch)

        kind = "commit" if commit else "abort"
        return self._ask(f"EndTxn {kind}", version, make, guise, learn)

    def marker(
        self,
        partitions: Sequence[int],
        version: int,
        guise: Guise = HONEST,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> Step:
        """
        WriteTxnMarkers, as an administrator sends it.
        """

        def make(_: Session, identity: Identity) -> Message:
            return markers_request(
                marker(
                    guise.ids(identity),
                    {self.topic: partitions},
                    commit=commit,
                    coordinator_epoch=coordinator_epoch,
                    transaction_version=transaction_version if version >= 2 else 0,
                )
            )

        text = (
            f"WriteTxnMarkers {'commit' if commit else 'abort'} to {partitions}, coordinator "
            f"{coordinator_epoch}, transaction version {transaction_version}"
        )
        return self._ask(text, version, make, guise)

    def _ask(
        self,
        text: str,
        version: int,
        make: MadeUp,
        guise: Guise,
        learn: Callable[[Identity, Any], None] | None = None,
        *,
        alone: bool = False,
    ) -> Step:
        def with_identity(session: Session) -> Message:
            return make(session, session.side.identities[self.who])

        def remember(session: Session, answer: Any) -> None:
            if learn is not None:
                learn(session.side.identities[self.who], answer)

        told = f"{self.who}: {text}"
        if guise != HONEST:
            told += f" [{guise}]"
        return Ask(told, version, with_identity, remember, alone)
