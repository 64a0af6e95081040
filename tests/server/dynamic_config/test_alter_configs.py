"""
IncrementalAlterConfigs and AlterConfigs on a node without a network: what is stored, what has an
effect, and answers of our own. test_admin_answers.py compares the others with Apache Kafka's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.internal_topics.metadata_records import ClearElrRecord
from barnabas.server.cluster.controller import Controller
from barnabas.server.cluster.image import Versioned
from barnabas.server.dynamic_config.admin.changes import ConfigChange, changed_value
from barnabas.testing.disks.crashable import CrashableFiles
from tests.support.cluster_node import ClusterNode, ask, started
from tests.support.config_requests import (
    APPEND,
    BROKER,
    DELETE,
    LOGGER,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    VERSIONS,
    change,
    describe,
    replace,
    told,
)

E = ErrorCode
FINE = [(E.NONE, None)]


async def told_by(node: ClusterNode, request: Any) -> Any:
    return told(await ask(node, request, VERSIONS[request.api.key]))


async def value_of(node: ClusterNode, resource_type: int, name: str, option: str) -> Any:
    [(code, _, entries)] = await told_by(node, describe(resource_type, name, option))
    assert code == E.NONE
    value, _, source, *_ = entries[option]
    return value, source


# What may become of a topic


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        (
            [("retention.ms", SET, "soon")],
            E.INVALID_CONFIG,
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
        ([("segment.ms", 9, "5")], E.INVALID_REQUEST, "Unknown operation type 9"),
    ],
)
async def test_invalid_topic_config_is_refused_with_the_reason(
    changes: list[tuple[str, int, str | None]], code: ErrorCode, message: str
) -> None:
    node = await started()
    await node.create("t", flush_ms="7")
    both = [("flush.ms", SET, "8"), *changes]
    before = node.log.end_offset

    assert [(code, message)] == await told_by(node, change(TOPIC, "t", *both))
    assert [(code, message)] == await told_by(node, change(TOPIC, "t", *both, validate=True))

    assert ("7", 1) == await value_of(node, TOPIC, "t", "flush.ms")
    assert before == node.log.end_offset


async def test_client_metrics_subscription_with_an_unknown_option_is_refused() -> None:
    node = await started()
    request = change(METRICS, "m", ("interval.ms", SET, "1000"), ("foo", SET, "1"))

    assert [(E.INVALID_REQUEST, "Unknown client metrics configuration: foo")] == await told_by(
        node, request
    )


async def test_unknown_config_is_refused_with_a_suggestion() -> None:
    node = await started()
    await node.create("t")

    [(code, message)] = await told_by(node, change(TOPIC, "t", ("retention.sec", SET, "5")))

    assert code == E.INVALID_CONFIG
    assert "Unknown topic config name: retention.sec; did you mean retention.ms?" == message


def test_subtract_removes_the_first_equal_item_of_the_stored_list() -> None:
    stored = {"l": "a,b,a"}

    def change_of(operation: int, value: str) -> str | None:
        return changed_value(
            ConfigChange("l", operation, value), stored, lambda _: True, lambda _: "z"
        )

    assert "b,a" == change_of(SUBTRACT, "a")
    assert "b" == change_of(SUBTRACT, "a,a")
    assert "a,b,a,c" == change_of(APPEND, "c,b")


async def test_options_stored_by_an_older_release_do_not_block_changes() -> None:
    """
    Removed options stay until they are deleted.
    """
    node = await started()
    await node.create("t")
    stored = node.log.image.configs.setdefault((TOPIC, "t"), {})
    stored["message.format.version"] = "2.8"

    assert FINE == await told_by(node, change(TOPIC, "t", ("flush.ms", SET, "2")))
    assert {"message.format.version", "flush.ms"} == set(node.configs.of("t"))
    assert FINE == await told_by(node, change(TOPIC, "t", ("message.format.version", DELETE, None)))

    assert {"flush.ms": "2"} == dict(node.configs.of("t"))


async def test_config_changes_survive_restarts_and_crashes() -> None:
    files = CrashableFiles()
    node = await started(files)
    await node.create("t")
    await told_by(node, change(TOPIC, "t", ("retention.ms", SET, "12345")))
    await told_by(node, change(BROKER, "", ("log.segment.bytes", SET, "2000000")))

    files.crash()
    node = await started(files)

    assert ("12345", 1) == await value_of(node, TOPIC, "t", "retention.ms")
    assert ("2000000", 3) == await value_of(node, TOPIC, "t", "segment.bytes")
    [log] = node.log_manager.logs().values()
    assert (12345, 2_000_000) == (log.config.retention_ms, log.config.segment_bytes)


async def test_changed_min_insync_replicas_clears_eligible_leaders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    As in Kafka, which writes a record for it (KIP-966).
    """
    node = await started()
    await node.create("t")
    written: list[Versioned] = []

    async def write(made: Sequence[Versioned], *, atomic: bool = True) -> None:
        written.extend(made)
        await Controller.write(node.controller, made, atomic=atomic)

    monkeypatch.setattr(node.controller, "write", write)

    await told_by(node, change(TOPIC, "t", ("min.insync.replicas", SET, "2")))
    await told_by(node, change(BROKER, "", ("min.insync.replicas", SET, "2")))

    assert ["t", ""] == [r.topic_name for r, _ in written if isinstance(r, ClearElrRecord)]


