"""
The settings of a broker and its topics, read from its files and its configuration.

The metadata log is read as at a start of the broker, on a file system whose changes stay in memory;
a broker that runs has it at hand. The settings of ``explain --set`` take precedence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.protocol.structs import replace, struct
from barnabas.server.cluster.metadata_log import DIRECTORY_NAME, MetadataLog, log_config
from barnabas.server.config import BrokerConfig
from barnabas.server.config.sources import Settings, load_settings
from barnabas.server.dynamic_config.brokers import BrokerConfigs, ConfigSource
from barnabas.server.dynamic_config.topics import TopicConfigs
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.config.option_values import ConfigError, UnknownOption
from barnabas.storage.config.quantities import plain_value
from barnabas.storage.errors import KafkaError
from barnabas.storage.explain.known import BrokerTimes, Setting, TopicSettings
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.overlay_files import OverlayFiles
from barnabas.storage.state_files.file_names import CLUSTER_METADATA_TOPIC
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    import argparse

SUPPOSED: Final = "supposed"

_CHECK_INTERVAL: Final = "log.retention.check.interval.ms"
_CLEANER_ENABLED: Final = "log.cleaner.enable"
_CLEANER_BACKOFF: Final = "log.cleaner.backoff.ms"

_SOURCES: Final = {
    ConfigSource.DYNAMIC_TOPIC: "set for the topic",
    ConfigSource.DYNAMIC_BROKER: "set for this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "set for all brokers",
    ConfigSource.STATIC_BROKER: "from the configuration of the broker",
    ConfigSource.DEFAULT: "default",
}


@struct
class Suppositions:
    """
    The settings of ``--set``, which are not stored.
    """

    of_topics: Mapping[str, str]
    of_brokers: Mapping[str, str]

    @classmethod
    def parse(cls, assignments: Iterable[str]) -> Suppositions:
        """
        Args:
            assignments: ``name=value`` each, of options of topics or of brokers. A value may have a
                unit: ``retention.ms=7d``.

        Raises:
            ConfigError: a name or a value is not acceptable.
        """
        of_topics, of_brokers = {}, {}
        known = Settings()
        for assignment in assignments:
            name, equals, text = (part.strip() for part in assignment.partition("="))
            if not equals:
                raise ConfigError(f"--set {assignment}: it must look like --set name=value")
            text = plain_value(name, text)
            if name in LogConfig.options():
                LogConfig.parse({name: text})
                of_topics[name] = text
            elif name in BrokerConfig.options():
                known.add(name, text)
                of_brokers[name] = text
            else:
                raise UnknownOption(name, [*LogConfig.options(), *BrokerConfig.options()])
        return cls(of_topics, of_brokers)


class KnownCluster:
    """
    The settings of a broker, with and without suppositions.
    """

    def __init__(
        self,
        settings: Settings,
        suppositions: Suppositions,
        data_dirs: Iterable[Path] = (),
        *,
        files: Files,
        clock: Clock,
        image: MetadataImage | None = None,
        node_id: int | None = None,
    ) -> None:
        """
        Args:
            settings: of the broker, from its file and its environment.
            data_dirs: the log directories; by default those of *settings*.
            image: the metadata of a broker that runs; by default they are read from its files.
            node_id: likewise.

        Raises:
            ConfigError: the settings are not acceptable.
        """
        self._config = settings.config()
        supposed = replace(settings, texts={**settings.texts, **suppositions.of_brokers})
        self._supposed_config = supposed.config()
        self._suppositions = suppositions
        self._problem = ""
        self.data_dirs = tuple(data_dirs) or self._config.log_directories
        self._files = files
        self._clock = clock
        self._given_image = image
        self._given_node_id = node_id

    @cached_property
    def _node_id(self) -> int:
        if self._given_node_id is not None:
            return self._given_node_id
        for directory in self.data_dirs:
            try:
                properties = LogRoot(directory, self._files).meta_properties
            except (FileNotFoundError, KafkaError):
                continue
            if properties is not None and properties.node_id is not None:
                return properties.node_id
        return self._config.node_id

    @cached_property
    def _image(self) -> MetadataImage | None:
        if self._given_image is not None:
            return self._given_image
        for directory in self.data_dirs:
            if self._files.is_directory(directory / DIRECTORY_NAME):
                return self._read_metadata(directory)
        self._problem = "There is no metadata log here."
        return None

    def _read_metadata(self, directory: Path) -> MetadataImage | None:
        try:
            return MetadataLog.open(
                directory,
                node_id=self._node_id,
                config=self._config,
                files=OverlayFiles(self._files),
                clock=self._clock,
                failures=LogDirFailureChannel(),
            ).image
        except (KafkaError, ValueError) as error:
            self._problem = f"The metadata log in {directory} cannot be read: {error}"
            return None

    def _brokers(self, config: BrokerConfig) -> BrokerConfigs:
        return BrokerConfigs(config, self._image or MetadataImage(), self._node_id)

    @cached_property
    def times(self) -> BrokerTimes:
        brokers = self._brokers(self._supposed_config)
        return BrokerTimes(
            retention_check_interval_ms=brokers.effective(_CHECK_INTERVAL),
            cleaner_enabled=brokers.effective(_CLEANER_ENABLED),
            cleaner_backoff_ms=brokers.effective(_CLEANER_BACKOFF),
            settings={
                name: self._broker_setting(brokers, name)
                for name in (_CHECK_INTERVAL, _CLEANER_ENABLED, _CLEANER_BACKOFF)
            },
        )

    def _broker_setting(self, brokers: BrokerConfigs, name: str) -> Setting:
        value = brokers.values(name)[0]
        is_supposed = value.source is ConfigSource.STATIC_BROKER and (
            name in self._suppositions.of_brokers
        )
        source = SUPPOSED if is_supposed else _SOURCES[value.source]
        return Setting(name, value.value or "", source)

    def replicas_of(self, partition: TopicPartition) -> int | None:
        image = self._image
        topic = None if image is None else image.topics_by_name.get(partition.topic)
        registration = None if topic is None else topic.partitions.get(partition.partition)
        return None if registration is None else len(registration.replicas)

    def settings_of(self, topic: str) -> TopicSettings:
        image = self._image or MetadataImage()
        stored = self._log_config(topic, TopicConfigs(self._brokers(self._config), image))
        configs = TopicConfigs(self._brokers(self._supposed_config), image)
        config = self._log_config(topic, configs).overridden(self._suppositions.of_topics)
        if topic == CLUSTER_METADATA_TOPIC:
            settings = _as_settings(config)
        else:
            settings = {
                value.name: Setting(value.name, value.value or "", _SOURCES[value.source])
                for value in configs.describe(configs.of(topic))
            }
        for name, option in LogConfig.options().items():
            if name in self._suppositions.of_topics:
                text = option.format(option.parse(self._suppositions.of_topics[name])) or ""
                settings[name] = Setting(name, text, SUPPOSED)
            elif name in settings and self._counts(name, settings[name]):
                settings[name] = settings[name]._replace(source=SUPPOSED)
        if config == stored:
            config = stored  # No suppositions: one object, as many segments ask for that.
        return TopicSettings(
            config, stored, settings, tuple(self._in_vain(settings)), self._note(topic)
        )

    def _note(self, topic: str) -> str:
        image = self._image
        if image is None:
            return f"{self._problem} The settings of the topic itself are unknown."
        if topic == CLUSTER_METADATA_TOPIC or topic in image.topics_by_name:
            return ""
        return "The metadata of the cluster does not have the topic and its settings."

    def _log_config(self, topic: str, configs: TopicConfigs) -> LogConfig:
        if topic == CLUSTER_METADATA_TOPIC:
            return log_config(configs.brokers.static)
        return configs.log_config(topic)

    def _counts(self, name: str, setting: Setting) -> bool:
        """
        Whether the value of a topic's option comes from a supposed option of the broker.
        """
        synonyms = LogConfig.options()[name].synonyms
        return setting.source == _SOURCES[ConfigSource.STATIC_BROKER] and any(
            synonym in self._suppositions.of_brokers for synonym in synonyms
        )

    def _in_vain(self, settings: Mapping[str, Setting]) -> Iterable[str]:
        for supposed in self._suppositions.of_brokers:
            for name, option in LogConfig.options().items():
                if supposed in option.synonyms and settings[name].source != SUPPOSED:
                    setting = settings[name]
                    yield (
                        f"--set {supposed} changes nothing: {name} is {setting.value},"
                        f" {setting.source}."
                    )


def read_cluster(options: argparse.Namespace, files: Files, clock: Clock) -> KnownCluster:
    """
    The broker that the options of ``barnabas explain`` and the environment describe.

    Raises:
        ConfigError: a name or a value is not acceptable.
    """
    return KnownCluster(
        load_settings(file=options.config, environment=os.environ),
        Suppositions.parse(options.assignments),
        options.data_dirs,
        files=files,
        clock=clock,
    )


def _as_settings(config: LogConfig) -> dict[str, Setting]:
    """
    The settings of the metadata log, which is no topic: they come from options of the broker.
    """
    source = _SOURCES[ConfigSource.STATIC_BROKER]
    values = {
        name: option.format(getattr(config, name.replace(".", "_")))
        for name, option in LogConfig.options().items()
    }
    return {name: Setting(name, text, source) for name, text in values.items() if text is not None}
