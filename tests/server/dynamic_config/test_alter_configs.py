"""
IncrementalAlterConfigs and AlterConfigs, on a node without a network. What is expected is what an
Apache Kafka 4.3.1 answered, but for sentences that name its Java classes.
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
from barnabas.server.dynamic_config.admin.changes import Change, changed_value
from barnabas.testing.disks.crashable import CrashableFiles
from tests.support.cluster_node import ClusterNode, ask, started
from tests.support.config_requests import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    VERSIONS,
    change,
    change_all,
    describe,
    replace,
    told,
)

E = ErrorCode
FINE = [(E.NONE, None)]


async def told_by(node: ClusterNode, request: Any) -> Any:
    return told(await ask(node, request, VERSIONS[request.api.key]))


async def value_of(node: ClusterNode, resource_type: int, name: str, option: str) -> Any:
    """
    The value of one option and its source.
    """
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
        (
            [("retention.ms", SET, "-2")],
            E.INVALID_CONFIG,
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            [("segment.bytes", SET, "1000")],
            E.INVALID_CONFIG,
            "Invalid value 1000 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            [("cleanup.policy", SET, "delete,,compact")],
            E.INVALID_CONFIG,
            "Configuration 'cleanup.policy' values must not be empty.",
        ),
        (
            [("cleanup.policy", SET, "delete,foo")],
            E.INVALID_CONFIG,
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact,"
            " delete",
        ),
        (
            [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
            E.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            [("retention.ms", SET, None), ("segment.ms", APPEND, None)],
            E.INVALID_REQUEST,
            "Null value not supported for : retention.ms, segment.ms",
        ),
        (
            [("retention.ms", APPEND, "5")],
            E.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            [("foo", SUBTRACT, "5")],
            E.INVALID_CONFIG,
            "Can't SUBTRACT to key foo because its type is not LIST.",
        ),
        (
            [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")],
            E.INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        (
            [("remote.storage.enable", SET, "true")],
            E.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured"
            " with remote log storage.",
        ),
        (
            [("compression.gzip.level", SET, "0")],
            E.INVALID_CONFIG,
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and"
            " 9 or equal to -1",
        ),
        ([("segment.ms", 9, "5")], E.INVALID_REQUEST, "Unknown operation type 9"),
    ],
)
async def test_what_a_topic_cannot_be_told(
    changes: list[tuple[str, int, str | None]], code: ErrorCode, message: str
) -> None:
    """
    The reason is given, and nothing of the topic changes, nor is it when only asked.
    """
    node = await started()
    await node.create("t", flush_ms="7")
    both = [("flush.ms", SET, "8"), *changes]
    before = node.log.end_offset

    assert [(code, message)] == await told_by(node, change(TOPIC, "t", *both))
    assert [(code, message)] == await told_by(node, change(TOPIC, "t", *both, validate=True))

    assert ("7", 1) == await value_of(node, TOPIC, "t", "flush.ms")
    assert before == node.log.end_offset


async def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    """
    Which is more than Kafka says.
    """
    node = await started()
    await node.create("t")

    [(code, message)] = await told_by(node, change(TOPIC, "t", ("retention.sec", SET, "5")))

    assert code == E.INVALID_CONFIG
    assert "Unknown topic config name: retention.sec; did you mean retention.ms?" == message


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ([("cleanup.policy", APPEND, "compact")], ("delete,compact", 1)),
        ([("cleanup.policy", APPEND, "delete")], ("delete", 1)),
        ([("cleanup.policy", APPEND, "delete,delete,compact")], ("delete,compact", 1)),
        ([("cleanup.policy", SUBTRACT, "delete")], ("", 1)),
        ([("cleanup.policy", SUBTRACT, "compact")], ("delete", 1)),
        ([("cleanup.policy", SET, "compact")], ("compact", 1)),
        ([("cleanup.policy", SET, "delete,delete")], ("delete", 1)),
        ([("cleanup.policy", SET, "")], ("", 1)),
        ([("cleanup.policy", DELETE, None)], ("delete", 5)),
        ([("cleanup.policy", DELETE, "ignored")], ("delete", 5)),
        ([("foo.bar", DELETE, None)], ("delete", 5)),
        ([], ("delete", 5)),
    ],
)
async def test_changes_of_a_list(
    changes: list[tuple[str, int, str | None]], value: tuple[str, int]
) -> None:
    """
    Items are added to and taken from what counts so far, be it set or the default.
    """
    node = await started()
    await node.create("t")

    assert FINE == await told_by(node, change(TOPIC, "t", *changes))

    assert value == await value_of(node, TOPIC, "t", "cleanup.policy")


def test_items_are_taken_from_what_is_stored() -> None:
    """
    One at a time, the first that is the same.
    """
    stored = {"l": "a,b,a"}

    def change_of(operation: int, value: str) -> str | None:
        return changed_value(Change("l", operation, value), stored, lambda _: True, lambda _: "z")

    assert "b,a" == change_of(SUBTRACT, "a")
    assert "b" == change_of(SUBTRACT, "a,a")
    assert "a,b,a,c" == change_of(APPEND, "c,b")


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("nope", E.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."),
        ("", E.INVALID_REQUEST, "Default topic resources are not allowed."),
        (
            "b@d",
            E.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'b@d' contains one or more characters other than ASCII"
            " alphanumerics, '.', '_' and '-'",
        ),
    ],
)
async def test_topics_that_cannot_be_told_anything(
    name: str, code: ErrorCode, message: str
) -> None:
    node = await started()

    assert [(code, message)] == await told_by(node, change(TOPIC, name, ("flush.ms", SET, "5")))
    assert [(code, message)] == await told_by(node, replace(TOPIC, name, ("flush.ms", "5")))


async def test_each_resource_succeeds_or_fails_by_itself() -> None:
    node = await started()
    await node.create("t")
    await node.create("p")

    answer = await told_by(
        node,
        change_all(
            (TOPIC, "t", [("flush.ms", SET, "x")]),
            (TOPIC, "p", [("flush.ms", SET, "700")]),
            (77, "q", [("flush.ms", SET, "700")]),
        ),
    )

    assert [E.INVALID_CONFIG, E.NONE, E.INVALID_REQUEST] == [code for code, _ in answer]
    assert "Unknown resource type 77" == answer[2][1]
    assert ("700", 1) == await value_of(node, TOPIC, "p", "flush.ms")


async def test_a_resource_that_is_named_twice_stays_as_it_is() -> None:
    node = await started()
    await node.create("t")
    await node.create("p")
    refused = (E.INVALID_REQUEST, "Each resource must appear at most once.")

    answer = await told_by(
        node,
        change_all(
            (TOPIC, "t", [("flush.ms", SET, "1")]),
            (TOPIC, "p", [("flush.ms", SET, "3")]),
            (TOPIC, "t", [("flush.ms", SET, "2")]),
        ),
    )

    assert [refused, (E.NONE, None), refused] == answer
    assert (str(2**63 - 1), 5) == await value_of(node, TOPIC, "t", "flush.ms")


async def test_what_was_validated_only_is_not_there() -> None:
    node = await started()
    await node.create("t")
    before = node.log.end_offset

    assert FINE == await told_by(node, change(TOPIC, "t", ("flush.ms", SET, "7"), validate=True))
    assert FINE == await told_by(node, replace(TOPIC, "t", ("flush.ms", "7"), validate=True))

    assert before == node.log.end_offset


async def test_all_configs_are_replaced() -> None:
    """
    What the old request does not name goes back to its default.
    """
    node = await started()
    await node.create("t", retention_ms="1", flush_ms="2")

    assert FINE == await told_by(node, replace(TOPIC, "t", ("segment.ms", "3"), ("flush.ms", "2")))

    assert {"segment.ms": "3", "flush.ms": "2"} == dict(node.configs.of("t"))
    assert FINE == await told_by(node, replace(TOPIC, "t"))
    assert {} == dict(node.configs.of("t"))


async def test_what_an_older_release_stored_is_in_nobodys_way() -> None:
    """
    Options that are gone stay until they are deleted, and do not spoil other changes.
    """
    node = await started()
    await node.create("t")
    stored = node.log.image.configs.setdefault((TOPIC, "t"), {})
    stored["message.format.version"] = "2.8"

    assert FINE == await told_by(node, change(TOPIC, "t", ("flush.ms", SET, "2")))
    assert {"message.format.version", "flush.ms"} == set(node.configs.of("t"))
    assert FINE == await told_by(node, change(TOPIC, "t", ("message.format.version", DELETE, None)))

    assert {"flush.ms": "2"} == dict(node.configs.of("t"))


async def test_changes_outlive_a_restart() -> None:
    """
    Also when the machine crashes: they are on the disk before they are answered.
    """
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


async def test_who_is_eligible_starts_over_with_the_minimum_in_sync(
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
        (
            "1",
            [("log.retention.ms", SET, "soon")],
            E.INVALID_REQUEST,
            "Invalid value soon for configuration log.retention.ms: Not a number of type LONG",
        ),
        ("1", [("log.retention.ms", SET, "0")], E.INVALID_REQUEST, None),
        (
            "1",
            [("num.partitions", SET, "4"), ("node.id", SET, "5")],
            E.INVALID_REQUEST,
            "Cannot update these configs dynamically: [node.id, num.partitions]",
        ),
        (
            "",
            [("log.roll.hours", SET, "7")],
            E.INVALID_REQUEST,
            "Cannot update these configs dynamically: [log.roll.hours]",
        ),
        (
            "",
            [("offsets.topic.replication.factor", SET, "1")],
            E.INVALID_REQUEST,
            "Cannot update these configs dynamically: [offsets.topic.replication.factor]",
        ),
        (
            "1",
            [("controller.quorum.fetch.timeout.ms", SET, "1")],
            E.INVALID_REQUEST,
            "Cannot update these configs dynamically: [controller.quorum.fetch.timeout.ms]",
        ),
        (
            "1",
            [("ssl.keystore.location", SET, "/x")],
            E.INVALID_REQUEST,
            "These security configs can be dynamically updated only per-listener using the listener"
            " prefix: [ssl.keystore.location]",
        ),
        (
            "",
            [("ssl.protocol", SET, "TLSv1.3")],
            E.INVALID_REQUEST,
            "Cannot update these configs at default cluster level, broker id must be specified:"
            " [ssl.protocol]",
        ),
        (
            "1",
            [("listener.security.protocol.map", SET, "PLAINTEXT:PLAINTEXT")],
            E.INVALID_REQUEST,
            "Cannot update these configs dynamically: [listener.security.protocol.map]",
        ),
        ("1", [("foo", APPEND, "5")], E.INVALID_CONFIG, "Unknown config name: foo"),
        (
            "1",
            [("log.retention.ms", APPEND, "5")],
            E.INVALID_CONFIG,
            "Config value append is not allowed for config key: log.retention.ms",
        ),
        (
            "1",
            [("log.retention.ms", SUBTRACT, "5")],
            E.INVALID_CONFIG,
            "Config value subtract is not allowed for config key: log.retention.ms",
        ),
        (
            "2",
            [("log.retention.ms", SET, "5")],
            E.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            "1_0",
            [("log.retention.ms", SET, "5")],
            E.INVALID_REQUEST,
            "Node id must be an integer, but it is: 1_0",
        ),
        (
            "1",
            [("min.insync.replicas", SET, "2")],
            E.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        (
            "",
            [("min.insync.replicas", DELETE, None)],
            E.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
        (
            "1",
            [("background.threads", SET, "21")],
            E.INVALID_REQUEST,
            "Dynamic thread count update validation failed for background.threads=21, value should"
            " not be greater than double the current value 10",
        ),
        (
            "1",
            [("num.io.threads", SET, "3")],
            E.INVALID_REQUEST,
            "Dynamic thread count update validation failed for num.io.threads=3, value should be at"
            " least half the current value 8",
        ),
        (
            "",
            [("log.cleaner.threads", SET, "3")],
            E.INVALID_REQUEST,
            "Log cleaner threads cannot be increased to more than double the current value 1",
        ),
        ("", [("log.cleaner.threads", SET, "0")], E.INVALID_REQUEST, None),
        ("", [("log.cleaner.dedupe.buffer.size", SET, "1000")], E.INVALID_REQUEST, None),
        (
            "",
            [("log.local.retention.ms", SET, "-1")],
            E.INVALID_REQUEST,
            "Invalid value -1 for configuration log.local.retention.ms: Value must not be -1 as"
            " log.retention.ms value is set as 604800000.",
        ),
        (
            "",
            [("log.local.retention.bytes", SET, "5"), ("log.retention.bytes", SET, "4")],
            E.INVALID_REQUEST,
            "Invalid value 5 for configuration log.local.retention.bytes: Value must not be more"
            " than log.retention.bytes property value: 4",
        ),
        ("", [("max.connections.per.ip", SET, "0")], E.INVALID_REQUEST, None),
        ("", [("max.connections.per.ip.overrides", SET, "a b:5")], E.INVALID_REQUEST, None),
        ("", [("max.connections.per.ip.overrides", SET, "::1:x")], E.INVALID_REQUEST, None),
    ],
)
async def test_what_a_broker_cannot_be_told(
    name: str, changes: list[tuple[str, int, str | None]], code: ErrorCode, message: str | None
) -> None:
    """
    The reason is given, and nothing changes.
    """
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
async def test_what_has_no_effect_here_is_kept(name: str, option: str) -> None:
    """
    As at a start, which takes it, too: Apache Kafka takes it while it runs.
    """
    node = await started()
    before = node.log.end_offset

    [(found, _)] = await told_by(node, change(BROKER, name, (option, SET, "a")))

    assert E.NONE == found
    assert before < node.log.end_offset


async def test_levels_of_a_broker() -> None:
    """
    What this broker was told counts more than what all were told, and that more than its file.
    """
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


async def test_a_list_of_a_broker() -> None:
    node = await started()
    await node.create("p")

    assert FINE == await told_by(
        node, change(BROKER, "1", ("log.cleanup.policy", APPEND, "compact"))
    )
    assert ("delete,compact", 2) == await value_of(node, TOPIC, "p", "cleanup.policy")
    assert FINE == await told_by(
        node, change(BROKER, "1", ("log.cleanup.policy", SUBTRACT, "delete"))
    )
    assert ("compact", 2) == await value_of(node, TOPIC, "p", "cleanup.policy")


async def test_what_is_of_no_effect_here_is_kept() -> None:
    """
    Kafka's options for what this broker does not have, and names for plugins that nobody knows:
    they may be secrets, so that their values are not told.
    """
    node = await started()

    assert FINE == await told_by(
        node,
        change(BROKER, "1", ("leader.replication.throttled.rate", SET, "10"), ("a.b", SET, "c")),
    )

    [(_, _, entries)] = await told_by(
        node, describe(BROKER, "1", "leader.replication.throttled.rate", "a.b")
    )
    assert {
        "a.b": (None, True, 2, True, [("a.b", None, 2)], 0),
        "leader.replication.throttled.rate": (
            "10",
            False,
            2,
            False,
            [("leader.replication.throttled.rate", "10", 2)],
            5,
        ),
    } == entries


async def test_an_unknown_name_is_of_the_level_that_is_asked_for() -> None:
    """
    Stored for one broker and for all, the latter are told of the latter alone.
    """
    node = await started()
    for name in ("1", ""):
        assert FINE == await told_by(node, change(BROKER, name, ("a.b", SET, "c")))

    [(_, _, every)] = await told_by(node, describe(BROKER, "", "a.b"))
    [(_, _, one)] = await told_by(node, describe(BROKER, "1", "a.b"))

    assert {"a.b": (None, True, 3, True, [("a.b", None, 3)], 0)} == every
    assert {"a.b": (None, True, 2, True, [("a.b", None, 2), ("a.b", None, 3)], 0)} == one


async def test_what_is_stored_for_brokers_and_cannot_count_is_passed_over() -> None:
    """
    An Apache Kafka may have left it; the node starts, and the next change is checked without it.
    """
    node = await started()
    stored = {"log.retention.ms": "soon", "num.partitions": "7", "log.cleaner.threads": "2"}
    node.log.image.configs[BROKER, "1"] = dict(stored)

    assert FINE == await told_by(node, change(BROKER, "1", ("log.segment.bytes", SET, "2000000")))

    brokers = node.configs.brokers
    assert {"log.cleaner.threads": "2", "log.segment.bytes": "2000000"} == brokers.of_this_broker
    assert (2, 1) == (brokers.current().log_cleaner_threads, brokers.current().num_partitions)


async def test_values_that_contradict_each_other_do_not_count_together() -> None:
    """
    Lags of compaction, the lesser of which is above the greater: the one that came first counts.
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


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code", "message"),
    [
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, "5"),
            E.INVALID_CONFIG,
            "consumer.session.timeout.ms must be greater than or equal to"
            " group.consumer.min.session.timeout.ms",
        ),
        (
            GROUP,
            "g",
            ("streams.num.standby.replicas", SET, "3"),
            E.INVALID_CONFIG,
            "streams.num.standby.replicas must be less than or equal to"
            " group.streams.max.standby.replicas",
        ),
        (
            GROUP,
            "",
            ("consumer.session.timeout.ms", SET, "50000"),
            E.INVALID_REQUEST,
            "Default group resources are not allowed.",
        ),
        (
            GROUP,
            "g",
            ("share.isolation.level", APPEND, "x"),
            E.INVALID_CONFIG,
            "Can't APPEND to key share.isolation.level because its type is not LIST.",
        ),
        (
            GROUP,
            "g",
            ("share.auto.offset.reset", SET, "by_duration:P"),
            E.INVALID_CONFIG,
            "Invalid value by_duration:P for configuration share.auto.offset.reset: The value must"
            " be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
        (
            METRICS,
            "",
            ("interval.ms", SET, "5000"),
            E.INVALID_REQUEST,
            "Subscription name can't be empty",
        ),
        (
            METRICS,
            "m",
            ("interval.ms", SET, "5"),
            E.INVALID_REQUEST,
            "Invalid value 5 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (
            METRICS,
            "m",
            ("foo", SET, "5"),
            E.INVALID_REQUEST,
            "Unknown client metrics configuration: foo",
        ),
        (
            METRICS,
            "m",
            ("match", SET, "client_id=["),
            E.INVALID_CONFIG,
            "Illegal client matching pattern: client_id=[",
        ),
        (
            METRICS,
            "m",
            ("metrics", APPEND, "c"),
            E.INVALID_CONFIG,
            "Can't APPEND to key metrics because its type is not LIST.",
        ),
        (
            LOGGER,
            "1",
            ("root", SET, "DEBUGX"),
            E.INVALID_CONFIG,
            "Cannot set the log level of root to DEBUGX as it is not a supported log level. Valid"
            " log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
        (
            LOGGER,
            "1",
            ("root", DELETE, None),
            E.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
        (
            LOGGER,
            "1",
            ("nope.nope", SET, "DEBUG"),
            E.INVALID_CONFIG,
            "Logger nope.nope does not exist!",
        ),
        (
            LOGGER,
            "1",
            ("root", APPEND, "DEBUG"),
            E.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            LOGGER,
            "2",
            ("root", SET, "DEBUG"),
            E.INVALID_REQUEST,
            "Unexpected node id. Expected 1, but received 2",
        ),
        (
            LOGGER,
            "",
            ("root", SET, "DEBUG"),
            E.INVALID_REQUEST,
            "Node id must be an integer, but it is: ",
        ),
    ],
)
async def test_what_others_cannot_be_told(
    kind: int, name: str, changes: tuple[str, int, str | None], code: ErrorCode, message: str
) -> None:
    node = await started()
    before = node.log.end_offset

    assert [(code, message)] == await told_by(node, change(kind, name, changes))
    assert before == node.log.end_offset


async def test_configs_of_a_group() -> None:
    """
    They are kept; what is not set comes from the broker's option for all groups.
    """
    files = CrashableFiles()
    node = await started(files)

    assert FINE == await told_by(
        node,
        change(
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, "50000"),
            ("share.auto.offset.reset", SET, "by_duration:PT1H"),
        ),
    )
    assert FINE == await told_by(
        node, change(BROKER, "", ("group.consumer.assignment.interval.ms", SET, "20"))
    )

    files.crash()
    node = await started(files)
    [(code, _, entries)] = await told_by(node, describe(GROUP, "g"))
    assert (E.NONE, 17) == (code, len(entries))
    assert (
        "50000",
        False,
        8,
        False,
        [
            ("consumer.session.timeout.ms", "50000", 8),
            ("group.consumer.session.timeout.ms", "45000", 5),
        ],
        3,
    ) == entries["consumer.session.timeout.ms"]
    assert ("20", 3) == await value_of(node, GROUP, "g", "consumer.assignment.interval.ms")
    assert ("by_duration:PT1H", 8) == await value_of(node, GROUP, "g", "share.auto.offset.reset")
    assert ("read_uncommitted", 5) == await value_of(node, GROUP, "g", "share.isolation.level")


