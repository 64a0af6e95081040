"""
The broker: its parts, in the order in which they start and stop.

::

    addresses taken -> directories locked -> metadata log -> logs -> topics -> groups -> served
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from barnabas.coordination.clock import ServerClock
from barnabas.coordination.cluster.features import TRANSACTION_VERSION
from barnabas.coordination.cluster.image import MetadataImage
from barnabas.coordination.cluster.lifecycle import ListenerEndpoint, ThisNode
from barnabas.protocol.errors import KafkaStorageError
from barnabas.server.clock import EventLoopClock
from barnabas.server.cluster.controller import NO_BROKER_EPOCH, Controller
from barnabas.server.cluster.formatting import read_bootstrap
from barnabas.server.cluster.metadata_log import MetadataLog
from barnabas.server.config import BrokerConfig, Listener
from barnabas.server.config.listeners import SECURITY_PROTOCOLS
from barnabas.server.coordinators import Coordinators
from barnabas.server.dynamic_config.brokers import BrokerConfigs
from barnabas.server.dynamic_config.cleaner import cleaner_settings, watch_cleaner
from barnabas.server.dynamic_config.groups import GroupConfigs
from barnabas.server.dynamic_config.settings import configure_parts
from barnabas.server.dynamic_config.topics import TopicConfigs
from barnabas.server.fetch.sessions import FetchSessions
from barnabas.server.metrics import Metrics
from barnabas.server.network.acceptor import Listening
from barnabas.server.network.registry import FEW, ConnectionLimits, Connections, check_hosts
from barnabas.server.ownership.owner import Owner
from barnabas.server.partitions.failures import LogDirFailureHandler
from barnabas.server.partitions.partitions import Partitions
from barnabas.server.purgatory import FetchPurgatory
from barnabas.server.readiness import BrokerState, Readiness
from barnabas.server.requests.active_quotas import ActiveQuotas
from barnabas.server.requests.advertised_address import AdvertisedAddressCheck
from barnabas.server.requests.broker_parts import BrokerParts
from barnabas.server.requests.client_quotas import ClientQuotas
from barnabas.server.requests.dispatch import Dispatcher
from barnabas.server.resources.descriptors import most_open_files
from barnabas.server.scheduling.turns import Turns
from barnabas.server.scheduling.workers import Workers
from barnabas.server.security.listeners import Security
from barnabas.server.topics.topics import Topics
from barnabas.server.transactions.producer_ids import ProducerIds
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.config.option_values import ConfigError, InvalidValue
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.fs.open_files import OpenFiles
from barnabas.storage.manager.manager import LoadReport, LogManager, LogManagerSettings
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import counted
from barnabas.storage.uuids import random_uuid

if TYPE_CHECKING:
    from barnabas.coordination.cluster.delegation_tokens import DelegationTokens
    from barnabas.coordination.security.acl.authorizer import StandardAuthorizer
    from barnabas.coordination.security.sasl.credentials import TokenLogin
    from barnabas.coordination.security.sasl.decoys import Decoys, ScramCredential
    from barnabas.server.dynamic_config.admin import ConfigAdmin
    from barnabas.server.forecast.forecasts import Forecasts
    from barnabas.server.http.listener import HttpListener
    from barnabas.server.network.latencies import Latencies
    from barnabas.server.network.resources import Dispatch

logger = logging.getLogger(__name__)

T = TypeVar("T")


PROGRESS_S = 2.0
"""Seconds between two lines about the progress of a long load."""


def owner_of(config: BrokerConfig) -> Owner:
    """
    What the broker of *config* does with its directories.
    """
    if not config.barnabas_read_only:
        return Owner()
    from barnabas.server.ownership.viewer import Viewer  # noqa: PLC0415  # few are read-only

    return Viewer()


class Broker:
    """
    A broker on its log directories.

    Invariants:

    1. No file is read or written before the directories are locked, and no connection is served
       before all acknowledged records can be read.
    2. ``stop`` may be called at any time, and repeatedly: all calls wait for the same stop.
    3. A broker is started once.
    """

    metadata_maintenance_s = 60.0
    """
    Seconds between two checks whether the metadata log needs a snapshot, or has an expired one.
    """

    certificate_check_s = 86_400.0
    """
    Seconds between two checks whether certificates of listeners end soon.
    """

    forecast_s = 60.0
    """
    Seconds between two forecasts for groups, unless retention is checked more often.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: Files | None = None,
        clock: ServerClock | None = None,
        ephemeral: bool = False,
    ) -> None:
        """
        Args:
            files: a file system in place of the real one.
            clock: a clock in place of the real one.
            ephemeral: keep the data in a temporary directory, which the stop removes.
        """
        self._temporary: Path | None = None
        if ephemeral:
            import tempfile  # noqa: PLC0415  # only here

            self._temporary = Path(tempfile.mkdtemp(prefix="barnabas-"))
            config = config.replaced(log_dirs=(str(self._temporary),))
        self.config = config
        self.node_id = config.node_id
        self.clock: ServerClock = clock or EventLoopClock()
        self.metrics = Metrics()
        self.partitions = Partitions()
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots, self.metrics
        )
        self._owner = owner_of(config)
        self.background = self._owner.background(self.clock)
        self.files = self._owner.view(files or DiskFiles(OpenFiles(most_open_files())))
        self._decoys = cache(self._new_decoys)
        self.security = Security(
            config.client_listeners,
            self._scram_credential,
            self.clock,
            self._token_login,
            self._decoys,
        )
        self.workers = Workers(config.background_threads)
        self._listening = Listening()
        self.log_manager: LogManager | None = None
        self.turns = Turns()
        self.on_let_go: Callable[[], object] = lambda: None
        """Called before free memory goes back to the system, to free what can be made again."""
        self.fetches = FetchPurgatory(self.clock, self.workers.reads)
        self._controller: Controller | None = None
        self._coordinators: Coordinators | None = None
        self._failure_handler: LogDirFailureHandler | None = None
        self.parts: BrokerParts | None = None
        """What handlers use; None until ``start`` has made it."""
        self.connections: Connections | None = None
        self.readiness = Readiness(self.clock.monotonic)
        self.http: HttpListener | None = None
        self._forecasts: Forecasts | None = None
        self._stopping: asyncio.Task[None] | None = None

    @property
    def forecasts(self) -> Forecasts | None:
        """
        What groups will lose; None until clients are served.
        """
        if self._forecasts is None and self.parts is not None:
            from barnabas.server.forecast.forecasts import Forecasts  # noqa: PLC0415  # see _foresee

            self._forecasts = Forecasts(self.parts)
        return self._forecasts

    @property
    def request_bytes(self) -> int:
        """
        The memory of all requests and of the answers that peers have not read, in bytes.
        """
        connections = self.connections
        return 0 if connections is None else connections.resources.request_memory.used_bytes

    @property
    def latencies(self) -> Latencies | None:
        """
        The times that requests take; None if they are not measured, as without HTTP.
        """
        return None if self.http is None else self.http.latencies

    @property
    def listeners(self) -> Sequence[Listener]:
        """
        The listeners, with the actual port in place of port 0.
        """
        return self._listening.listeners

    async def run(
        self,
        until: asyncio.Event,
        *,
        ready: Callable[[], object] = lambda: None,
        failed: Callable[[Exception], object] = lambda _error: None,
    ) -> None:
        """
        Start, serve until the event is set, and stop.

        Args:
            ready: called when clients are served.
            failed: called before the stop if an error is the reason for it.

        Raises:
            Exception: the start, or an essential part, has failed.
        """
        try:
            await self.start()
            ready()
            failure = asyncio.create_task(self.background.failure())
            asked = asyncio.create_task(until.wait())
            await asyncio.wait((failure, asked), return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            failure.cancel()
            if failure.done() and not failure.cancelled():
                raise failure.result()
        except Exception as error:
            failed(error)
            raise
        finally:
            await self.stop()

    async def start(self) -> None:
        """
        Start all parts; when this returns, clients are served.

        Raises:
            CannotListen: a listener's address cannot be taken.
            ConfigError: an option cannot have its value; nothing is written.
            LogDirectoryLocked: another broker uses a log directory.
            KafkaError: the files in the directories cannot be served.
        """
        began = self.clock.monotonic()
        self.readiness.enter(BrokerState.STARTING)
        self.config = await self._blocking(lambda: self._owner.settle(self.config, self.files))
        self.node_id = self.config.node_id
        await self._blocking(self._check_options)
        self.security.configure(self.config.given)
        # First of what others see, since it fails at once if another broker runs here.
        self._listening.bind(self.config.client_listeners, self.config)
        if self.config.barnabas_http_listener:
            from barnabas.server.http.listener import listen  # noqa: PLC0415  # few need it

            self.http = await listen(self)
        if (most := self.files.open_files.limit) is not None:
            level = logging.INFO if most < FEW else logging.DEBUG
            logger.log(level, "at most %d files of logs are open at a time", most)
        log_manager = self.log_manager = self._lock_directories()
        cluster_id = await self._blocking(
            lambda: self._owner.cluster_id(self.config, self.files, self.clock.now_ms())
        )
        metadata_log = await self._blocking(lambda: self._open_metadata(log_manager))
        configs = TopicConfigs(
            BrokerConfigs(self.config, metadata_log.image, self.node_id), metadata_log.image
        )
        log_manager.default_config = configs.default()
        configure_parts(configs.brokers, log_manager=log_manager, workers=self.workers)
        controller = self._controller = self._control(metadata_log, configs)
        await controller.activate(
            partial(read_bootstrap, self.config.metadata_directory, self.files),
            take_over=not self._owner.changes_files,
        )
        self.readiness.enter(BrokerState.RECOVERY)
        topics, report = await self._load(controller, configs, log_manager)
        producer_ids = ProducerIds(controller, self.node_id)
        coordinators = self._coordinators = self._coordinate(topics, producer_ids, metadata_log)
        coordinators.start()
        self._watch(log_manager)
        tokens = cache(partial(self._delegation_tokens, controller))
        self._maintain(controller, tokens)
        self._secure_as_stored(configs.brokers)
        self._watch_certificates()
        self.background.every(
            "forecasts",
            min(self.forecast_s, self.config.log_retention_check_interval_ms / 1000),
            self._foresee,
        )
        self.parts = BrokerParts(
            node_id=self.node_id,
            cluster_id=cluster_id,
            config=self.config,
            config_admin=cache(partial(self._administrate, controller, configs, log_manager)),
            clock=self.clock,
            log_manager=log_manager,
            controller=controller,
            image=metadata_log.image,
            topics=topics,
            partitions=self.partitions,
            coordinators=coordinators,
            producer_ids=producer_ids,
            fetches=self.fetches,
            fetch_sessions=self.fetch_sessions,
            metrics=self.metrics,
            background=self.background,
            turns=self.turns,
            workers=self.workers,
            advertised_address=AdvertisedAddressCheck(self.clock),
            security=self.security,
            delegation_tokens=tokens,
            quotas=ActiveQuotas(),
            authorizer=self._authorizer(metadata_log.image),
        )
        dispatcher = self.dispatcher(self.parts)
        self.connections = Connections(
            configs.brokers.current(),
            self.clock,
            self.workers.reads,
            dispatcher if self.http is None else self.http.timed(dispatcher),
            self.metrics,
            security=self.security,
            open_files=self.files.open_files,
            texts=configs.brokers.texts(),
            let_go=self._let_go,
            is_busy=lambda: self.turns.is_busy,
        )
        self.turns.on_slow = self.connections.resources.backlog.count_slow
        ClientQuotas(self.parts, self.connections.limit_address_rate).follow()
        await self._listening.serve(self.connections)
        self.readiness.enter(BrokerState.RUNNING)
        self._say_ready(cluster_id, len(topics), report, self.clock.monotonic() - began)

    def _check_options(self) -> None:
        """
        Check values that only their parts can judge, before a directory is formatted.

        Raises:
            InvalidValue: one is not acceptable.
        """
        config = self.config
        check_hosts(config)
        cleaner = CleanerSettings(
            threads=config.log_cleaner_threads,
            dedupe_buffer_bytes=config.log_cleaner_dedupe_buffer_size,
            load_factor=config.log_cleaner_io_buffer_load_factor,
        )
        if config.log_cleaner_enable and not cleaner.room > 1:  # NaN is no room
            raise InvalidValue(
                "log.cleaner.io.buffer.load.factor",
                cleaner.load_factor,
                "it leaves no room for a key: write a part of the memory, such as 0.9",
            )

    def dispatcher(self, parts: BrokerParts) -> Dispatch:
        """
        What answers the requests of all connections.
        """
        return Dispatcher(self._owner.handlers(), parts)

    async def stop(self) -> None:
        """
        Stop all parts within a few seconds. Acknowledged records stay.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        began = self.clock.monotonic()
        self.readiness.enter(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
        # Accept no more connections.
        self._listening.close()
        # Answer waiting requests: fetches with the bytes there are, members with NOT_COORDINATOR.
        self.fetches.wake_all()
        if self.http is not None:
            self.http.wake_all()
        if self._coordinators is not None:
            self._coordinators.answer_all()
        # Answer the requests in progress, transactions and acknowledgements among them, and close
        # the connections.
        if self.connections is not None:
            await self.connections.drain(self.config.barnabas_shutdown_timeout_ms / 1000)
        if self._coordinators is not None:
            self._coordinators.stop()
        self.readiness.enter(BrokerState.SHUTTING_DOWN)
        # Stop the loops.
        await self.background.stop()
        if self._failure_handler is not None:
            self._failure_handler.stop()
        # Resign in the metadata from all partitions.
        if self._controller is not None:
            await self._quietly("the controller", self._owner.resign(self._controller))
        # Flush the logs, write snapshots and checkpoints, and mark the directories as clean.
        if self.log_manager is not None:
            await self._quietly("the log manager", self._close_logs(self.log_manager))
        # Until here, HTTP says what the stop waits for.
        if self.http is not None:
            await self._quietly("the HTTP server", self.http.stop())
        self.readiness.enter(BrokerState.NOT_RUNNING)
        self.workers.shutdown()
        if self._temporary is not None:
            import shutil  # noqa: PLC0415  # only here

            shutil.rmtree(self._temporary, ignore_errors=True)
        logger.info("stopped in %.2f s", self.clock.monotonic() - began)

    # Starting

    def _lock_directories(self) -> LogManager:
        """
        Create the log manager, which locks the directories before any file in them is opened. It
        gets the defaults of topics that the metadata has later.
        """
        config = self.config
        nothing = MetadataImage()
        brokers = BrokerConfigs(config, nothing, self.node_id)
        return LogManager(
            config.log_directories,
            files=self.files,
            clock=self.clock,
            failures=LogDirFailureChannel(takes_offline=self._owner.changes_files),
            default_config=TopicConfigs(brokers, nothing).default(),
            settings=LogManagerSettings(
                retention_check_ms=config.log_retention_check_interval_ms,
                flush_check_ms=config.log_flush_scheduler_interval_ms,
                recovery_point_checkpoint_ms=config.log_flush_offset_checkpoint_interval_ms,
                log_start_offset_checkpoint_ms=(
                    config.log_flush_start_offset_checkpoint_interval_ms
                ),
                high_watermark_checkpoint_ms=config.replica_high_watermark_checkpoint_interval_ms,
                producer_id_expiration_ms=config.producer_id_expiration_ms,
                producer_id_expiration_check_ms=config.producer_id_expiration_check_interval_ms,
                initial_task_delay_ms=config.log_initial_task_delay_ms,
                recovery_threads_per_directory=config.num_recovery_threads_per_data_dir,
                cleaner=cleaner_settings(brokers),
                transaction_verification=config.transaction_partition_verification_enable,
            ),
        )

    def _open_metadata(self, log_manager: LogManager) -> MetadataLog:
        return MetadataLog.open(
            self.config.metadata_directory,
            node_id=self.node_id,
            config=self.config,
            files=self.files,
            clock=self.clock,
            failures=log_manager.failures,
        )

    def _control(self, metadata_log: MetadataLog, configs: TopicConfigs) -> Controller:
        return Controller(
            metadata_log,
            defaults=configs.election_defaults(),
            io=self.workers.changes,
            turns=self.turns,
        )

    async def _load(
        self, controller: Controller, configs: TopicConfigs, log_manager: LogManager
    ) -> tuple[Topics, LoadReport]:
        """
        Load the logs, register this broker, and open the partitions that it leads.
        """
        topics = Topics(
            node_id=self.node_id,
            controller=controller,
            configs=configs,
            log_manager=log_manager,
            partitions=self.partitions,
            io=self.workers.syncs,
        )
        clean_epoch = log_manager.directories.clean_shutdown_epoch()
        progress = asyncio.create_task(_log_progress(log_manager, self.clock))
        try:
            report = await self._blocking(
                lambda: log_manager.load(
                    {topic.name: configs.log_config(topic.name) for topic in topics},
                    self._owner.is_stray(topics),
                )
            )
        finally:
            progress.cancel()
        node = self._this_node(log_manager)
        await self._owner.register(controller, node, log_manager, clean_epoch)
        await topics.open()
        return topics, report

    def _coordinate(
        self, topics: Topics, producer_ids: ProducerIds, metadata_log: MetadataLog
    ) -> Coordinators:
        return Coordinators(
            options=self.config,
            clock=self.clock,
            io=self.workers.upkeep,
            reads=self.workers.reads,
            background=self.background,
            turns=self.turns,
            metrics=self.metrics,
            topics=topics,
            partitions=self.partitions,
            producer_ids=producer_ids,
            config_of=GroupConfigs(topics.configs.brokers, metadata_log.image).of,
            server_version=lambda: metadata_log.image.feature_levels.get(TRANSACTION_VERSION, 0),
        )

    def _secure_as_stored(self, brokers: BrokerConfigs) -> None:
        """
        Let stored options of listeners count. One that a file no longer goes with is no reason not
        to start.
        """
        try:
            self.security.configure(brokers.texts())
        except ConfigError as error:
            logger.error("Stored options of listeners are ignored: %s", error)

    def _watch_certificates(self) -> None:
        """
        Warn of certificates that end soon, now and once a day.
        """
        with_tls = [listener for listener in self.config.client_listeners if listener.has_tls]
        for listener in with_tls:
            self.metrics.gauge(
                "certificate_seconds_left",
                "How long the certificates of a listener are valid.",
                partial(self.security.certificate_seconds_left, listener),
                listener=listener.name,
            )
        if with_tls:
            self.security.warn_of_expiry()
            self.background.every(
                "certificate-expiry", self.certificate_check_s, self.security.warn_of_expiry
            )

    async def _foresee(self) -> None:
        """
        Look at what groups will lose, once there are any: many brokers have none.
        """
        if self._coordinators is None or self._coordinators.group_coordinator is None:
            return
        if self.forecasts is not None:
            await self.forecasts.check()

    def _let_go(self) -> None:
        if self.parts is not None and self.parts.authorizer is not None:
            self.parts.authorizer.decisions.clear()
        self.on_let_go()

    def _authorizer(self, image: MetadataImage) -> StandardAuthorizer | None:
        if not self.config.authorizer_class_name:
            return None
        from barnabas.coordination.security.acl.authorizer import (  # noqa: PLC0415  # few have one
            StandardAuthorizer,
        )

        logger.info("%d access control entries decide who may do what", len(image.acls))
        return StandardAuthorizer(
            image.acls,
            self.config.super_user_principals,
            allow_everyone=self.config.allow_everyone_if_no_acl_found,
        )

    def _scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        from barnabas.coordination.cluster.scram_credentials import (  # noqa: PLC0415  # few need it
            scram_credential,
        )

        assert self.parts is not None, "clients are served"
        return scram_credential(self.parts.image, mechanism, user)

    def _new_decoys(self) -> Decoys:
        """
        The credentials of users and tokens that do not exist. Their secret is the id of a
        directory, which stays the same. A client needs Describe on the cluster to see it, and with
        that it may list the users as well.
        """
        from barnabas.coordination.cluster.scram_credentials import (  # noqa: PLC0415  # few need it
            CredentialShapes,
        )
        from barnabas.coordination.security.sasl.decoys import Decoys, fresh_secret  # noqa: PLC0415

        assert self.parts is not None, "clients are served"
        ids = self.parts.log_manager.directories.ids
        # The directory of the metadata log may be no log directory, and old ones have no ids.
        directories = (self.config.metadata_directory, *self.config.log_directories)
        known = [ids[directory].bytes for directory in directories if directory in ids]
        return Decoys(known[0] if known else fresh_secret(), CredentialShapes(self.parts.image))

    def _token_login(self, mechanism: str, token_id: str) -> TokenLogin | None:
        assert self.parts is not None, "clients are served"
        return self.parts.delegation_tokens().login(mechanism, token_id)

    def _delegation_tokens(self, controller: Controller) -> DelegationTokens:
        """
        The delegation tokens; created by the first who asks.
        """
        from barnabas.coordination.cluster.delegation_tokens import (  # noqa: PLC0415  # few ask
            DelegationTokens,
            TokenLifetimes,
        )

        config = self.config
        return DelegationTokens(
            controller,
            self.clock,
            config.delegation_token_secret_key or "",
            TokenLifetimes(
                config.delegation_token_max_lifetime_ms, config.delegation_token_expiry_time_ms
            ),
            self._decoys,
        )

    def _this_node(self, log_manager: LogManager) -> ThisNode:
        return ThisNode(
            node_id=self.node_id,
            incarnation_id=random_uuid(),
            endpoints=[
                ListenerEndpoint(
                    listener.name,
                    listener.advertised_host,
                    listener.advertised_port,
                    SECURITY_PROTOCOLS[listener.protocol],
                )
                for listener in self.listeners
            ],
            log_dirs=list(log_manager.directories.ids.values()),
            rack=self.config.broker_rack,
        )

    def _watch(self, log_manager: LogManager) -> None:
        """
        Start the maintenance of the logs, and the reaction to failed directories.
        """
        self._owner.maintain(log_manager)
        self._failure_handler = LogDirFailureHandler(
            log_manager,
            self.partitions,
            metadata_dir=self.config.metadata_directory.absolute(),
            lost=partial(self._lose_directories, log_manager),
            fatal=self.background.fail,
        )
        self._failure_handler.start()
        if log_manager.cleaner is not None:
            watch_cleaner(log_manager.cleaner, log_manager, self.metrics)
        self.metrics.gauge(
            "log_directories_offline",
            "Log directories that have failed.",
            lambda: len(log_manager.directories.offline),
        )
        self.metrics.gauge("partitions", "Partitions served.", lambda: len(self.partitions))
        self.metrics.gauge(
            "fetches_waiting", "Fetches that wait for bytes.", lambda: len(self.fetches.waiting)
        )

    def _lose_directories(self, log_manager: LogManager, lost: list[TopicPartition]) -> None:
        if self._coordinators is not None:
            self._coordinators.resign(lost)
        if self._controller is not None:
            online = log_manager.directories.ids.values()
            self.background.spawn("lost-log-dir", self._controller.lose_directories(online))

    def _administrate(
        self, controller: Controller, configs: TopicConfigs, log_manager: LogManager
    ) -> ConfigAdmin:
        """
        The admin of configs, with the parts that take new values; created by the first request for
        configs.
        """
        from barnabas.server.dynamic_config.admin import ConfigAdmin  # noqa: PLC0415  # few ask

        loop = asyncio.get_running_loop()

        def limit_connections(brokers: BrokerConfigs) -> None:
            limits = ConnectionLimits.of(brokers.current(), brokers.texts())
            if self.connections is not None:
                loop.call_soon_threadsafe(self.connections.limit, limits)

        admin = ConfigAdmin(
            node_id=self.node_id,
            controller=controller,
            configs=configs,
            log_manager=log_manager,
            security=self.security,
        )
        admin.on_broker_configs += [
            partial(configure_parts, log_manager=log_manager, workers=self.workers),
            limit_connections,
            lambda brokers: self.security.reconfigure(brokers.texts()),
        ]
        return admin

    def _maintain(self, controller: Controller, tokens: Callable[[], DelegationTokens]) -> None:
        """
        Start the maintenance of the metadata log, and of the tokens in it.
        """
        if self.config.delegation_token_secret_key:
            self.background.every(
                "delegation-token-expiry",
                self.config.delegation_token_expiry_check_interval_ms / 1000,
                lambda: tokens().remove_expired(),
            )
        self.background.every(
            "metadata-maintenance", self.metadata_maintenance_s, controller.maintain
        )
        idle_ms = self.config.metadata_max_idle_interval_ms
        if idle_ms > 0:
            self.background.every("metadata-no-op", idle_ms / 1000, controller.write_no_op)

    def _say_ready(self, cluster_id: str, topics: int, report: LoadReport, seconds: float) -> None:
        repairs = report.repairs
        if repairs.recovered_segments:
            logger.info(
                "recovered %s with %s of batches",
                counted(repairs.recovered_segments, "segment"),
                counted(repairs.recovered_bytes, "byte"),
            )
        if repairs.truncated_bytes or repairs.set_aside_segments:
            logger.warning(
                "%d bytes at the ends of logs were no whole batches and are cut off;"
                " %d segments behind lost records are set aside",
                repairs.truncated_bytes,
                repairs.set_aside_segments,
            )
        logger.info(
            "node %d of cluster %s is ready in %.2f s (logs: %.2f s), with %s of %s in %s",
            self.node_id,
            cluster_id,
            seconds,
            report.seconds,
            counted(len(self.partitions), "partition"),
            counted(topics, "topic"),
            ", ".join(map(str, self.config.log_directories)),
        )
        if said := self._owner.said_when_ready():
            logger.info("%s", said)
        # Those who start a Kafka, such as testcontainers, wait for one of these phrases in its log.
        logger.info(
            "[KafkaServer id=%d] started: Kafka Server started,"
            " Transitioning from RECOVERY to RUNNING",
            self.node_id,
        )
        logger.info("%s", self._addresses(has_topics=topics > 0))

    def _addresses(self, *, has_topics: bool) -> str:
        """
        The last line of a start: where clients, people and other machines find the broker.
        """
        listening = "; ".join(
            f"listening on {each}, advertised as {each.advertised_host}:{each.advertised_port}"
            for each in self.listeners
        )
        page = "" if self.http is None else f"; page and metrics on http://{self.http.address}"
        hint = "" if has_topics else "; create a topic with: barnabas topics create NAME"
        return f"{listening}{page}{hint}"

    # Stopping

    async def _close_logs(self, log_manager: LogManager) -> None:
        assert self._controller is not None or not len(self.partitions)
        epoch = NO_BROKER_EPOCH if self._controller is None else self._controller.broker_epoch
        await self._blocking(lambda: log_manager.shutdown(epoch))

    async def _quietly(self, name: str, work: Awaitable[None]) -> None:
        """
        Do one step of the stop, and log its failure: the next steps run in any case.
        """
        try:
            await work
        except KafkaStorageError as error:  # the failure of the directory is in the log
            logger.error("%s could not be stopped: %s", name, error)
        except Exception:
            logger.exception("%s could not be stopped", name)

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.workers.changes, work)


async def _log_progress(log_manager: LogManager, clock: ServerClock) -> None:
    """
    Log every ``PROGRESS_S`` how far the load of the logs is, until it is cancelled.
    """
    while True:
        await clock.sleep(PROGRESS_S)
        if (progress := log_manager.load_progress) is not None:
            logger.info("%d of %d logs are loaded", progress.done, progress.logs)
