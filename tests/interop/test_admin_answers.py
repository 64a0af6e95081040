"""
The same requests about configs, partitions and records to delete, sent to Barnabas and to an Apache
Kafka beside it: every field of the answers is the same, but for sentences where Kafka's speak of
its classes.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from tests.support.both_brokers import BothBrokers, assert_answered_alike
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
    grow,
    replace,
    told,
    trim,
)
from tests.support.server import batch, produce_request
from tests.support.topic_requests import creatable

pytestmark = pytest.mark.prove

TOPICS: Final = {
    "t": creatable("t"),
    "p": creatable("p", 2),
    "c": creatable("c", configs={"cleanup.policy": "compact"}),
    "cd": creatable("cd", configs={"cleanup.policy": "compact,delete"}),
    "e": creatable("e", configs={"cleanup.policy": ""}),
}
_WRAPPED: Final = re.compile(
    r"Invalid value org\.apache\.kafka\.common\.config\.ConfigException: (.*)"
    r" for configuration Invalid dynamic configuration"
)
_TWICE: Final = re.compile(r"(?<=: )Invalid value `[^`]*` for configuration \S+\. ")
_HINT: Final = re.compile(r"; did you mean .*\?$")


def change_topic(*changes: tuple[str, int, str | None]) -> Message:
    return change(TOPIC, "t", *changes)


def look(*options: str) -> Message:
    return describe(TOPIC, "t", *options)


def describe_all(*resources: tuple[int, str]) -> Message:
    request = describe(*resources[0])
    for each in resources[1:]:
        request.resources.extend(describe(*each).resources)
    return request


def grow_all(*topics: tuple[str, int]) -> Message:
    request = grow(*topics[0])
    for each in topics[1:]:
        request.topics.extend(grow(*each).topics)
    return request


ANSWERS: Final[dict[str, list[Message]]] = {
    "options of a topic": [
        change_topic(("retention.ms", SET, "5000")),
        look("retention.ms"),
        change_topic(("retention.sec", SET, "5")),
        change_topic(("retention.ms", SET, "soon")),
        change_topic(("retention.ms", SET, "-2")),
        change_topic(("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
        change_topic(("retention.ms", SET, None), ("segment.ms", APPEND, None)),
        change_topic(("retention.ms", APPEND, "5")),
        change_topic(("foo", APPEND, "5")),
        change_topic(("foo", SUBTRACT, "5")),
        change_topic(("flush.ms", SET, "8"), ("retention.ms", SET, "soon")),
        change_topic(("foo.bar", DELETE, None)),
        change_topic(("segment.ms", DELETE, None)),
        change_topic(("segment.bytes", SET, "1000")),
        change_topic(("segment.index.bytes", SET, "3000000000")),
        change_topic(("compression.type", SET, "foo")),
        change_topic(("compression.gzip.level", SET, "0")),
        change_topic(("compression.lz4.level", SET, "0")),
        change_topic(("compression.zstd.level", SET, "100")),
        change_topic(("min.cleanable.dirty.ratio", SET, "2")),
        change_topic(("min.cleanable.dirty.ratio", SET, "abc")),
        change_topic(("preallocate", SET, "yes")),
        change_topic(("preallocate", SET, "TRUE")),
        look("preallocate"),
        change_topic(("segment.ms", SET, " 800 ")),
        look("segment.ms"),
        change_topic(("message.timestamp.type", SET, "x")),
        change_topic(("message.format.version", SET, "3.0")),
        change_topic(("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")),
        change_topic(("remote.storage.enable", SET, "true")),
        change_topic(("min.insync.replicas", SET, "2")),
        look("min.insync.replicas"),
        change_topic(("min.insync.replicas", SET, "0")),
        change_topic(("min.insync.replicas", DELETE, None)),
        change_topic(("internal.segment.bytes", SET, "2000")),
        look("internal.segment.bytes"),
        change_topic(("internal.segment.bytes", DELETE, None)),
        change(TOPIC, "t", ("flush.ms", SET, "7"), validate=True),
        look("flush.ms"),
        change(TOPIC, "t", ("flush.ms", SET, "x"), validate=True),
        change_topic(),
        look(),
    ],
    "lists of a topic": [
        change_topic(("cleanup.policy", APPEND, "delete")),
        look("cleanup.policy"),
        change_topic(("cleanup.policy", DELETE, None)),
        change_topic(("cleanup.policy", APPEND, "compact")),
        look("cleanup.policy"),
        change_topic(("cleanup.policy", SUBTRACT, "delete")),
        look("cleanup.policy"),
        change_topic(("cleanup.policy", SUBTRACT, "compact")),
        look("cleanup.policy"),
        change_topic(("cleanup.policy", APPEND, "delete,delete,compact")),
        look("cleanup.policy"),
        change_topic(("cleanup.policy", SET, "delete,delete")),
        look("cleanup.policy"),
        change_topic(("cleanup.policy", SET, "")),
        look("cleanup.policy"),
        change_topic(("cleanup.policy", SET, "delete,,compact")),
        change_topic(("cleanup.policy", SET, "delete,foo")),
        change_topic(("cleanup.policy", DELETE, "x")),
        look("cleanup.policy"),
        change_topic(("leader.replication.throttled.replicas", APPEND, "1:1,2:2,1:1")),
        look("leader.replication.throttled.replicas"),
    ],
    "resources": [
        change(TOPIC, "nope", ("segment.ms", SET, "5")),
        change(TOPIC, "", ("segment.ms", SET, "5")),
        change(TOPIC, "b@d", ("segment.ms", SET, "5")),
        change(0, "t", ("segment.ms", SET, "5")),
        change(77, "t", ("segment.ms", SET, "5")),
        change_all(
            (TOPIC, "t", [("flush.ms", SET, "5")]),
            (TOPIC, "t", [("flush.ms", SET, "6")]),
            (TOPIC, "p", [("flush.ms", SET, "6")]),
        ),
        describe(TOPIC, "p", "flush.ms"),
        look("flush.ms"),
        change_all(
            (TOPIC, "t", [("flush.ms", SET, "x")]),
            (TOPIC, "p", [("flush.ms", SET, "700")]),
            (77, "q", [("flush.ms", SET, "700")]),
        ),
        describe(TOPIC, "p", "flush.ms"),
        change_all(),
        describe(TOPIC, ""),
        describe(TOPIC, "nope"),
        describe(TOPIC, "b@d"),
        describe(BROKER, "x"),
        describe(BROKER, "7"),
        describe(GROUP, ""),
        describe(METRICS, ""),
        describe(LOGGER, ""),
        describe(LOGGER, "x"),
        describe(LOGGER, "2"),
        describe_all((TOPIC, "b@d"), (TOPIC, "p")),
    ],
    "all options": [
        replace(TOPIC, "t", ("retention.ms", "1000"), ("segment.ms", "2000")),
        look(),
        replace(TOPIC, "t", ("retention.ms", None)),
        replace(TOPIC, "t", ("retention.ms", "x")),
        replace(TOPIC, "t", ("retention.ms", "4"), ("retention.ms", "5")),
        replace(TOPIC, "t", ("x", "4")),
        replace(TOPIC, "t", ("flush.ms", "4"), validate=True),
        replace(TOPIC, "t"),
        look(),
        replace(TOPIC, "nope", ("flush.ms", "5")),
        replace(TOPIC, "", ("flush.ms", "5")),
        replace(TOPIC, "b@d", ("flush.ms", "5")),
        replace(LOGGER, "1", ("root", "ERROR")),
        replace(77, "1", ("foo", "4")),
        replace(BROKER, "1", ("num.partitions", "4")),
    ],
    "options of brokers": [
        change(BROKER, "", ("log.retention.ms", SET, "86400000")),
        describe(BROKER, "", "log.retention.ms"),
        describe(BROKER, "1", "log.retention.ms"),
        describe(TOPIC, "p", "retention.ms"),
        change(BROKER, "1", ("log.retention.ms", SET, "96400000")),
        describe(BROKER, "1", "log.retention.ms"),
        describe(TOPIC, "p", "retention.ms"),
        change(BROKER, "1", ("log.retention.ms", SET, "soon")),
        change(BROKER, "1", ("log.retention.ms", APPEND, "5")),
        change(BROKER, "1", ("log.retention.ms", SUBTRACT, "5")),
        change(BROKER, "1", ("log.retention.ms", DELETE, None)),
        describe(BROKER, "1", "log.retention.ms"),
        change(BROKER, "", ("log.retention.ms", SET, "-2")),
        describe(TOPIC, "p", "retention.ms"),
        change(BROKER, "", ("log.retention.ms", DELETE, None)),
        describe(TOPIC, "p", "retention.ms"),
        change(BROKER, "1", ("log.cleanup.policy", APPEND, "compact")),
        describe(TOPIC, "p", "cleanup.policy"),
        change(BROKER, "1", ("log.cleanup.policy", SUBTRACT, "compact")),
        describe(TOPIC, "p", "cleanup.policy"),
        change(BROKER, "1", ("log.cleanup.policy", DELETE, None)),
        describe(TOPIC, "p", "cleanup.policy"),
        change(BROKER, "", ("log.roll.ms", SET, "60000")),
        describe(BROKER, "1", "log.roll.ms", "log.roll.hours"),
        describe(TOPIC, "p", "segment.ms"),
        change(BROKER, "", ("log.roll.ms", DELETE, None)),
        describe(TOPIC, "p", "segment.ms"),
        change(BROKER, "", ("log.flush.interval.ms", SET, "60000")),
        describe(BROKER, "1", "log.flush.interval.ms"),
        describe(TOPIC, "p", "flush.ms"),
        change(BROKER, "", ("log.flush.interval.ms", DELETE, None)),
        change(BROKER, "", ("log.segment.bytes", SET, "1000")),
        change(BROKER, "", ("log.segment.bytes", SET, "2000000"), validate=True),
        describe(BROKER, "", "log.segment.bytes"),
        change(BROKER, "1", ("log.retention.hours", SET, "5")),
        change(BROKER, "", ("num.partitions", SET, "5")),
        change(BROKER, "1", ("num.partitions", SET, "4"), ("node.id", SET, "5")),
        change(BROKER, "", ("log.roll.hours", SET, "7")),
        change(BROKER, "", ("offsets.topic.replication.factor", SET, "1")),
        change(BROKER, "1", ("controller.quorum.fetch.timeout.ms", SET, "1")),
        change(BROKER, "", ("ssl.protocol", SET, "TLSv1.3")),
        change(BROKER, "1", ("advertised.listeners", SET, "PLAINTEXT://:1")),
        change(BROKER, "2", ("log.retention.ms", SET, "5")),
        change(BROKER, "x", ("log.retention.ms", SET, "5")),
        change(BROKER, "-1", ("log.retention.ms", SET, "5")),
        change(BROKER, "1_0", ("log.retention.ms", SET, "5")),
        change(BROKER, "1", ("min.insync.replicas", SET, "2")),
        change(BROKER, "", ("min.insync.replicas", DELETE, None)),
        change(BROKER, "", ("min.insync.replicas", SET, "2")),
        describe(BROKER, ""),
        describe(TOPIC, "p", "min.insync.replicas"),
        change(BROKER, "", ("min.insync.replicas", SET, "1")),
        change(BROKER, "1", ("foo.bar", SET, "5")),
        describe(BROKER, "1", "foo.bar"),
        change(BROKER, "", ("foo.bar", SET, "5")),
        describe(BROKER, "", "foo.bar"),
        describe(BROKER, "1", "foo.bar"),
        change(BROKER, "", ("foo.bar", DELETE, None)),
        change(BROKER, "1", ("foo.baz", APPEND, "5")),
        change(BROKER, "1", ("foo.bar", DELETE, None)),
        change(BROKER, "1", ("leader.replication.throttled.rate", SET, "-1")),
        change(BROKER, "1", ("leader.replication.throttled.rate", SET, "10")),
        describe(BROKER, "1", "leader.replication.throttled.rate"),
        change(BROKER, "1", ("num.io.threads", SET, "100")),
        change(BROKER, "1", ("num.io.threads", SET, "3")),
        change(BROKER, "1", ("num.io.threads", SET, "0")),
        change(BROKER, "", ("background.threads", SET, "21")),
        change(BROKER, "", ("num.recovery.threads.per.data.dir", SET, "5")),
        change(BROKER, "", ("log.cleaner.threads", SET, "3")),
        change(BROKER, "", ("log.cleaner.threads", SET, "2")),
        describe(BROKER, "1", "log.cleaner.threads"),
        change(BROKER, "", ("log.cleaner.threads", DELETE, None)),
        change(BROKER, "", ("log.cleaner.io.buffer.load.factor", SET, "x")),
        change(BROKER, "", ("log.local.retention.ms", SET, "-1")),
        change(
            BROKER, "", ("log.local.retention.bytes", SET, "5"), ("log.retention.bytes", SET, "4")
        ),
        change(BROKER, "1", ("ssl.keystore.location", SET, "/x")),
        change(BROKER, "1", ("max.connections.per.ip.overrides", SET, "127.0.0.1:500")),
        describe(BROKER, "1", "max.connections.per.ip.overrides"),
        change(BROKER, "1", ("max.connections.per.ip.overrides", DELETE, None)),
        replace(BROKER, "1"),
    ],
    "groups and subscriptions": [
        change(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
        describe(GROUP, "g"),
        describe(GROUP, "other", "consumer.session.timeout.ms"),
        change(GROUP, "g", ("consumer.session.timeout.ms", SET, "5")),
        change(GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "500000")),
        change(GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "x")),
        change(GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "0")),
        change(GROUP, "g", ("consumer.assignment.interval.ms", SET, "99999999")),
        change(GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:PT1H")),
        change(GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:P")),
        change(GROUP, "g", ("share.isolation.level", SET, "x")),
        change(GROUP, "g", ("share.isolation.level", APPEND, "x")),
        change(GROUP, "g", ("share.record.lock.duration.ms", SET, "999999999")),
        change(GROUP, "g", ("streams.num.standby.replicas", SET, "3")),
        change(GROUP, "g", ("foo", SET, "5")),
        change(GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
        describe(GROUP, "g"),
        change(BROKER, "", ("group.consumer.assignment.interval.ms", SET, "20")),
        describe(GROUP, "g"),
        change(BROKER, "", ("group.consumer.assignment.interval.ms", DELETE, None)),
        replace(GROUP, "g"),
        describe(GROUP, "g"),
        change(METRICS, "m", ("interval.ms", SET, "5000"), ("metrics", SET, "a,b")),
        describe(METRICS, "m"),
        change(METRICS, "m", ("interval.ms", SET, "5")),
        change(METRICS, "m", ("interval.ms", SET, "x")),
        change(METRICS, "m", ("foo", SET, "x")),
        change(METRICS, "m", ("match", SET, "foo=x")),
        change(METRICS, "m", ("match", SET, "client_id=[")),
        change(METRICS, "m", ("match", SET, "client_id")),
        change(METRICS, "m", ("metrics", APPEND, "c")),
        change(METRICS, "m", ("metrics", SET, "a,a")),
        describe(METRICS, "m"),
        change(METRICS, "m", ("metrics", SET, "")),
        describe(METRICS, "m"),
        replace(METRICS, "m"),
        describe(METRICS, "m"),
        change(METRICS, "", ("interval.ms", SET, "5000")),
    ],
    "loggers": [
        change(LOGGER, "1", ("root", SET, "DEBUGX")),
        change(LOGGER, "1", ("root", SET, None)),
        change(LOGGER, "1", ("root", DELETE, None)),
        change(LOGGER, "1", ("nope.nope", SET, "DEBUG")),
        change(LOGGER, "1", ("root", APPEND, "DEBUG")),
        change(LOGGER, "1", ("root", SUBTRACT, "DEBUG")),
        change(LOGGER, "2", ("root", SET, "DEBUG")),
        change(LOGGER, "x", ("root", SET, "DEBUG")),
        change(LOGGER, "", ("root", SET, "DEBUG")),
        change(LOGGER, "1", ("root", SET, "ERROR")),
        describe(LOGGER, "1", "root"),
    ],
    "partitions": [
        grow("p", 2),
        grow("p", 1),
        grow("p", 0),
        grow("p", -1),
        grow("nope", 5),
        grow("b@d", 9),
        grow("", 9),
        grow_all(("p", 3), ("nope", 2), ("p", 4)),
        grow("__cluster_metadata", 9),
        grow("p", 3, [[1], [1]]),
        grow("p", 3, []),
        grow("p", 3, [[]]),
        grow("p", 3, [[2]]),
        grow("p", 3, [[1, 1]]),
        grow("p", 3, [[1, 2]]),
        grow("p", 3, validate=True),
        grow("p", 3),
        grow("p", 3),
        grow("p", 5, [[1], [1]]),
        grow("p", 4),
        grow("p", 6, [[1], [1]]),
    ],
    "records to delete": [
        trim("t", (0, 0)),
        trim("t", (0, 2)),
        trim("t", (0, 1)),
        trim("t", (0, -2)),
        trim("t", (0, 6)),
        trim("t", (0, -1)),
        trim("t", (1, 5)),
        trim("t", (-1, 5)),
        trim("t", (0, 3), (0, 5), (0, 4)),
        trim("t", (0, 2**63 - 1)),
        trim("nope", (0, 5)),
        trim("b@d", (0, 0)),
        trim("c", (0, 0)),
        trim("cd", (0, 0)),
        trim("e", (0, 0)),
        trim("__consumer_offsets", (0, 0)),
        trim("__cluster_metadata", (0, 0)),
        trim("p", (0, 0), (1, 0), (77, 0)),
    ],
}


@pytest.mark.parametrize("subject", ANSWERS)
def test_admin_responses_equal_kafkas(both: BothBrokers, subject: str) -> None:
    # Topics stay from one subject to the next; it is fine that they exist already.
    prepared_by: list[tuple[Message, int]] = [
        (CreateTopicsRequest(topics=list(TOPICS.values()), timeout_ms=10_000), 7)
    ]
    if subject == "records to delete":
        prepared_by.append((produce_request("t", batch(*"abcde")), 9))
    requests = [(request, VERSIONS[request.api.key]) for request in ANSWERS[subject]]

    asyncio.run(
        assert_answered_alike(
            both, requests, prepared_by=prepared_by, plain=lambda answer: _plain(told(answer))
        )
    )


def _plain(answer: Any) -> Any:
    """
    An answer without what one side says more.
    """
    if isinstance(answer, str):
        wrapped = _WRAPPED.fullmatch(answer)
        return _HINT.sub("", _TWICE.sub("", wrapped[1] if wrapped else answer))
    if isinstance(answer, list | tuple):
        return [_plain(item) for item in answer]
    if isinstance(answer, dict):
        return {key: _plain(item) for key, item in answer.items()}
    return answer
