"""
ListTransactions: the transactional ids of this broker that pass all filters (KIP-664, KIP-994), as
far as the client may describe them.

The pattern of version 2 (KIP-1152) has to match the whole id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.coordination.regex.pattern import InvalidPattern, LinearPattern
from barnabas.coordination.security.acl.permissions import DESCRIBE_TRANSACTIONAL_ID
from barnabas.coordination.steps import InSteps, checkpoint
from barnabas.coordination.text_memory import text_bytes
from barnabas.coordination.transactions import state
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.protocol.errors import InvalidRegularExpression, RequestTimedOut
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import all_shards, reads, transactions
from barnabas.server.scheduling.turns import PlaceLost, WorkKind


@handles(ListTransactionsRequest, needs=asks(DESCRIBE_TRANSACTIONAL_ID))
@reads(transactions, all_shards)
async def list_transactions(
    request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse:
    """
    Ids have up to 32,767 characters: a match may take minutes. It ends when its client leaves, or
    when it has taken long and others wait.

    Raises:
        RequestTimedOut: others wait.
    """
    pattern = await _pattern(request.transactional_id_pattern)
    passes = _filter(request, context.broker.clock.now_ms())
    room = context.room()
    found: list[TransactionState] = room.list()
    for transactional_id, transaction in tuple(context.broker.transactions.list_transactions()):
        await checkpoint()
        if passes(transaction) and context.sees(DESCRIBE_TRANSACTIONAL_ID, transactional_id):
            room.take(1, text_bytes(transactional_id))
            found.append(
                TransactionState(
                    transactional_id=transactional_id,
                    producer_id=transaction.producer_id,
                    transaction_state=transaction.state.title,
                )
            )
    if pattern is None:
        return _answer(request, found)

    async def matching() -> list[TransactionState]:
        matches = []
        for entry in found:
            await checkpoint()
            if await InSteps(pattern.matching(entry.transactional_id)):
                matches.append(entry)
        return matches

    client = context.client
    try:
        matches = await context.broker.turns.aside(
            matching, WorkKind.REQUEST, lambda: client.is_closing
        )
    except PlaceLost:
        raise RequestTimedOut(
            "The match of the transaction ID pattern took too long while others waited."
        ) from None
    return _answer(request, matches or [])


def _answer(
    request: ListTransactionsRequest, found: Sequence[TransactionState]
) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        error_code=0,
        unknown_state_filters=[
            title for title in dict.fromkeys(request.state_filters) if title not in state.BY_TITLE
        ],
        transaction_states=list(found),
    )


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    states = set(request.state_filters)
    producer_ids = set(request.producer_id_filters)
    duration = request.duration_filter

    def passes(transaction: Transaction) -> bool:
        return (
            (not producer_ids or transaction.producer_id in producer_ids)
            and (not states or transaction.state.title in states)
            and (duration < 0 or now_ms - transaction.start_ms > duration)
        )

    return passes


async def _pattern(text: str | None) -> LinearPattern | None:
    if not text:
        return None
    try:
        return await InSteps(LinearPattern.in_steps(text))
    except InvalidPattern as error:
        raise InvalidRegularExpression(
            f"Transaction ID pattern `{text}` is not a valid regular expression: {error}."
        ) from error