async def test_configs_of_a_subscription() -> None:
    node = await started()

    assert FINE == await told_by(
        node,
        change(METRICS, "m", ("metrics", SET, "a,b"), ("match", SET, "client_id=x.*")),
    )

    assert [
        (
            E.NONE,
            "",
            {
                "interval.ms": ("300000", False, 5, False, [], 3),
                "match": ("client_id=x.*", False, 7, False, [("match", "client_id=x.*", 7)], 7),
                "metrics": ("a,b", False, 7, False, [("metrics", "a,b", 7)], 7),
            },
        )
    ] == await told_by(node, describe(METRICS, "m"))
    assert FINE == await told_by(node, replace(METRICS, "m"))
    assert ("", 5) == await value_of(node, METRICS, "m", "metrics")


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (GROUP, "", "Group name must not be empty"),
        (METRICS, "", "Client metrics subscription name must not be empty"),
        (LOGGER, "", "Broker id must not be empty"),
        (LOGGER, "x", "Broker id must be an integer, but it is: x"),
        (LOGGER, "2", "Unexpected broker id, expected 1 but received 2"),
    ],
)
async def test_what_cannot_be_described(kind: int, name: str, message: str) -> None:
    node = await started()

    assert [(E.INVALID_REQUEST, message, {})] == await told_by(node, describe(kind, name))


@pytest.fixture
def some_logger() -> Iterator[logging.Logger]:
    """
    A logger that is as before after the test.
    """
    some = logging.getLogger("barnabas.server.topics.topics")
    yield some
    some.setLevel(logging.NOTSET)


async def test_levels_of_loggers(some_logger: logging.Logger) -> None:
    """
    They are set and taken back in this process; nothing is stored.
    """
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


async def test_loggers_are_not_replaced() -> None:
    """
    The old request does not know them.
    """
    node = await started()

    assert [(E.INVALID_REQUEST, "Unknown resource type 8")] == await told_by(
        node, replace(LOGGER, "1", ("root", "ERROR"))
    )
