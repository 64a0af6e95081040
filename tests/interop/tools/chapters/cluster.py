"""
The tools that ask what the cluster is, and those that move what a single node cannot.
"""

from __future__ import annotations

import json

from tests.interop.tools.guide import Guide

FEATURES = "kafka-features"
REASSIGN = "kafka-reassign-partitions"
ELECTION = "kafka-leader-election"
ACLS = "kafka-acls"


def the_cluster_says_who_it_is(guide: Guide) -> None:
    """
    Its id, its nodes, what they understand, and that none may go.
    """
    guide("kafka-cluster", "cluster-id")
    guide("kafka-cluster", "list-endpoints")
    guide("kafka-cluster", "list-endpoints", "--include-fenced-brokers")
    guide("kafka-cluster", "unregister", "--id", "7")
    guide("kafka-broker-api-versions")
    guide("kafka-broker-api-versions", "--help")


def features_go_up_and_down(guide: Guide) -> None:
    """
    Or would: most of it tried only.
    """
    guide(FEATURES, "describe")
    guide(FEATURES, "describe", "--node-id", "1")
    guide(FEATURES, "describe", "--node-id", "-1")
    for what in (
        ("upgrade", "--release-version", "4.3"),
        ("upgrade", "--release-version", "4.0"),
        ("upgrade", "--release-version", "3.0"),
        ("upgrade", "--feature", "transaction.version=2"),
        ("upgrade", "--feature", "transaction.version=9"),
        ("upgrade", "--feature", "transaction.version=1"),
        ("upgrade", "--feature", "group.version=1", "--feature", "group.version=1"),
        ("upgrade", "--feature", "no.such.feature=1"),
        ("upgrade", "--feature", "metadata.version=999"),
        ("upgrade", "--metadata", "4.3-IV0"),
        ("upgrade", "--feature", "kraft.version=1"),
        ("downgrade", "--feature", "transaction.version=1"),
        ("downgrade", "--feature", "transaction.version=2"),
        ("downgrade", "--feature", "group.version=0"),
        ("downgrade", "--feature", "metadata.version=7"),
        ("downgrade", "--release-version", "4.0"),
        ("downgrade", "--release-version", "4.0", "--unsafe"),
        ("disable", "--feature", "transaction.version"),
        ("disable", "--feature", "share.version"),
        ("disable", "--feature", "no.such.feature"),
        ("disable",),
    ):
        guide(FEATURES, *what, "--dry-run")
    guide(FEATURES, "downgrade", "--feature", "transaction.version=1")
    guide(FEATURES, "describe")
    guide(FEATURES, "upgrade", "--feature", "transaction.version=2")
    guide(FEATURES, "describe")
    guide(FEATURES, "version-mapping")
    guide(FEATURES, "feature-dependencies", "--feature", "transaction.version=2")


def the_quorum_is_one(guide: Guide) -> None:
    """
    It leads, and lags behind nobody.
    """
    guide("kafka-metadata-quorum", "describe", "--status")
    guide("kafka-metadata-quorum", "describe", "--replication")
    guide("kafka-metadata-quorum", "describe", "--replication", "--human-readable")
    guide("kafka-metadata-quorum", "describe", "--status", "--human-readable")
    guide("kafka-metadata-quorum", "describe")
    directory = ("--controller-directory-id", "AAAAAAAAAAAAAAAAAAAAAB")
    guide("kafka-metadata-quorum", "remove-controller", "--controller-id", "9", *directory)


def log_dirs(guide: Guide) -> None:
    """
    With the sizes of what lies in them.
    """
    guide("kafka-topics", "--create", "--topic", "weighed")
    guide("kafka-console-producer", "--topic", "weighed", given="one\n")
    guide("kafka-log-dirs", "--describe", "--topic-list", "weighed")
    guide("kafka-log-dirs", "--describe", "--topic-list", "weighed,nothing", "--broker-list", "1")
    guide("kafka-log-dirs", "--describe", "--topic-list", "nothing")
    guide("kafka-log-dirs", "--describe", "--broker-list", "1,2")
    guide("kafka-log-dirs", "--describe", "--broker-list", "x")
    guide("kafka-log-dirs")


def leaders_are_elected(guide: Guide) -> None:
    """
    None is needed where there is one replica.
    """
    guide("kafka-topics", "--create", "--topic", "led", "--partitions", "2")
    preferred, unclean = ("--election-type", "preferred"), ("--election-type", "unclean")
    guide(ELECTION, *preferred, "--topic", "led", "--partition", "0")
    guide(ELECTION, *unclean, "--topic", "led", "--partition", "1")
    guide(ELECTION, *preferred, "--topic", "led", "--partition", "9")
    guide(ELECTION, *preferred, "--topic", "nothing", "--partition", "0")
    guide(ELECTION, *preferred, "--all-topic-partitions")
    guide(ELECTION, *unclean, "--all-topic-partitions")
    both = [{"topic": "led", "partition": 0}, {"topic": "led", "partition": 1}]
    file = guide.file("elections.json", json.dumps({"partitions": both}))
    guide(ELECTION, *preferred, "--path-to-json-file", file)
    guide(ELECTION, *preferred, "--topic", "led")
    guide(ELECTION, "--topic", "led", "--partition", "0")


