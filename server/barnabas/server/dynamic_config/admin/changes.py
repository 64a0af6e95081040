"""
The change of a resource's configs, and the records that make it.

The functions here are pure: from the stored configs and a request they compute the records, or the
error that refuses it (Kafka's ``ConfigurationControlManager``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum

from barnabas.coordination.cluster.image import (
    ConfigResourceType,
    MetadataImage,
    Versioned,
    config_record,
)
from barnabas.coordination.cluster.partition_changes import MIN_INSYNC_REPLICAS
from barnabas.coordination.cluster.request_limits import check_config_value
from barnabas.protocol.errors import InvalidConfig, InvalidRequest, joined
from barnabas.protocol.internal_topics.metadata_records import ClearElrRecord, ConfigRecord
from barnabas.protocol.structs import NamedTuple, struct
from barnabas.server.dynamic_config.admin.entries import ConfigEntry


class ConfigOperation(IntEnum):
    """
    The operation on one option, with its number on the wire (KIP-339).
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """
    The change of one option.
    """

    name: str
    operation: int  # as the client sent it: it may be unknown
    value: str | None


@struct(kw_only=True)
class AlterResource:
    """
    The changes of one resource.
    """

    type: int
    name: str
    changes: Sequence[ConfigChange]
    replaces: bool = False  # options without a change return to their defaults

    def check(self) -> None:
        """
        Raises:
            InvalidRequest: the changes are invalid for any resource and any client.
        """
        names = [change.name for change in self.changes]
        if len(set(names)) < len(names):
            raise InvalidRequest("Error due to duplicate config keys")
        missing = [
            change.name
            for change in self.changes
            if change.value is None and change.operation != ConfigOperation.DELETE
        ]
        if missing:
            raise InvalidRequest(f"Null value not supported for : {joined(missing, ', ')}")

    def check_operations(self) -> None:
        """
        Raises:
            InvalidRequest: an operation is unknown.
        """
        unknown = {change.operation for change in self.changes} - set(ConfigOperation)
        if unknown:
            raise InvalidRequest(f"Unknown operation type {min(unknown)}")


class ConfigKind:
    """
    The options and rules of one kind of resources. By default every change is allowed.
    """

    def knows(self, option: str) -> bool:
        """
        Whether the option exists; another release may have stored others.
        """
        raise NotImplementedError

    def is_list(self, option: str) -> bool:
        """
        Whether items can be appended to the option.
        """
        raise NotImplementedError

    def default(self, option: str) -> str | None:
        """
        The value of an option that is not set, which items are appended to.
        """
        raise NotImplementedError

    def describe(self, name: str) -> Sequence[ConfigEntry]:
        """
        The options of a resource.

        Raises:
            KafkaError: the resource does not exist.
        """
        raise NotImplementedError

    def prepare(self, wanted: AlterResource) -> None:
        """
        Check a change before it is known whether the client may make it.

        Raises:
            KafkaError: the change is not allowed.
        """

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        """
        Check all configs of a resource after a change.

        Raises:
            KafkaError: the resource cannot have this name, or these configs.
        """

    def check_exists(self, name: str) -> None:
        """
        Raises:
            KafkaError: the resource does not exist.
        """


def plan(image: MetadataImage, wanted: AlterResource, kind: ConfigKind) -> list[Versioned]:
    """
    The records that make the changes of a resource.

    Raises:
        KafkaError: the kind refuses them.
    """
    stored = image.config(wanted.type, wanted.name)
    changed: dict[str, str | None] = {}
    for change in wanted.changes:
        value = changed_value(change, stored, kind.is_list, kind.default)
        # As in Kafka a broker's option is written again even if it stays the same: there it makes
        # brokers reload files.
        if value != stored.get(change.name) or wanted.type == ConfigResourceType.BROKER:
            changed[change.name] = value
    named = {change.name for change in wanted.changes}
    dropped = [name for name in stored if wanted.replaces and name not in named]
    changed |= dict.fromkeys(dropped)
    _check_values(image, wanted, changed)
    left = {name: value for name, value in stored.items() if kind.knows(name)} | changed
    kind.check(wanted.name, {name: value for name, value in left.items() if value is not None})
    kind.check_exists(wanted.name)
    return [config_record(wanted.type, wanted.name, name, value) for name, value in changed.items()]


def changed_value(
    change: ConfigChange,
    stored: Mapping[str, str],
    is_list: Callable[[str], bool],
    default: Callable[[str], str | None],
) -> str | None:
    """
    The stored value of an option after a change; ``None`` for none.

    Raises:
        InvalidConfig: the operation is for lists, and the option is none.
    """
    if change.operation == ConfigOperation.DELETE:
        return None
    assert change.value is not None, "a value was asked for"
    if change.operation == ConfigOperation.SET:
        return change.value
    operation = ConfigOperation(change.operation)
    if not is_list(change.name):
        raise InvalidConfig(
            f"Can't {operation.name} to key {change.name} because its type is not LIST."
        )
    current = stored.get(change.name, default(change.name)) or ""
    items = [item for item in current.split(",") if item]
    for item in change.value.split(","):
        if operation is ConfigOperation.SUBTRACT:
            if item in items:
                items.remove(item)
        elif item not in items:
            items.append(item)
    return ",".join(items)


def clear_elr_records(image: MetadataImage, made: Sequence[Versioned]) -> list[Versioned]:
    """
    The records to write besides *made*: a change of ``min.insync.replicas`` clears the eligible
    leader replicas (KIP-966).
    """
    if not image.elr_enabled:
        return []
    return [
        (ClearElrRecord(topic_name=record.resource_name if is_topic else ""), 0)
        for record, _ in made
        if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS
        for is_topic in [record.resource_type == ConfigResourceType.TOPIC]
    ]


def _check_values(
    image: MetadataImage, wanted: AlterResource, changed: Mapping[str, str | None]
) -> None:
    is_broker = wanted.type == ConfigResourceType.BROKER
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
        if value is not None:
            check_config_value(value)
