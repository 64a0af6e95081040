"""
What a request wants of the configs of a resource, and the records that bring it about.

Nothing is changed here: the configs that are stored and the wish go in, records or the reason
against them come out (Kafka ``ConfigurationControlManager``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Final, Protocol

from barnabas.protocol.errors import InvalidConfig, InvalidRequest
from barnabas.protocol.internal_topics.metadata_records import ClearElrRecord, ConfigRecord
from barnabas.protocol.structs import NamedTuple, struct
from barnabas.server.cluster.image import MetadataImage, ResourceType, Versioned
from barnabas.server.cluster.partition_changes import MIN_INSYNC_REPLICAS
from barnabas.server.dynamic_config.admin.entries import ConfigEntry

MAX_CONFIG_VALUE_LENGTH: Final = 32_767


class Operation(IntEnum):
    """
    What is done with one option, with the numbers of the wire (KIP-339).
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """
    What is to become of one option.
    """

    name: str
    operation: int  # what a client sent, which need not be one that there is
    value: str | None


@struct(kw_only=True)
class AlterResource:
    """
    What is to become of one resource.
    """

    type: int
    name: str
    changes: Sequence[Change]
    replaces: bool = False  # options that are not named go back to what they are by default

    def check(self) -> None:
        """
        Raises:
            InvalidRequest: the changes make no sense, whatever resource they are for.
        """
        names = [change.name for change in self.changes]
        if len(set(names)) < len(names):
            raise InvalidRequest("Error due to duplicate config keys")
        missing = [
            change.name
            for change in self.changes
            if change.value is None and change.operation != Operation.DELETE
        ]
        if missing:
            raise InvalidRequest(f"Null value not supported for : {', '.join(missing)}")
        unknown = {change.operation for change in self.changes} - set(Operation)
        if unknown:
            raise InvalidRequest(f"Unknown operation type {min(unknown)}")


class ConfigKind(Protocol):
    """
    What is particular to one kind of resources.
    """

    def knows(self, option: str) -> bool:
        """
        Whether there is an option of that name: others may be stored, by another release.
        """

    def is_list(self, option: str) -> bool:
        """
        Whether that is an option to which items can be appended.
        """

    def default(self, option: str) -> str | None:
        """
        What items are appended to where nothing is set.
        """

    def prepare(self, wanted: AlterResource) -> None:
        """
        What is looked at before anything else.

        Raises:
            KafkaError: this may not become of the resource.
        """

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        """
        Raises:
            KafkaError: a resource may not have that name, or those configs.
        """

    def check_exists(self, name: str) -> None:
        """
        Raises:
            KafkaError: there is no such resource to give configs to.
        """

    def describe(self, name: str) -> Sequence[ConfigEntry]:
        """
        The options of a resource.

        Raises:
            KafkaError: there is none of that name.
        """


def plan(image: MetadataImage, wanted: AlterResource, kind: ConfigKind) -> list[Versioned]:
    """
    The records after which a resource has the configs that are wanted.

    Raises:
        KafkaError: it may not have them.
    """
    stored = image.config(wanted.type, wanted.name)
    changed: dict[str, str | None] = {}
    for change in wanted.changes:
        value = changed_value(change, stored, kind.is_list, kind.default)
        # A broker's option is written again even if it stays, as in Kafka, where that makes
        # brokers read files anew.
        if value != stored.get(change.name) or wanted.type == ResourceType.BROKER:
            changed[change.name] = value
    named = {change.name for change in wanted.changes}
    dropped = [name for name in stored if wanted.replaces and name not in named]
    changed |= dict.fromkeys(dropped)
    _check_values(image, wanted, changed)
    left = {name: value for name, value in stored.items() if kind.knows(name)} | changed
    kind.check(wanted.name, {name: value for name, value in left.items() if value is not None})
    kind.check_exists(wanted.name)
    return [
        (
            ConfigRecord(
                resource_type=wanted.type, resource_name=wanted.name, name=name, value=value
            ),
            0,
        )
        for name, value in changed.items()
    ]


def changed_value(
    change: Change,
    stored: Mapping[str, str],
    is_list: Callable[[str], bool],
    default: Callable[[str], str | None],
) -> str | None:
    """
    What is to be stored for an option after a change; ``None`` for nothing.

    Raises:
        InvalidConfig: items are for an option that is no list.
    """
    if change.operation == Operation.DELETE:
        return None
    assert change.value is not None, "a value was asked for"
    if change.operation == Operation.SET:
        return change.value
    operation = Operation(change.operation)
    if not is_list(change.name):
        raise InvalidConfig(
            f"Can't {operation.name} to key {change.name} because its type is not LIST."
        )
    current = stored.get(change.name, default(change.name)) or ""
    items = [item for item in current.split(",") if item]
    for item in change.value.split(","):
        if operation is Operation.SUBTRACT:
            if item in items:
                items.remove(item)
        elif item not in items:
            items.append(item)
    return ",".join(items)


def clear_elr_records(image: MetadataImage, made: Sequence[Versioned]) -> list[Versioned]:
    """
    What has to be written besides *made*: who may lead depends on the minimum in sync, so that
    Kafka starts over whenever that is changed (KIP-966).
    """
    if not image.elr_enabled:
        return []
    return [
        (ClearElrRecord(topic_name=record.resource_name if is_topic else ""), 0)
        for record, _ in made
        if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS
        for is_topic in [record.resource_type == ResourceType.TOPIC]
    ]


def _check_values(
    image: MetadataImage, wanted: AlterResource, changed: Mapping[str, str | None]
) -> None:
    is_broker = wanted.type == ResourceType.BROKER
    for name, value in changed.items():
        if is_broker and image.elr_enabled and name == MIN_INSYNC_REPLICAS:
            if wanted.name:
                raise InvalidConfig(
                    "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
                )
            if value is None:
                raise InvalidConfig(
                    "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
                )
        if value is not None and len(value) > MAX_CONFIG_VALUE_LENGTH:
            raise InvalidConfig(
                "The configuration value cannot be added because it exceeds the maximum value size"
                f" of {MAX_CONFIG_VALUE_LENGTH} bytes."
            )
