"""
What a read-only broker does with log directories (``barnabas serve --read-only``): it shows them,
of whatever node and cluster they are. What changes all the same, such as the members of groups,
stays in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.server.cluster.read_only import find_directories
from barnabas.server.ownership.owner import Owner
from barnabas.server.requests.read_only import ReadOnlyHandlers
from barnabas.server.resources.descriptors import most_open_files
from barnabas.server.scheduling.background import Background, NoLoops
from barnabas.storage.readonly.overlay_files import OverlayFiles

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.coordination.cluster.lifecycle import ThisNode
    from barnabas.server.cluster.controller import Controller
    from barnabas.server.config import BrokerConfig
    from barnabas.server.requests.registry import Registration
    from barnabas.server.topics.topics import Topics
    from barnabas.storage.fs.interface import Files
    from barnabas.storage.manager.loading import IsStray
    from barnabas.storage.manager.manager import LogManager

MOST_OPEN: Final = 1024
"""
The most files that are open at a time, and the most maps of files. Not tuned.
"""


class Viewer(Owner):
    """
    The one that owns nothing, in the place of the owner of log directories.
    """

    changes_files = False

    def __init__(self) -> None:
        self._cluster_id = ""

    def view(self, files: Files) -> Files:
        allowed = most_open_files() or MOST_OPEN
        return OverlayFiles(files, most_open=min(allowed // 2, MOST_OPEN))

    def background(self, clock: ServerClock) -> Background:
        return NoLoops(clock)

    def settle(self, config: BrokerConfig, files: Files) -> BrokerConfig:
        settled, self._cluster_id = find_directories(config, files)
        return settled

    def cluster_id(self, config: BrokerConfig, files: Files, now_ms: int) -> str:
        return self._cluster_id

    def is_stray(self, topics: Topics) -> IsStray:
        return topics.is_foreign

    async def register(
        self, controller: Controller, node: ThisNode, log_manager: LogManager, epoch: int | None
    ) -> None:
        await controller.present(node, lambda each: log_manager.get_log(each) is not None)

    def maintain(self, log_manager: LogManager) -> None:
        """
        Do nothing: what retention would delete is shown.
        """

    def handlers(self) -> Mapping[int, Registration]:
        return ReadOnlyHandlers(super().handlers())

    async def resign(self, controller: Controller) -> None:
        """
        Do nothing: nobody else leads in the meantime.
        """

    def said_when_ready(self) -> str:
        return "read-only: the directories are shown as they are, and nothing is written"
