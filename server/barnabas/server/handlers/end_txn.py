"""
EndTxn: commit or abort a transaction.

From version 5 on the answer says who the producer is in its next transaction (KIP-890). The answer
comes once the markers are in all partitions that can take them, so that the next transaction need
not wait for them.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.security.acl.permissions import WRITE_TRANSACTIONAL_ID
from barnabas.coordination.transactions.errors import told
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

SECOND_PROTOCOL_SINCE: Final = 5


@handles(EndTxnRequest, needs=gate(WRITE_TRANSACTIONAL_ID))
async def end_txn(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    try:
        after = await context.broker.transactions.end(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=2 if context.version >= SECOND_PROTOCOL_SINCE else 0,
        )
    except KafkaError as error:
        return EndTxnResponse(error_code=told(error, context.version))
    return EndTxnResponse(
        error_code=0, producer_id=after.producer_id, producer_epoch=after.producer_epoch
    )
