"""
InitProducerId: a producer wants to be known, so that its retries are recognised (KIP-98).

Without a transactional id the answer is a producer id that nobody had before, whatever else the
request says. With one, it would be the transaction coordinator's to answer, and there is none: the
client hears what it hears from a Kafka whose coordinator cannot be reached.
"""

from __future__ import annotations

from barnabas.protocol.errors import CoordinatorNotAvailable, ErrorCode, InvalidRequest
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.server.context import Context
from barnabas.server.handlers import handles

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


def error_response(
    _request: InitProducerIdRequest, _version: int, code: ErrorCode, _message: str | None
) -> InitProducerIdResponse:
    """
    No producer id, for that reason.
    """
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


# Version 6 (KIP-939) is unstable in Kafka 4.3, and brokers do not list it.
@handles(InitProducerIdRequest, versions=range(6), error_response=error_response)
async def init_producer_id(
    request: InitProducerIdRequest, context: Context
) -> InitProducerIdResponse:
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        raise InvalidRequest("A producer id and its epoch come together")
    if request.transactional_id is not None:
        if not request.transactional_id:
            raise InvalidRequest("A transactional id cannot be empty")
        raise CoordinatorNotAvailable("Transactions are not supported")
    return InitProducerIdResponse(
        error_code=0,
        producer_id=await context.producer_ids.generate_producer_id(),
        producer_epoch=0,
    )
