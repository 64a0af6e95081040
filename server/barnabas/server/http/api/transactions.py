"""
Transactional ids, and the producers that partitions know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, TypedDict

from barnabas.coordination.steps import checkpoint
from barnabas.coordination.text_memory import text_bytes
from barnabas.server.http.api.context import ApiContext
from barnabas.server.http.api.explaining import PARTITION
from barnabas.server.http.api.pages import listed
from barnabas.server.http.guard import Refused
from barnabas.server.http.json_api import Answer, Operation
from barnabas.server.http.pages import Entry, Page

if TYPE_CHECKING:
    from barnabas.coordination.transactions.transaction import Transaction
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.server.transactions.shard import TransactionShard

VIEW_BYTES: Final = 300
"""About the bytes of a transactional id in JSON without its name."""
MOST_PARTITIONS: Final = 10_000
"""So many partitions of a transaction are listed."""


@dataclass(frozen=True, slots=True)
class TransactionPage(Page):
    """
    Which transactional ids.
    """

    contains: Annotated[str, "a part of the ids"] = ""


@dataclass(frozen=True, slots=True)
class OneTransaction:
    """
    A transactional id.
    """

    id: str


class TransactionView(TypedDict):
    """
    A transactional id, and its ongoing or last transaction.
    """

    id: str
    state: str
    producer_id: int
    producer_epoch: int
    partitions: int
    started_ms: int | None
    updated_ms: int
    timeout_ms: int


class TransactionsView(TypedDict):
    """
    Transactional ids.
    """

    transactions: list[TransactionView]
    next: int | None
    total: int
    loading: Annotated[int, "partitions of coordinators whose ids are not known yet"]


class PlaceView(TypedDict):
    """
    A partition.
    """

    topic: str
    partition: int


class WholeTransactionView(TransactionView):
    """
    A transactional id with the partitions of its transaction.
    """

    partition_list: list[PlaceView]


class ProducerView(TypedDict):
    """
    A producer that a partition knows.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: Annotated[int, "-1 without a transaction"]


class ProducersView(TypedDict):
    """
    Producers of a partition.
    """

    producers: list[ProducerView]
    next: int | None
    total: int


def _shards(parts: BrokerParts) -> Iterator[TransactionShard]:
    coordinator = parts.coordinators.transaction_coordinator
    for shard in () if coordinator is None else coordinator.shards:
        if shard.log.is_open:
            yield shard


async def list_transactions(api: ApiContext, given: TransactionPage) -> Answer:
    parts = api.parts
    found = await api.in_turns(_all(parts, given.contains))
    # Objects are made of the ids of the page alone.
    answer = await api.in_thread(partial(_page, found, given))
    answer.content["transactions"] = await api.in_turns(
        _views(parts, answer.content["transactions"])
    )
    answer.content["loading"] = parts.coordinators.loading
    return answer


async def _all(parts: BrokerParts, contains: str) -> list[str]:
    found = []
    for shard in _shards(parts):
        for name in tuple(shard.seen.transactions):
            if contains in name:
                found.append(name)
            await checkpoint()
    return found


def _page(found: list[str], given: TransactionPage) -> Answer:
    found.sort()
    return listed(
        "transactions", found, given, lambda each: Entry(each, VIEW_BYTES + text_bytes(each))
    )


async def _views(parts: BrokerParts, names: list[str]) -> list[TransactionView]:
    views = []
    for name in names:
        await checkpoint()
        transaction = _find(parts, name)
        if transaction is not None:  # it may be gone
            views.append(_view(name, transaction))
    return views


def _find(parts: BrokerParts, name: str) -> Transaction | None:
    for shard in _shards(parts):
        transaction = shard.seen.transactions.get(name)
        if transaction is not None:
            return transaction
    return None


def _view(name: str, transaction: Transaction) -> TransactionView:
    return {
        "id": name,
        "state": transaction.state.title,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "partitions": len(transaction.partitions),
        "started_ms": transaction.start_ms if transaction.start_ms >= 0 else None,
        "updated_ms": transaction.updated_ms,
        "timeout_ms": transaction.timeout_ms,
    }


async def show(api: ApiContext, given: OneTransaction) -> Answer:
    transaction = _find(api.parts, given.id)
    if transaction is not None:
        return await api.in_thread(partial(_whole, given.id, transaction))
    raise Refused(
        404, f"there is no transactional id {given.id!r}: GET /api/v1/transactions lists all"
    )


def _whole(name: str, transaction: Transaction) -> Answer:
    view: WholeTransactionView = {
        **_view(name, transaction),
        "partition_list": [
            {"topic": topic, "partition": index}
            for topic, index in sorted(transaction.partitions)[:MOST_PARTITIONS]
        ],
    }
    return Answer(view)


async def producers(api: ApiContext, given: Page, *, topic: str, partition: str) -> Answer:
    log = api.partition(topic, partition).log

    def answer() -> Answer:
        found = sorted(log.active_producers(), key=lambda each: each.producer_id)
        return listed("producers", found, given, lambda each: Entry(each._asdict()))

    return await api.in_thread(answer)


OPERATIONS: Final = (
    Operation(
        "GET",
        "/transactions",
        "the transactional ids",
        list_transactions,
        TransactionPage,
        TransactionsView,
    ),
    Operation(
        "GET",
        "/transaction",
        "a transactional id and the partitions of its transaction",
        show,
        OneTransaction,
        WholeTransactionView,
    ),
    Operation(
        "GET",
        f"{PARTITION}/producers",
        "the producers that a partition knows",
        producers,
        Page,
        ProducersView,
    ),
)
