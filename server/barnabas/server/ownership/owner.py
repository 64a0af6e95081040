"""
What a broker does with log directories that are its own: it locks and formats them, registers with
their cluster, and maintains their logs. ``viewer`` has the counterpart that only shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.server.cluster.controller import NO_BROKER_EPOCH
from barnabas.server.cluster.formatting import check_places, prepare_directories
from barnabas.server.requests.registry import HANDLERS, Registration
from barnabas.server.scheduling.background import Background

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.coordination.cluster.lifecycle import ThisNode
    from barnabas.server.cluster.controller import Controller
    from barnabas.server.config import BrokerConfig
    from barnabas.server.topics.topics import Topics
    from barnabas.storage.fs.interface import Files
    from barnabas.storage.manager.loading import IsStray
    from barnabas.storage.manager.manager import LogManager


class Owner:
    """
    The owner of log directories.
    """

    changes_files: bool = True
    """Whether what is written reaches the files, and whether an error of the disk is the end of a
    directory."""

    def view(self, files: Files) -> Files:
        """
        The file system that the broker works on, from the one below.
        """
        return files

    def background(self, clock: ServerClock) -> Background:
        """
        The tasks beside the requests.
        """
        return Background(clock)

    def settle(self, config: BrokerConfig, files: Files) -> BrokerConfig:
        """
        The options, with what the directories decide. Called first, and may read files.

        Raises:
            KafkaError: the directories cannot be used.
        """
        check_places([*config.log_directories, config.metadata_directory], files)
        return config

    def cluster_id(self, config: BrokerConfig, files: Files, now_ms: int) -> str:
        """
        The id of the cluster of the directories, which are locked. New ones are formatted.

        Raises:
            KafkaError: the directories do not belong together, or to this node.
        """
        return prepare_directories(
            list(dict.fromkeys([*config.log_directories, config.metadata_directory])),
            metadata_dir=config.metadata_directory,
            node_id=config.node_id,
            cluster_id=config.barnabas_cluster_id or None,
            files=files,
            now_ms=now_ms,
        )

    def is_stray(self, topics: Topics) -> IsStray:
        """
        Whether a log belongs to no topic.
        """
        return topics.is_stray

    async def register(
        self, controller: Controller, node: ThisNode, log_manager: LogManager, epoch: int | None
    ) -> None:
        """
        Make this node a broker of its cluster, which leads its partitions.

        Args:
            epoch: that of the last broker, if it was stopped cleanly.
        """
        await controller.register(node, clean_epoch=NO_BROKER_EPOCH if epoch is None else epoch)
        await controller.unfence()

    def maintain(self, log_manager: LogManager) -> None:
        """
        Start retention, flushes and checkpoints.
        """
        log_manager.start()

    def handlers(self) -> Mapping[int, Registration]:
        """
        The handlers of requests by API key.
        """
        return HANDLERS

    async def resign(self, controller: Controller) -> None:
        """
        Give up the partitions that this node leads.
        """
        await controller.stop()

    def said_when_ready(self) -> str:
        """
        What the log says of the directories when clients are served.
        """
        return ""
