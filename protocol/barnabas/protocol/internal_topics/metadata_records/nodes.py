"""
Brokers and controllers.

* ``RegisterBrokerRecord`` has the controlled shutdown from v1 on, log directories from v3 on
  and of those that take no new replicas from v4 on; v2 was for the way from ZooKeeper.
* ``BrokerRegistrationChangeRecord`` can change the first of these from v1 on, the second from v2 on
  and the third from v3 on. -1 means fenced or in shutdown no longer, 1 from now on, 0 no change.
* ``FenceBrokerRecord`` and ``UnfenceBrokerRecord`` did so before it.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message, since, uint16


@message
class BrokerEndpoint:
    name: str
    host: str
    port: uint16
    security_protocol: int16


@message
class BrokerFeature:
    name: str
    min_supported_version: int16
    max_supported_version: int16


@message
class RegisterBrokerRecord:
    api: ClassVar[Api] = Api(0, versions=range(5), flexible=0)

    broker_id: int32
    is_migrating_zk_broker: bool = since(2, default=False)
    incarnation_id: UUID
    broker_epoch: int64
    end_points: list[BrokerEndpoint]
    features: list[BrokerFeature]
    rack: str | None
    fenced: bool = True
    in_controlled_shutdown: bool = since(1, default=False)
    log_dirs: list[UUID] = since(3, default=[], tag=0)
    cordoned_log_dirs: list[UUID] | None = since(4, default=None, tag=1)


@message
class BrokerRegistrationChangeRecord:
    api: ClassVar[Api] = Api(17, versions=range(4), flexible=0)

    broker_id: int32
    broker_epoch: int64
    fenced: int8 = since(0, default=0, tag=0)
    in_controlled_shutdown: int8 = since(1, default=0, tag=1)
    log_dirs: list[UUID] = since(2, default=[], tag=2)
    cordoned_log_dirs: list[UUID] | None = since(3, default=None, tag=3)


@message
class FenceBrokerRecord:
    api: ClassVar[Api] = Api(7, versions=range(1), flexible=0)

    id: int32
    epoch: int64


@message
class UnfenceBrokerRecord:
    api: ClassVar[Api] = Api(8, versions=range(1), flexible=0)

    id: int32
    epoch: int64


@message
class UnregisterBrokerRecord:
    api: ClassVar[Api] = Api(1, versions=range(1), flexible=0)

    broker_id: int32
    broker_epoch: int64


@message
class ControllerEndpoint:
    name: str
    host: str
    port: uint16
    security_protocol: int16


@message
class ControllerFeature:
    name: str
    min_supported_version: int16
    max_supported_version: int16


@message
class RegisterControllerRecord:
    api: ClassVar[Api] = Api(27, versions=range(1), flexible=0)

    controller_id: int32
    incarnation_id: UUID
    zk_migration_ready: bool
    end_points: list[ControllerEndpoint]
    features: list[ControllerFeature]
