"""
ListTransactions: the transactional ids of this broker that pass all filters (KIP-664, KIP-994).

The pattern of version 2 (KIP-1152) has to match the whole id.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from barnabas.protocol.errors import InvalidRegularExpression
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from barnabas.server.context import Context
from barnabas.server.coordinators.transactions import state
from barnabas.server.coordinators.transactions.transaction import Transaction
from barnabas.server.handlers import handles
from barnabas.server.re2_patterns import compile_re2


@handles(ListTransactionsRequest)
def list_transactions(
    request: ListTransactionsRequest, context: Context
) -> ListTransactionsResponse:
    passes = _filter(request, context.clock.now_ms())
    return ListTransactionsResponse(
        error_code=0,
        unknown_state_filters=[
            title for title in dict.fromkeys(request.state_filters) if title not in state.BY_TITLE
        ],
        transaction_states=[
            TransactionState(
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.title,
            )
            for transactional_id, transaction in context.transactions.shards.transactions()
            if passes(transactional_id, transaction)
        ],
    )


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[str, Transaction], bool]:
    pattern = _pattern(request.transactional_id_pattern)
    states = set(request.state_filters)
    producer_ids = set(request.producer_id_filters)
    duration = request.duration_filter

    def passes(transactional_id: str, transaction: Transaction) -> bool:
        return (
            (not producer_ids or transaction.producer_id in producer_ids)
            and (not states or transaction.state.title in states)
            and (duration < 0 or now_ms - transaction.start_ms > duration)
            and (pattern is None or pattern.fullmatch(transactional_id) is not None)
        )

    return passes


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if not text:
        return None
    try:
        return compile_re2(text)
    except re.error as error:
        raise InvalidRegularExpression(
            f"Transaction ID pattern `{text}` is not a valid regular expression: {error}."
        ) from error
