"""
``kafka-topics``: topics are created, listed, described, grown and deleted, and refused.
"""

from __future__ import annotations

import re

from tests.interop.tools.guide import Guide

TOPICS = "kafka-topics"


def topics_are_created(guide: Guide) -> None:
    """
    With every option, and with everything that can be wrong about one.
    """
    create = (TOPICS, "--create", "--topic")
    guide(*create, "orders", "--partitions", "3", "--config", "retention.ms=86400000")
    guide(*create, "orders")
    guide(*create, "orders", "--if-not-exists")
    guide(*create, "by-default")
    guide(*create, "with.dots_and_more", "--partitions", "1", "--replication-factor", "1")
    guide(*create, "with_dots.and_more")
    guide(*create, "placed", "--replica-assignment", "1,1")
    guide(*create, "full", "--config", "cleanup.policy=compact,delete", "--config", "flush.ms=9")
    for wrong in (
        ("no/such/name",),
        ("x" * 250,),
        ("..",),
        ("wrong", "--partitions", "0"),
        ("wrong", "--partitions", "-1"),
        ("wrong", "--replication-factor", "0"),
        ("wrong", "--replication-factor", "3"),
        ("wrong", "--replication-factor", "40000"),
        ("wrong", "--replica-assignment", "7"),
        ("wrong", "--replica-assignment", "1:2"),
        ("wrong", "--replica-assignment", "1:1"),
        ("wrong", "--replica-assignment", "1,1", "--partitions", "2"),
        ("wrong", "--config", "no.such.config=1"),
        ("wrong", "--config", "retention.ms=soon"),
        ("wrong", "--config", "segment.bytes=1"),
        ("wrong", "--config", "cleanup.policy=none"),
        ("wrong", "--config", "retention.ms"),
    ):
        guide(*create, *wrong)


def topics_are_listed_and_described(guide: Guide) -> None:
    """
    All of them, some by name, pattern or id, and by what may be wrong with them.
    """
    guide(TOPICS, "--list")
    guide(TOPICS, "--list", "--exclude-internal")
    guide(TOPICS, "--list", "--topic", "with.*")
    guide(TOPICS, "--list", "--topic", "nothing")
    describe = (TOPICS, "--describe")
    printed = guide(*describe, "--topic", "orders")
    guide(*describe)
    guide(*describe, "--exclude-internal")
    guide(*describe, "--topic", "with.*|full")
    guide(*describe, "--topics-with-overrides")
    guide(*describe, "--under-replicated-partitions")
    guide(*describe, "--unavailable-partitions")
    guide(*describe, "--under-min-isr-partitions")
    guide(*describe, "--at-min-isr-partitions")
    guide(*describe, "--topic", "orders", "--partition-size-limit-per-response", "1")
    guide(*describe, "--topic", "orders", "--partition-size-limit-per-response", "0")
    guide(*describe, "--topic", "nothing")
    guide(*describe, "--topic", "nothing", "--if-exists")
    guide(*describe, "--under-replicated-partitions", "--topics-with-overrides")
    [topic_id] = set(re.findall(r"TopicId: (\S+)", printed.out)) or {"none"}
    guide.plain.name(topic_id, "<id>")
    guide(*describe, "--topic-id", topic_id)
    guide(*describe, "--topic-id", "AAAAAAAAAAAAAAAAAAAAAB")
    guide(*describe, "--topic-id", "AAAAAAAAAAAAAAAAAAAAAB", "--if-exists")
    guide(*describe, "--topic-id", "no-id")
    guide(*describe, "--topic", "orders", "--topic-id", topic_id)


def topics_grow(guide: Guide) -> None:
    """
    Never shrink, and not onto brokers that are not there.
    """
    alter = (TOPICS, "--alter", "--topic")
    guide(*alter, "orders", "--partitions", "5")
    for wrong in (
        ("orders", "--partitions", "5"),
        ("orders", "--partitions", "2"),
        ("orders", "--partitions", "0"),
        ("orders", "--partitions", "-3"),
        ("orders", "--partitions", "7", "--replica-assignment", "1,1,1,1,1,1"),
        ("orders", "--partitions", "7", "--replica-assignment", "1,1,1,1,1,1,2"),
        ("orders", "--partitions", "7", "--replica-assignment", "1,1,1,1,1,1,1:1"),
        ("orders", "--config", "retention.ms=1"),
        ("orders", "--delete-config", "retention.ms"),
        ("orders",),
        ("nothing", "--partitions", "5"),
        ("nothing", "--partitions", "5", "--if-exists"),
    ):
        guide(*alter, *wrong)
    assignment = ("--replica-assignment", "1,1,1,1,1,1")
    guide(*alter, "orders", "--partitions", "6", *assignment)
    guide(TOPICS, "--describe", "--topic", "orders")


def topics_are_deleted(guide: Guide) -> None:
    """
    By name and by pattern.
    """
    guide(TOPICS, "--delete", "--topic", "placed")
    guide(TOPICS, "--delete", "--topic", "placed")
    guide(TOPICS, "--delete", "--topic", "placed", "--if-exists")
    guide(TOPICS, "--delete", "--topic", "with.*|by-default")
    guide(TOPICS, "--delete")
    guide(TOPICS, "--list")


def topics_without_sense(guide: Guide) -> None:
    """
    Options that contradict one another, or that there are not.
    """
    guide(TOPICS)
    guide(TOPICS, "--list", "--create")
    guide(TOPICS, "--create")
    guide(TOPICS, "--alter", "--topic", "orders", "--replication-factor", "1")
    guide(TOPICS, "--list", "--no-such-option")
    guide(TOPICS, "--help")
    guide(TOPICS, "--version")


PARTS = (
    topics_are_created,
    topics_are_listed_and_described,
    topics_grow,
    topics_are_deleted,
    topics_without_sense,
)
