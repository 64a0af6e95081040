"""
Asking ``barnabas explain`` without a process of its own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from barnabas.server.config import load_settings
from barnabas.server.dynamic_config.known_cluster import KnownCluster, Suppositions
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.command import add_arguments
from barnabas.storage.explain.known import BrokerTimes, TopicSettings
from barnabas.storage.explain.logs import ReadOnlyLogs
from barnabas.storage.explain.report import PartitionReport, report_on
from barnabas.storage.explain.run import explained
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.topic_partition import TopicPartition
from tests.support.clock import StillClock
from tests.support.logs import LogHome

NOW_MS = 1_795_240_000_000


class Explainer:
    def __init__(
        self,
        *data_dirs: Path,
        now_ms: int = NOW_MS,
        files: Files | None = None,
        **options: str,
    ) -> None:
        """
        Args:
            now_ms: what the clock says.
            options: of the broker, with ``_`` for ``.``.
        """
        self.data_dirs = data_dirs
        self.clock = StillClock(now_ms)
        self._files = files or DiskFiles()
        self._known: dict[tuple[str, ...], KnownCluster] = {}
        self._options = [f"{name.replace('_', '.')}={value}" for name, value in options.items()]

    def text(self, *arguments: str) -> str:
        """
        What the command prints.

        Raises:
            ExplainError, ConfigError: the command prints this error instead.
        """
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        options = parser.parse_args(arguments)
        return explained(
            options, self._cluster(tuple(options.assignments)), self._files, self.clock
        )

    def _cluster(self, assignments: tuple[str, ...]) -> KnownCluster:
        if assignments not in self._known:
            self._known[assignments] = KnownCluster(
                load_settings(assignments=self._options),
                Suppositions.parse(assignments),
                self.data_dirs,
                files=self._files,
                clock=self.clock,
            )
        return self._known[assignments]

    def facts(self, *arguments: str) -> dict[str, Any]:
        found = [json.loads(line) for line in self.all_facts(*arguments)]
        assert len(found) == 1
        return dict(found[0])

    def all_facts(self, *arguments: str) -> list[str]:
        return self.text(*arguments, "--format", "json").splitlines()


class StatedCluster:
    """
    A cluster with the configs that the test states.
    """

    def __init__(
        self,
        config: LogConfig,
        *,
        supposed: LogConfig | None = None,
        replicas: int | None = 1,
        check_interval_ms: int = 300_000,
        cleaner_enabled: bool = True,
    ) -> None:
        self.data_dirs = (Path("/data"),)
        self._settings = TopicSettings(supposed or config, config, {})
        self._replicas = replicas
        self.times = BrokerTimes(
            retention_check_interval_ms=check_interval_ms,
            cleaner_enabled=cleaner_enabled,
            cleaner_backoff_ms=15_000,
            settings={},
        )

    def settings_of(self, topic: str) -> TopicSettings:
        return self._settings

    def replicas_of(self, partition: TopicPartition) -> int | None:
        return self._replicas


def look_at(
    home: LogHome, *, supposed: LogConfig | None = None, now_ms: int | None = None, **facts: Any
) -> PartitionReport:
    """
    Report on the log of a home.

    Args:
        supposed: a configuration that replaces that of the home.
        facts: as ``StatedCluster``.
    """
    cluster = StatedCluster(home.config, supposed=supposed, **facts)
    logs = ReadOnlyLogs(cluster, home.files, home.clock)
    opened = logs.open(TopicPartition("t", 0))
    return report_on(opened, cluster.times, home.clock.now_ms() if now_ms is None else now_ms)
