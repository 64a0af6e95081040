"""
Micro-batches that are written exactly once.

Each task writes its rows in a transaction of its own and leaves it open. When all tasks have done
so, the driver *decides*: it commits an offset for a group of the query, whose metadata names the
micro-batch and its transactions. Then it commits these. So::

    before the decision    nothing of the micro-batch can be seen; when it is run again, its tasks
                           abort what they had left open, and write all of it
    after the decision     when it is run again, its tasks write nothing, and the driver commits
                           what is still open of the transactions that were decided on

It does not matter whether the rows are the same, or in the same tasks, when a micro-batch is run
again: of two runs, one is decided on. This is a commit in two phases with the group coordinator as
its memory. A transaction that was committed can be committed again without effect, as long as its
producer has not begun another one.

Each attempt at a task has a transaction of its own name, for an attempt that begins aborts the
transaction of its name. The number of an attempt in its stage would not do: a stage that Spark
submits again counts from 0 again. So the name has Spark's task attempt id, which is unique in an
application. It counts on for as long as the application runs, and a broker keeps each name for days
(``transactional.id.expiration.ms``); therefore it is counted from the last attempt that the
decision before notes, if that was made in the same run of the query. All attempts at a micro-batch
know the same decision, so their names differ, and micro-batches use the same names again; not two
that follow one another, for an attempt that is not taken may begin its transaction late.

After the commit, the driver aborts all other transactions of the query: those of attempts that
lost, and those of a run that died.

Conditions: readers are ``read_committed``. A query goes on within ``transaction.timeout.ms`` after
a decision whose transactions were not all committed: a broker aborts transactions that are older.
If it has aborted all of them, the decision is withdrawn and the micro-batch written again; if some
were committed before, the query ends with an error that says so. And a query is not run twice at
the same time with one checkpoint.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

from barnabas.client.cluster import GROUP, TRANSACTION, Cluster
from barnabas.pipeline.errors import BrokerError, ClientError, TransactionsLost
from barnabas.pipeline.writing.identity import Identity, initialized
from barnabas.pipeline.writing.options import WriteOptions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_ENTRIES: Final = 80
"""Of transactions in one committed offset, whose metadata brokers take up to 4,096 bytes of."""
_GONE: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
"""What the coordinator says of a transaction that it has aborted, or that a new producer has."""


@dataclass(frozen=True)
class MicroBatch:
    """
    One step of a query.
    """

    query_id: str
    """It stays the same over restarts from a checkpoint."""
    batch_id: int
    prefix: str
    """Of the names of transactions, and of the group."""
    run_id: str = ""
    """Of a start of the query."""

    @property
    def group(self) -> str:
        return self.prefix

    def transactional_id(self, attempt: int, previous: CommitDecision | None) -> str:
        """
        The name of the transaction of one attempt.

        Args:
            attempt: its id, unique in an application of Spark.
            previous: the last decision, which is not about this micro-batch.
        """
        if previous is not None and previous.run_id == self.run_id:
            attempt -= previous.last_attempt
        return f"{self.prefix}-{2 * attempt + next_slot(previous)}"


@dataclass(frozen=True)
class CommitDecision:
    """
    The last micro-batch of a query that is to be committed, and its transactions.
    """

    query_id: str
    batch_id: int
    transactions: tuple[Identity, ...]
    place: TopicPartition
    """Some partition that is there, to which the committed offset is attached."""
    run_id: str = ""
    last_attempt: int = 0
    """The largest id of the committed attempts; those of later micro-batches are larger."""
    slot: int = 0
    """0 and 1 in turn. It tells apart names that two decisions in a row would share otherwise."""

    @classmethod
    def after(
        cls,
        previous: CommitDecision | None,
        batch: MicroBatch,
        transactions: Iterable[Identity],
        place: TopicPartition,
        last_attempt: int,
    ) -> CommitDecision:
        """
        The decision that follows *previous*, whose parts it leaves as they are until it holds.
        """
        slot = next_slot(previous)
        return cls(
            batch.query_id,
            batch.batch_id,
            tuple(transactions),
            place,
            batch.run_id,
            last_attempt,
            slot,
        )

    def is_about(self, batch: MicroBatch) -> bool:
        """
        Whether *batch* is decided on already. A query that was begun from nothing, but with the
        same prefix, is another one.
        """
        return self.query_id == batch.query_id and self.batch_id >= batch.batch_id


def next_slot(previous: CommitDecision | None) -> int:
    return 0 if previous is None else 1 - previous.slot


def read_decision(cluster: Cluster, batch: MicroBatch) -> CommitDecision | None:
    """
    The last decision of the query that *batch* is of, if there is one. If that is about an earlier
    micro-batch, which was committed before *batch* began, it comes without its transactions.

    Raises:
        BrokerError, Disconnected: nobody says.
    """
    noted = _committed(cluster, batch.group, batch.query_id)
    if noted is None:
        return None
    told = noted.told
    slot = told.get("slot", 0)
    entries: list[Any] = []
    if noted.offset > batch.batch_id:
        entries += told["transactions"]
        for number in range(1, told["pieces"]):
            group = _part(batch.group, slot, number)
            more = _committed(cluster, group, batch.query_id, noted.place)
            if more is None or more.offset != noted.offset:
                raise BrokerError(
                    ErrorCode.INVALID_RECORD,
                    f"The group {group} has lost a part of what was decided.",
                )
            entries += more.told["transactions"]
    transactions = tuple(
        Identity(number, epoch, f"{batch.prefix}-{name}") for name, number, epoch in entries
    )
    return CommitDecision(
        batch.query_id,
        noted.offset - 1,
        transactions,
        noted.place,
        told.get("run", ""),
        told.get("attempt", 0),
        slot,
    )


def _part(group: str, slot: int, number: int) -> str:
    """
    The group with a part of a decision. Parts are noted one after the other, so those of the
    decision before have to stay: two decisions that follow one another have different slots.
    """
    if not number:
        return group
    return f"{group}.{number}.{slot}" if slot else f"{group}.{number}"


def decide(cluster: Cluster, group: str, decision: CommitDecision) -> None:
    """
    Note a decision. From then on it holds.

    Raises:
        BrokerError, Disconnected: it may be noted, or may not be.
    """
    entries = [
        [_without(group, each), each.producer_id, each.epoch] for each in decision.transactions
    ]
    pieces = [entries[at : at + _ENTRIES] for at in range(0, len(entries), _ENTRIES)] or [[]]
    # The last part has the number of the others, and their slot.
    for number in reversed(range(len(pieces))):
        told: dict[str, Any] = {"query": decision.query_id, "transactions": pieces[number]}
        if not number:
            told |= {
                "pieces": len(pieces),
                "slot": decision.slot,
                "run": decision.run_id,
                "attempt": decision.last_attempt,
            }
        name = _part(group, decision.slot, number)
        # The offset 0 is left to a first micro-batch that is withdrawn.
        _commit(cluster, name, _Noted(decision.batch_id + 1, told, decision.place))


def _without(prefix: str, identity: Identity) -> str:
    return str(identity.transactional_id).removeprefix(f"{prefix}-")


class _Noted(NamedTuple):
    """
    A committed offset, and what its metadata say.
    """

    offset: int
    told: dict[str, Any]
    place: TopicPartition


def _committed(
    cluster: Cluster, group: str, query_id: str, only: TopicPartition | None = None
) -> _Noted | None:
    """
    What a query has noted last.

    Args:
        only: attached to this partition.
    """

    def attempt() -> _Noted | None:
        answer = cluster.coordinator(GROUP, group).ask(OffsetFetchRequest(group_id=group))
        if answer.error_code:
            raise BrokerError.of(answer.error_code, f"The group {group} cannot be asked")
        found: list[_Noted] = []
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code:
                    raise BrokerError.of(each.error_code, f"The group {group} cannot be asked")
                place = TopicPartition(topic.name, each.partition_index)
                told = json.loads(each.metadata or "{}")
                if told.get("query") == query_id and only in (None, place):
                    found.append(_Noted(each.committed_offset, told, place))
        return max(found, key=attrgetter("offset"), default=None)

    return cluster.retried(attempt)


def _commit(cluster: Cluster, group: str, noted: _Noted) -> None:
    place = noted.place
    partition = OffsetCommitRequestPartition(
        partition_index=place.partition,
        committed_offset=noted.offset,
        committed_metadata=json.dumps(noted.told, separators=(",", ":")),
    )
    request = OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=place.topic, partitions=[partition])],
    )

    def attempt() -> None:
        answer = cluster.coordinator(GROUP, group).ask(request)
        code = answer.topics[0].partitions[0].error_code
        if code:
            raise BrokerError.of(code, f"The group {group} takes no offset")

    cluster.retried(attempt)


# The end of transactions.


def commit(cluster: Cluster, group: str, decision: CommitDecision) -> None:
    """
    Commit what was decided on, as far as it is not committed.

    Raises:
        TransactionsLost: a broker has aborted some of it.
        BrokerError, Disconnected: a broker is gone for too long; the decision holds.
    """
    lost = [each for each in decision.transactions if not _end(cluster, each, committed=True)]
    if not lost:
        return
    names = ", ".join(str(each.transactional_id) for each in lost[:3])
    if len(lost) < len(decision.transactions):
        raise TransactionsLost(
            f"Micro-batch {decision.batch_id} is written in part only: the broker has aborted"
            f" {len(lost)} of its {len(decision.transactions)} transactions ({names}), as they were"
            " open for longer than kafka.transaction.timeout.ms. Its rows have to be compared by"
            " hand."
        )
    withdrawn = replace(
        decision, batch_id=decision.batch_id - 1, transactions=(), slot=1 - decision.slot
    )
    decide(cluster, group, withdrawn)
    raise TransactionsLost(
        f"The broker has aborted the transactions of micro-batch {decision.batch_id} ({names}), as"
        " they were open for longer than kafka.transaction.timeout.ms. Start the query again: none"
        " of its rows was committed, and it is written again."
    )


def _end(cluster: Cluster, identity: Identity, *, committed: bool) -> bool:
    """
    End a transaction; False if it is gone.
    """
    name = identity.transactional_id
    assert name is not None
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        committed=committed,
    )

    def attempt() -> bool:
        answer = cluster.coordinator(TRANSACTION, name).ask(request)
        if answer.error_code in _GONE:
            return False
        if answer.error_code:
            raise BrokerError.of(answer.error_code, f"The transaction {name} does not end")
        return True

    return cluster.retried(attempt)


def abort(cluster: Cluster, transactions: Iterable[Identity]) -> None:
    """
    Abort what can be aborted; the rest a broker aborts when its time is over.
    """
    for identity in transactions:
        try:
            _end(cluster, identity, committed=False)
        except ClientError as error:
            logger.warning("%s", error)
            return


def abort_others(cluster: Cluster, batch: MicroBatch, options: WriteOptions) -> None:
    """
    Abort all transactions of the query that are open; those decided on are committed before. The
    attempts that have begun them can do nothing any more.

    A broker that does not list transactions (Kafka before 3.0) aborts them when their time is over.
    """
    try:
        for name in sorted(_open_transactions(cluster, batch.prefix)):
            initialized(cluster, name, options)
    except ClientError as error:
        logger.warning("Transactions of %s may stay open: %s", batch.prefix, error)


def _open_transactions(cluster: Cluster, prefix: str) -> set[str]:
    """
    The names of the query's transactions that have records and no end.
    """
    name = re.compile(re.escape(prefix) + r"-\d+")
    request = ListTransactionsRequest(state_filters=["Ongoing"], producer_id_filters=[])

    def attempt() -> set[str]:
        found: set[str] = set()
        for connection in cluster.every():
            answer = connection.ask(request)
            if answer.error_code:
                raise BrokerError.of(answer.error_code, f"{connection.address} lists nothing")
            found.update(each.transactional_id for each in answer.transaction_states)
        return found

    return set(filter(name.fullmatch, cluster.retried(attempt)))
