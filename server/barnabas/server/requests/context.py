"""
What a handler may touch.

``Parts`` is made once, by the broker; a ``Context`` is made for every request and is only as large
as what differs between requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas.protocol.structs import struct

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.server.clock import ServerClock
    from barnabas.server.cluster.controller import Controller
    from barnabas.server.cluster.image import MetadataImage
    from barnabas.server.config import BrokerConfig
    from barnabas.server.coordinators import Coordinators
    from barnabas.server.dynamic_config.admin import ConfigAdmin
    from barnabas.server.fetch.delayed import FetchPurgatory
    from barnabas.server.fetch.sessions import FetchSessions
    from barnabas.server.groups.coordinator import GroupCoordinator
    from barnabas.server.metrics import Metrics
    from barnabas.server.network.connection import Connection
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.scheduling.background import Background
    from barnabas.server.scheduling.fair_queue import FairQueue
    from barnabas.server.scheduling.turns import Turns
    from barnabas.server.scheduling.workers import Workers
    from barnabas.server.topics.topics import Topics
    from barnabas.server.transactions.coordinator import TransactionCoordinator
    from barnabas.server.transactions.markers import MarkerWriter
    from barnabas.server.transactions.producer_ids import ProducerIds
    from barnabas.storage.manager.manager import LogManager

T = TypeVar("T")


class CloseConnection(Exception):
    """
    The only answer to this request is to close its connection; the text says why, for the log.
    """


@struct(frozen=False, kw_only=True)
class Parts:
    """
    The parts of a running broker, shared by all requests.
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

    @property
    def groups(self) -> GroupCoordinator:
        return self.coordinators.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.coordinators.transactions

    @property
    def markers(self) -> MarkerWriter:
        return self.coordinators.markers


class Context:
    """
    One request's view of the broker.
    """

    __slots__ = ("client_id", "connection", "parts", "version")

    def __init__(
        self, parts: Parts, version: int, client_id: str | None, connection: Connection
    ) -> None:
        self.parts = parts
        self.version = version
        self.client_id = client_id
        self.connection = connection

    @property
    def node_id(self) -> int:
        return self.parts.node_id

    @property
    def cluster_id(self) -> str:
        return self.parts.cluster_id

    @property
    def config(self) -> BrokerConfig:
        return self.parts.config

    @property
    def config_admin(self) -> ConfigAdmin:
        return self.parts.config_admin()

    @property
    def clock(self) -> ServerClock:
        return self.parts.clock

    @property
    def log_manager(self) -> LogManager:
        return self.parts.log_manager

    @property
    def controller(self) -> Controller:
        return self.parts.controller

    @property
    def image(self) -> MetadataImage:
        return self.parts.image

    @property
    def topics(self) -> Topics:
        return self.parts.topics

    @property
    def partitions(self) -> Partitions:
        return self.parts.partitions

    @property
    def groups(self) -> GroupCoordinator:
        return self.parts.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.parts.transactions

    @property
    def markers(self) -> MarkerWriter:
        return self.parts.markers

    @property
    def producer_ids(self) -> ProducerIds:
        return self.parts.producer_ids

    @property
    def fetches(self) -> FetchPurgatory:
        return self.parts.fetches

    @property
    def fetch_sessions(self) -> FetchSessions:
        return self.parts.fetch_sessions

    @property
    def metrics(self) -> Metrics:
        return self.parts.metrics

    @property
    def turns(self) -> Turns:
        return self.parts.turns

    @property
    def reads(self) -> Executor:
        """
        Where what the page cache lacks is read.
        """
        return self.parts.workers.reads

    @property
    def examiner(self) -> FairQueue:
        """
        Where batches are examined that take long.
        """
        return self.parts.workers.batches

    async def in_executor(self, work: Callable[[], T]) -> T:
        """
        Do *work*, which may block, away from the event loop.
        """
        return await asyncio.get_running_loop().run_in_executor(self.parts.workers.upkeep, work)