# What may become of a broker


@pytest.mark.parametrize(
    ("name", "changes", "code", "message"),
    [
        ("1", [("log.retention.ms", SET, "0")], E.INVALID_REQUEST, None),
        (
            "1",
            [("listener.security.protocol.map", SET, "PLAINTEXT:PLAINTEXT")],
            E.INVALID_REQUEST,
            "Cannot update these configs dynamically: [listener.security.protocol.map]",
        ),
        ("", [("log.cleaner.threads", SET, "0")], E.INVALID_REQUEST, None),
        ("", [("log.cleaner.dedupe.buffer.size", SET, "1000")], E.INVALID_REQUEST, None),
        ("", [("max.connections.per.ip", SET, "0")], E.INVALID_REQUEST, None),
        ("", [("max.connections.per.ip.overrides", SET, "a b:5")], E.INVALID_REQUEST, None),
        ("", [("max.connections.per.ip.overrides", SET, "::1:x")], E.INVALID_REQUEST, None),
    ],
)
async def test_invalid_broker_config_is_refused_with_the_reason(
    name: str, changes: list[tuple[str, int, str | None]], code: ErrorCode, message: str | None
) -> None:
    node = await started()
    before = node.log.end_offset

    [(found, said)] = await told_by(node, change(BROKER, name, *changes))

    assert found == code
    assert said if message is None else said == message
    assert before == node.log.end_offset


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("1", "sasl.login.refresh.window.jitter"),
        ("1", "ssl.provider"),
        ("1", "principal.builder.class"),
        ("1", "metric.reporters"),
        ("", "metric.reporters"),
    ],
)
async def test_broker_option_without_effect_is_stored(name: str, option: str) -> None:
    node = await started()
    before = node.log.end_offset

    [(found, _)] = await told_by(node, change(BROKER, name, (option, SET, "a")))

    assert E.NONE == found
    assert before < node.log.end_offset


async def test_broker_config_takes_precedence_over_the_cluster_default_and_the_file() -> None:
    node = await started(log_retention_ms="300000")
    await node.create("p")

    await told_by(node, change(BROKER, "", ("log.retention.ms", SET, "200000")))
    assert ("200000", 3) == await value_of(node, TOPIC, "p", "retention.ms")
    await told_by(node, change(BROKER, "1", ("log.retention.ms", SET, "100000")))

    [(_, _, entries)] = await told_by(node, describe(BROKER, "1", "log.retention.ms"))
    assert (
        "100000",
        False,
        2,
        False,
        [
            ("log.retention.ms", "100000", 2),
            ("log.retention.ms", "200000", 3),
            ("log.retention.ms", "300000", 4),
            ("log.retention.hours", "168", 5),
        ],
        5,
    ) == entries["log.retention.ms"]
    await told_by(node, replace(BROKER, "1"))
    assert ("200000", 3) == await value_of(node, TOPIC, "p", "retention.ms")
    [log] = node.log_manager.logs().values()
    assert 200_000 == log.config.retention_ms


async def test_invalid_stored_broker_configs_are_ignored() -> None:
    """
    Apache Kafka may have stored them; the node starts.
    """
    node = await started()
    stored = {"log.retention.ms": "soon", "num.partitions": "7", "log.cleaner.threads": "2"}
    node.log.image.configs[BROKER, "1"] = dict(stored)

    assert FINE == await told_by(node, change(BROKER, "1", ("log.segment.bytes", SET, "2000000")))

    brokers = node.configs.brokers
    assert {"log.cleaner.threads": "2", "log.segment.bytes": "2000000"} == brokers.of_this_broker
    assert (2, 1) == (brokers.current().log_cleaner_threads, brokers.current().num_partitions)


async def test_contradicting_broker_configs_are_not_applied_together() -> None:
    """
    With a ``min.compaction.lag.ms`` above the maximum, the option that was set first applies.
    """
    node = await started()
    node.log.image.configs[BROKER, ""] = {
        "log.cleaner.min.compaction.lag.ms": "10",
        "log.cleaner.max.compaction.lag.ms": "5",
    }

    assert (10, 2**63 - 1) == (
        node.configs.default().min_compaction_lag_ms,
        node.configs.default().max_compaction_lag_ms,
    )


# Groups, subscriptions and loggers


@pytest.fixture
def some_logger() -> Iterator[logging.Logger]:
    some = logging.getLogger("barnabas.server.topics.topics")
    yield some
    some.setLevel(logging.NOTSET)


async def test_logger_levels_are_set_and_reset_without_being_stored(
    some_logger: logging.Logger,
) -> None:
    node = await started()
    before = node.log.end_offset
    name = some_logger.name

    assert FINE == await told_by(node, change(LOGGER, "1", (name, SET, "TRACE"), validate=True))
    assert logging.NOTSET == some_logger.level
    assert FINE == await told_by(node, change(LOGGER, "1", (name, SET, "ERROR")))

    assert logging.ERROR == some_logger.level
    [(_, _, entries)] = await told_by(node, describe(LOGGER, "1", name))
    assert {name: ("ERROR", False, 6, False, [], 0)} == entries
    assert FINE == await told_by(node, change(LOGGER, "1", (name, DELETE, None)))
    assert logging.NOTSET == some_logger.level
    assert before == node.log.end_offset
