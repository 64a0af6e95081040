"""
Records about the cluster as a whole, and about the log itself.

Records between a ``BeginTransactionRecord`` and an ``EndTransactionRecord`` hold once the latter
is read, and never if an ``AbortTransactionRecord`` stands in its place (KIP-868).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message, since


@message
class FeatureLevelRecord:
    api: ClassVar[Api] = Api(12, versions=range(1), flexible=0)

    name: str
    feature_level: int16


@message
class ProducerIdsRecord:
    api: ClassVar[Api] = Api(15, versions=range(1), flexible=0)

    broker_id: int32
    broker_epoch: int64 = -1
    next_producer_id: int64


@message
class NoOpRecord:
    api: ClassVar[Api] = Api(20, versions=range(1), flexible=0)


@message
class ZkMigrationStateRecord:
    api: ClassVar[Api] = Api(21, versions=range(1), flexible=0)

    zk_migration_state: int8


@message
class BeginTransactionRecord:
    api: ClassVar[Api] = Api(23, versions=range(1), flexible=0)

    name: str | None = since(0, default=None, tag=0)


@message
class EndTransactionRecord:
    api: ClassVar[Api] = Api(24, versions=range(1), flexible=0)


@message
class AbortTransactionRecord:
    api: ClassVar[Api] = Api(25, versions=range(1), flexible=0)

    reason: str | None = since(0, default=None, tag=0)