def _assignment(name: str, guide: Guide, *replicas: list[int], topic: str = "moved") -> str:
    partitions = [
        {"topic": topic, "partition": number, "replicas": of_partition}
        for number, of_partition in enumerate(replicas)
    ]
    return guide.file(f"{name}.json", json.dumps({"version": 1, "partitions": partitions}))


def partitions_are_reassigned(guide: Guide) -> None:
    """
    To where they are, and not to where nobody is.
    """
    impatient = guide.file("client.properties", "default.api.timeout.ms=2000\n")
    guide("kafka-topics", "--create", "--topic", "moved", "--partitions", "2")
    # Where they lie is known when their logs are there.
    logs = ("kafka-log-dirs", "--describe", "--topic-list", "moved")
    guide.until(lambda seen: "moved-0" in seen and "moved-1" in seen, *logs)
    text = json.dumps({"version": 1, "topics": [{"topic": "moved"}]})
    topics = ("--topics-to-move-json-file", guide.file("topics.json", text))
    guide(REASSIGN, "--generate", *topics, "--broker-list", "1")
    guide(REASSIGN, "--generate", *topics, "--broker-list", "1,2")
    guide(REASSIGN, "--generate", *topics, "--broker-list", "7")
    guide(REASSIGN, "--list")
    here = ("--reassignment-json-file", _assignment("here", guide, [1], [1]))
    guide(REASSIGN, *here, "--verify")
    guide(REASSIGN, *here, "--execute")
    guide(REASSIGN, *here, "--verify")
    guide(REASSIGN, *here, "--execute", "--throttle", "1000")
    guide(REASSIGN, *here, "--verify", "--preserve-throttles")
    guide("kafka-configs", "--describe", "--topic", "moved")
    guide("kafka-configs", "--describe", "--broker", "1")
    guide(REASSIGN, *here, "--verify")
    guide("kafka-configs", "--describe", "--topic", "moved")
    guide("kafka-configs", "--describe", "--broker", "1")
    guide(REASSIGN, *here, "--cancel")
    guide(REASSIGN, *here, "--cancel", "--preserve-throttles")
    for name, replicas in (
        ("elsewhere", [[2], [1]]),
        ("both", [[1, 2], [1]]),
        ("twice", [[1, 1], [1]]),
        ("nowhere", [[], [1]]),
        ("more", [[1], [1], [1]]),
    ):
        file = ("--reassignment-json-file", _assignment(name, guide, *replicas))
        guide(REASSIGN, *file, "--verify", "--command-config", impatient)
        guide(REASSIGN, *file, "--execute")
    other = ("--reassignment-json-file", _assignment("other", guide, [1], topic="nothing"))
    guide(REASSIGN, *other, "--verify")
    guide(REASSIGN, *other, "--execute")
    guide(REASSIGN, *other, "--cancel")
    guide(REASSIGN, "--list")
    guide(REASSIGN)


def access_is_controlled(guide: Guide) -> None:
    """
    Entries are added, listed and removed.
    """
    guide(ACLS, "--list")
    guide(ACLS, "--list", "--topic", "orders", "--principal", "User:alice")
    allowed = ("--allow-principal", "User:alice", "--operation", "Read")
    guide(ACLS, "--add", *allowed, "--topic", "orders")
    guide(ACLS, "--list", "--topic", "orders")
    guide(ACLS, "--list", "--topic", "orders", "--principal", "User:alice")
    guide(ACLS, "--add", "--allow-principal", "User:bob", "--producer", "--topic", "paid")
    prefixed = ("--resource-pattern-type", "prefixed")
    consumer = ("--consumer", "--group", "billing", "--topic", "in", *prefixed)
    guide(ACLS, "--add", "--allow-principal", "User:carol", *consumer)
    denied = ("--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--operation", "All")
    guide(ACLS, "--add", *denied, "--cluster")
    guide(ACLS, "--add", *denied, "--transactional-id", "*")
    guide(ACLS, "--list", "--group", "billing", *prefixed)
    guide(ACLS, "--list", "--topic", "invoices", "--resource-pattern-type", "match")
    guide(ACLS, "--list", "--cluster")
    guide(ACLS, "--add", "--allow-principal", "dora", "--operation", "Read", "--topic", "orders")
    guide(ACLS, "--add", "--allow-principal", "User:dora", "--operation", "Write", "--group", "g")
    guide(ACLS, "--remove", *allowed, "--topic", "orders", "--force")
    guide(ACLS, "--list", "--topic", "orders")
    guide(ACLS, "--remove", "--cluster", "--force")
    guide(ACLS, "--remove", "--topic", "*", "--resource-pattern-type", "any", "--force")
    guide(ACLS)


def tokens_need_security(guide: Guide) -> None:
    """
    There is no secret to sign them with.
    """
    config = ("--command-config", guide.file("client.properties", "request.timeout.ms=5000\n"))
    tokens = ("kafka-delegation-tokens", *config)
    guide(*tokens, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    guide(*tokens, "--describe")
    guide(*tokens, "--renew", "--renew-time-period", "-1", "--hmac", "AAAA")
    guide(*tokens, "--expire", "--expiry-time-period", "-1", "--hmac", "AAAA")


PARTS = (
    the_cluster_says_who_it_is,
    features_go_up_and_down,
    the_quorum_is_one,
    log_dirs,
    leaders_are_elected,
    partitions_are_reassigned,
    access_is_controlled,
    tokens_need_security,
)
