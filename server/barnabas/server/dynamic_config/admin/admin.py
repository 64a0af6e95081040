"""
The configs of all kinds of resources, described and altered.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from barnabas.coordination.cluster.image import ConfigResourceType, Versioned
from barnabas.coordination.cluster.request_limits import check_size
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import InvalidRequest, KafkaError, without_frames
from barnabas.server.cluster.controller import Controller
from barnabas.server.dynamic_config.admin.brokers import BrokerConfigKind
from barnabas.server.dynamic_config.admin.changes import (
    AlterResource,
    ConfigKind,
    clear_elr_records,
    plan,
)
from barnabas.server.dynamic_config.admin.client_metrics import ClientMetricsKind
from barnabas.server.dynamic_config.admin.entries import ConfigEntry
from barnabas.server.dynamic_config.admin.groups import GroupConfigKind
from barnabas.server.dynamic_config.admin.loggers import BrokerLoggers
from barnabas.server.dynamic_config.admin.topics import TopicConfigKind
from barnabas.server.dynamic_config.brokers import BrokerConfigs
from barnabas.server.dynamic_config.topics import TopicConfigs
from barnabas.server.security.listeners import Security
from barnabas.storage.manager.manager import LogManager

logger = logging.getLogger(__name__)

ConfigListener: TypeAlias = Callable[[BrokerConfigs], None]
"""
Called when the options of this broker have changed; it may block, and runs in the executor.
"""
Authorize: TypeAlias = Callable[[int, str], None]
"""
Takes the type and the name of a resource; raises an error if its configs may not be changed.
"""


class ConfigAdmin:
    """
    The configs of the cluster, to be looked at and changed by clients.

    Invariants:

    1. What a request changes of one resource is changed as a whole or not at all.
    2. When a change is answered it is on the disk, and logs and listeners have applied it.
    3. Listeners are called for one change at a time, in the order of the changes.

    Belongs to the event loop.
    """

    def __init__(
        self,
        *,
        node_id: int,
        controller: Controller,
        configs: TopicConfigs,
        log_manager: LogManager,
        security: Security | None = None,
    ) -> None:
        self.on_broker_configs: list[ConfigListener] = []
        self._controller = controller
        self._image = controller.image
        self._configs = configs
        self._log_manager = log_manager
        self._loggers = BrokerLoggers(node_id)
        self._kinds: dict[int, ConfigKind] = {
            ConfigResourceType.TOPIC: TopicConfigKind(configs, self._image),
            ConfigResourceType.BROKER: BrokerConfigKind(
                configs.brokers, self._image, node_id, security
            ),
            ConfigResourceType.GROUP: GroupConfigKind(configs.brokers, self._image),
            ConfigResourceType.CLIENT_METRICS: ClientMetricsKind(self._image),
        }

    def describe(self, resource_type: int, name: str) -> Sequence[ConfigEntry]:
        """
        The options of a resource with their values.

        Raises:
            KafkaError: there is no such resource.
        """
        if resource_type == ConfigResourceType.BROKER_LOGGER:
            return self._loggers.describe(name)
        return self._kinds[resource_type].describe(name)

    def can_describe(self, resource_type: int) -> bool:
        """
        Whether resources of that type have configs.
        """
        return resource_type in self._kinds or resource_type == ConfigResourceType.BROKER_LOGGER

    async def alter(
        self, wanted: Sequence[AlterResource], authorize: Authorize, *, validate_only: bool = False
    ) -> list[KafkaError | None]:
        """
        Change the configs of resources.

        Args:
            authorize: raises an error if the client may not change those of a resource.

        Returns:
            For each resource the error that refused its changes, or ``None``.

        Raises:
            PolicyViolation: the request is too large; nothing was changed.
            KafkaStorageError: the metadata log cannot be written.
        """
        return await self._controller.change(partial(self._alter, wanted, authorize, validate_only))

    async def _alter(
        self, wanted: Sequence[AlterResource], authorize: Authorize, validate_only: bool
    ) -> list[KafkaError | None]:
        errors: list[KafkaError | None] = []
        made: list[Versioned] = []
        altered: list[AlterResource] = []

        async def plan() -> None:
            times = Counter((one.type, one.name) for one in wanted)
            for one in wanted:
                await checkpoint()
                try:
                    if times[one.type, one.name] > 1:
                        raise InvalidRequest("Each resource must appear at most once.")
                    planned = self._plan(one, authorize, validate_only)
                except KafkaError as error:
                    errors.append(without_frames(error))
                    continue
                errors.append(None)
                if planned:
                    made.extend(planned)
                    altered.append(one)

        await self._controller.in_turns(plan())
        made += clear_elr_records(self._image, made)
        check_size(made)
        if not validate_only:
            await self._controller.write(made)
            await self._follow(altered)
        return errors

    def _plan(
        self, wanted: AlterResource, authorize: Authorize, validate_only: bool
    ) -> list[Versioned]:
        # Kafka refuses so many records, and earlier any option that does not exist.
        check_size(wanted.changes)
        wanted.check()
        if wanted.type == ConfigResourceType.BROKER_LOGGER and not wanted.replaces:
            authorize(wanted.type, wanted.name)
            wanted.check_operations()
            self._loggers.alter(wanted, validate_only=validate_only)
            return []
        kind = self._kinds.get(wanted.type)
        if kind is None:
            raise InvalidRequest(f"Unknown resource type {wanted.type}")
        # In Kafka brokers check their own options, and then the controller asks the authorizer.
        if wanted.type != ConfigResourceType.BROKER:
            authorize(wanted.type, wanted.name)
        wanted.check_operations()
        kind.prepare(wanted)
        if wanted.type == ConfigResourceType.BROKER:
            authorize(wanted.type, wanted.name)
        return plan(self._image, wanted, kind)

    async def _follow(self, altered: Sequence[AlterResource]) -> None:
        """
        Apply the changes to logs and other parts of the broker.
        """
        for one in altered:
            logger.info(
                "Changed configs of %s %r: %s",
                ConfigResourceType(one.type).name,
                one.name,
                ", ".join(change.name for change in one.changes) or "all are removed",
            )
        types = {one.type for one in altered}
        if ConfigResourceType.BROKER in types:
            await self._controller.run(self._follow_broker)
        elif ConfigResourceType.TOPIC in types:
            names = [one.name for one in altered if one.type == ConfigResourceType.TOPIC]
            await self._controller.run(partial(self._update_logs, names))

    def _follow_broker(self) -> None:
        # Topics inherit the options that are not set for them.
        self._log_manager.default_config = self._configs.default()
        self._update_logs(list(self._image.topics_by_name))
        for listener in self.on_broker_configs:
            try:
                listener(self._configs.brokers)
            except Exception:
                # The configs are stored, and the other listeners have to apply them.
                logger.exception("%s cannot apply the options of this broker", listener)

    def _update_logs(self, topics: Sequence[str]) -> None:
        self._log_manager.update_topic_configs(
            {name: self._configs.log_config(name) for name in topics}
        )
