"""
The parts of a running broker that handlers use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol.structs import struct

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.coordination.cluster.delegation_tokens import DelegationTokens
    from barnabas.coordination.cluster.image import MetadataImage
    from barnabas.coordination.security.acl.authorizer import StandardAuthorizer
    from barnabas.coordination.share.groups import ShareGroups
    from barnabas.server.cluster.controller import Controller
    from barnabas.server.config import BrokerConfig
    from barnabas.server.coordinators import Coordinators
    from barnabas.server.dynamic_config.admin import ConfigAdmin
    from barnabas.server.fetch.sessions import FetchSessions
    from barnabas.server.groups.coordinator import GroupCoordinator
    from barnabas.server.groups.topic_creation import InternalTopicCreation
    from barnabas.server.metrics import Metrics
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.purgatory import FetchPurgatory
    from barnabas.server.requests.active_quotas import ActiveQuotas
    from barnabas.server.requests.advertised_address import AdvertisedAddressCheck
    from barnabas.server.scheduling.background import Background
    from barnabas.server.scheduling.turns import Turns
    from barnabas.server.scheduling.workers import Workers
    from barnabas.server.security.listeners import Security
    from barnabas.server.share.coordinator import ShareCoordinator
    from barnabas.server.share.manager import SharePartitionManager
    from barnabas.server.topics.topics import Topics
    from barnabas.server.transactions.coordinator import TransactionCoordinator
    from barnabas.server.transactions.markers import MarkerWriter
    from barnabas.server.transactions.producer_ids import ProducerIds
    from barnabas.storage.manager.manager import LogManager


@struct(frozen=False, kw_only=True)
class BrokerParts:
    """
    What the broker makes once and all requests share.
    """

    node_id: int
    cluster_id: str
    config: BrokerConfig  # as of the start
    config_admin: Callable[[], ConfigAdmin]
    clock: ServerClock
    log_manager: LogManager
    controller: Controller
    image: MetadataImage  # what the metadata log adds up to; it changes as the log does
    topics: Topics
    partitions: Partitions
    coordinators: Coordinators
    producer_ids: ProducerIds
    fetches: FetchPurgatory
    fetch_sessions: FetchSessions
    metrics: Metrics
    background: Background
    workers: Workers
    turns: Turns
    advertised_address: AdvertisedAddressCheck
    security: Security
    delegation_tokens: Callable[[], DelegationTokens]
    quotas: ActiveQuotas
    authorizer: StandardAuthorizer | None = None  # None allows everything

    @property
    def groups(self) -> GroupCoordinator:
        return self.coordinators.groups

    @property
    def streams_topics(self) -> InternalTopicCreation:
        return self.coordinators.streams_topics

    @property
    def shares(self) -> ShareCoordinator:
        return self.coordinators.shares

    @property
    def share_groups(self) -> ShareGroups:
        return self.coordinators.share_groups

    @property
    def share_partitions(self) -> SharePartitionManager:
        return self.coordinators.share_partitions

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.coordinators.transactions

    @property
    def markers(self) -> MarkerWriter:
        return self.coordinators.markers
