"""
UnregisterBroker: forgets a broker that is gone (Kafka ``ReplicationControlManager``).

Kafka unregisters any broker, also one that runs, which is of no use from then on until it is
started again. There is nobody here who could take its place, so that this node stays.
"""

from __future__ import annotations

import logging

from barnabas.coordination.security.acl.permissions import ALTER_CLUSTER
from barnabas.protocol.errors import BrokerIdNotRegistered, ErrorCode, InvalidRequest
from barnabas.protocol.internal_topics.metadata_records import UnregisterBrokerRecord
from barnabas.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

logger = logging.getLogger(__name__)


@handles(UnregisterBrokerRequest, needs=gate(ALTER_CLUSTER))
async def unregister_broker(
    request: UnregisterBrokerRequest, context: RequestContext
) -> UnregisterBrokerResponse:
    """
    Forget the broker. It leads nothing: it was fenced when this node started.
    """
    broker_id = request.broker_id

    async def unregister() -> None:
        registration = context.broker.image.brokers.get(broker_id)
        if registration is None:
            raise BrokerIdNotRegistered(f"Broker ID {broker_id} is not currently registered")
        if broker_id == context.broker.node_id:
            raise InvalidRequest(f"Broker {broker_id} is the one that runs")
        record = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=registration.broker_epoch)
        await context.broker.controller.write([(record, 0)])
        logger.info("Unregistered broker %d", broker_id)

    await context.broker.controller.change(unregister)
    return UnregisterBrokerResponse(error_code=ErrorCode.NONE)
