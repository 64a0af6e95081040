"""
A node without a network: metadata log, log manager, topics and partitions on any file system.

It starts and stops in the order in which a broker does, and everything blocking happens at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from barnabas.coordination.cluster.image import Topic
from barnabas.coordination.cluster.lifecycle import ListenerEndpoint, ThisNode
from barnabas.protocol.codec.schema import Message
from barnabas.server.cluster.controller import NO_BROKER_EPOCH, Controller
from barnabas.server.cluster.formatting import prepare_directories, read_bootstrap
from barnabas.server.cluster.metadata_log import MetadataLog
from barnabas.server.config import BrokerConfig, Listener
from barnabas.server.dynamic_config.admin import ConfigAdmin
from barnabas.server.dynamic_config.brokers import BrokerConfigs
from barnabas.server.dynamic_config.topics import TopicConfigs
from barnabas.server.partitions.partitions import Partitions
from barnabas.server.requests.advertised_address import AdvertisedAddressCheck
from barnabas.server.requests.context import RequestContext
from barnabas.server.scheduling.turns import Turns
from barnabas.server.topics.topics import Topics
from barnabas.server.transactions.producer_ids import ProducerIds
from barnabas.storage.clock import Clock
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.manager.manager import LoadReport
from barnabas.storage.uuids import random_uuid
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.clock import StillClock
from tests.support.log_manager import open_manager
from tests.support.requests import handled, request_context
from tests.support.topic_requests import creatable

T = TypeVar("T")


NODE_ID = 1
DATA = Path("/data")
HOUR_MS = 3_600_000
SMALL_INDEXES = {"log.index.size.max.bytes": "1200"}
"""
So that a file system in memory does not have to hold 20 MiB of zeros for each log.
"""


class InlineExecutor(Executor):
    def submit(self, work: Callable[..., T], /, *args: Any, **options: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(work(*args, **options))
        except BaseException as error:
            future.set_exception(error)
        return future


class ClusterNode:
    """
    A node that runs from ``start`` to ``stop``; without ``stop`` it is killed.
    """

    def __init__(
        self,
        files: Files,
        clock: Clock,
        config: Mapping[str, str | None] | None = None,
        log_dirs: Sequence[Path] = (DATA,),
    ) -> None:
        self.files = files
        self.clock = clock
        given = {"log.dirs": ",".join(map(str, log_dirs)), **SMALL_INDEXES, **(config or {})}
        self.config = BrokerConfig.parse({n: v for n, v in given.items() if v is not None})
        self.log_dirs = log_dirs
        self.io = InlineExecutor()
        self.failures = LogDirFailureChannel()

    async def start(self) -> ClusterNode:
        self.cluster_id = prepare_directories(
            self.log_dirs,
            metadata_dir=self.log_dirs[0],
            node_id=NODE_ID,
            cluster_id=None,
            files=self.files,
            now_ms=self.clock.now_ms(),
        )
        self.log = MetadataLog.open(
            self.log_dirs[0],
            node_id=NODE_ID,
            config=self.config,
            files=self.files,
            clock=self.clock,
            failures=self.failures,
        )
        brokers = BrokerConfigs(self.config, self.log.image, NODE_ID)
        self.configs = TopicConfigs(brokers, self.log.image)
        self.controller = Controller(
            self.log,
            defaults=self.configs.election_defaults(),
            io=self.io,
            turns=Turns(),
        )
        await self.controller.activate(partial(read_bootstrap, self.log_dirs[0], self.files))
        self.log_manager = open_manager(
            self.files,
            self.log_dirs,
            clock=self.clock,
            failures=self.failures,
            config=self.configs.default(),
            producer_id_expiration_ms=HOUR_MS,
            recovery_threads_per_directory=1,
        )
        self.partitions = Partitions()
        self.topics = Topics(
            node_id=NODE_ID,
            controller=self.controller,
            configs=self.configs,
            log_manager=self.log_manager,
            partitions=self.partitions,
            io=self.io,
        )
        self.config_admin = ConfigAdmin(
            node_id=NODE_ID,
            controller=self.controller,
            configs=self.configs,
            log_manager=self.log_manager,
        )
        clean_epoch = self.log_manager.directories.clean_shutdown_epoch()
        self.report: LoadReport = self.log_manager.load(
            {topic.name: self.configs.log_config(topic.name) for topic in self.topics},
            self.topics.is_stray,
        )
        node = ThisNode(
            node_id=NODE_ID,
            incarnation_id=random_uuid(),
            endpoints=[ListenerEndpoint("PLAINTEXT", "127.0.0.1", 9092)],
            log_dirs=list(self.log_manager.directories.ids.values()),
        )
        await self.controller.register(
            node, clean_epoch=NO_BROKER_EPOCH if clean_epoch is None else clean_epoch
        )
        await self.controller.unfence()
        await self.topics.open()
        self.producer_ids = ProducerIds(self.controller, NODE_ID)
        return self

    async def stop(self) -> None:
        await self.controller.stop()
        self.log_manager.shutdown(self.controller.broker_epoch)

    def context(self, version: int) -> RequestContext:
        parts = SimpleNamespace(
            node_id=NODE_ID,
            cluster_id=self.cluster_id,
            config=self.config,
            config_admin=lambda: self.config_admin,
            clock=self.clock,
            controller=self.controller,
            image=self.log.image,
            topics=self.topics,
            partitions=self.partitions,
            producer_ids=self.producer_ids,
            log_manager=self.log_manager,
            turns=Turns(),
            advertised_address=AdvertisedAddressCheck(ManualClock()),
            authorizer=None,
            workers=SimpleNamespace(
                reads=self.io,
                in_upkeep=lambda work: asyncio.get_running_loop().run_in_executor(self.io, work),
            ),
        )
        listener = Listener("PLAINTEXT", "0.0.0.0", 9092, "broker.example", 19092)
        return request_context(parts, version, listener=listener)

    async def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        options = {option.replace("_", "."): value for option, value in configs.items()}
        plan = await self.topics.create([creatable(name, partitions, configs=options)])
        assert plan.errors == {}

    async def delete(self, name: str) -> None:
        assert await self.topics.delete([self.topic(name).id]) == {}

    def topic(self, name: str) -> Topic:
        topic = self.topics.get(name)
        assert topic is not None
        return topic


async def started(
    files: Files | None = None,
    clock: Clock | None = None,
    *,
    log_dirs: Sequence[Path] = (DATA,),
    **config: str | None,
) -> ClusterNode:
    """
    Start a node, in memory unless *files* is given; configs have ``_`` for ``.``.
    """
    named = {name.replace("_", "."): value for name, value in config.items()}
    return await ClusterNode(files or MemoryFiles(), clock or StillClock(), named, log_dirs).start()


async def ask(node: ClusterNode, request: Message, version: int) -> Any:
    """
    The response of a handler after encoding and decoding; errors become responses as in a
    connection.
    """
    return await handled(request, node.context(version))
