"""
InitProducerId: a producer wants to be known, so that its retries are recognised (KIP-98).

Without a transactional id the answer is a producer id that nobody had before, whatever else the
request says. With one, it is the transaction coordinator's to answer.
"""

from __future__ import annotations

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import (
    IDEMPOTENT_WRITE,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from barnabas.protocol.errors import InvalidProducerEpoch, InvalidRequest, ProducerFenced
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
FENCED_SINCE = 4
"""The version from which on producers know PRODUCER_FENCED."""


@handles(InitProducerIdRequest, needs=asks(WRITE_TRANSACTIONAL_ID, IDEMPOTENT_WRITE, WRITE_TOPIC))
async def init_producer_id(
    request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        context.require(WRITE_TRANSACTIONAL_ID, request.transactional_id)
    elif not context.sees(IDEMPOTENT_WRITE, CLUSTER_NAME) and not context.sees_any(WRITE_TOPIC):
        context.require(IDEMPOTENT_WRITE)
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        raise InvalidRequest("A producer id and its epoch come together")
    if request.transactional_id is not None:
        return await _init_transactional(request, context)
    return InitProducerIdResponse(
        error_code=0,
        producer_id=await context.broker.producer_ids.generate_producer_id(),
        producer_epoch=0,
    )


async def _init_transactional(
    request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse:
    assert request.transactional_id is not None
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        producer = await context.broker.transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            None if request.producer_id == NO_PRODUCER_ID else expected,
        )
    except ProducerFenced as error:
        if context.version < FENCED_SINCE:
            raise InvalidProducerEpoch(str(error)) from error
        raise
    return InitProducerIdResponse(
        error_code=0, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
    )
