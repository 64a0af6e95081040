"""
Differences that are known and stay, by the name that they have in ``docs/differences.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.codec.schema import ZERO_UUID
from tests.interop.differential.answers import Difference
from tests.interop.differential.sides import SILENT

UNKNOWN_SERVER_ERROR: Final = -1
REQUEST_TIMED_OUT: Final = 7
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = 45
INVALID_RECORD: Final = 87


class Place(NamedTuple):
    """
    Where a difference was seen.

    Args:
        others: all differences of the same step.
    """

    kind: str
    step: str
    difference: Difference
    others: Sequence[Difference] = ()


class Known(NamedTuple):
    """
    A class of differences.

    Args:
        holds: whether a difference belongs to it.
        ends: whether nothing that follows in the workload can be compared any more.
    """

    holds: Callable[[Place], bool]
    ends: bool


def _has_timed_out(place: Place) -> bool:
    where, kafka, _ = place.difference
    if place.kind != "requests":
        return False
    if where.endswith("error_code"):
        return kafka == REQUEST_TIMED_OUT
    # What is said of it, and what only comes of what was done.
    return any(
        other.where.endswith("error_code") and other.kafka == REQUEST_TIMED_OUT
        for other in place.others
    )


def _is_broken_twice(place: Place) -> bool:
    where, *codes = place.difference
    return (
        place.kind == "damaged-codecs"
        and where.endswith(".error_code")
        and codes == [UNKNOWN_SERVER_ERROR, INVALID_RECORD]
    )


def _is_of_zeros(place: Place) -> bool:
    if place.kind != "requests" or "FetchRequest" not in place.step:
        return False
    return ZERO_UUID.bytes.hex() in place.step and any(
        other.where.endswith(".error_code") and other.kafka == UNKNOWN_SERVER_ERROR
        for other in place.others
    )


def _is_wordless(place: Place) -> bool:
    where, *has_words = place.difference
    return (
        place.kind == "requests"
        and "AlterUserScramCredentialsRequest" in place.step
        and where.endswith(".error_message")
        and has_words == [False, True]
    )


def _is_remembered(place: Place) -> bool:
    return any(
        other.where.endswith(".error_code")
        and other.kafka == OUT_OF_ORDER_SEQUENCE_NUMBER
        and other.barnabas == 0
        for other in place.others
    )


def _is_unused_index(place: Place) -> bool:
    where, kafka, barnabas = place.difference
    if not where.endswith((".index", ".timeindex")):
        return False
    if barnabas is None:  # the segment is new, and nothing has needed this index yet
        barnabas = b""
    if not (isinstance(kafka, bytes) and isinstance(barnabas, bytes)):
        return False
    return kafka.startswith(barnabas) and not any(kafka[len(barnabas) :])


def _is_unanswered(place: Place) -> bool:
    return place.difference.kafka == SILENT and place.difference.barnabas != SILENT


def _has_lost_tombstones(place: Place) -> bool:
    classic, target_epoch, current = 2, 6, 8
    return place.kind == "migrations" and any(
        other.where.endswith(".kind")
        and other.kafka == classic
        and other.barnabas in {current, target_epoch}
        for other in place.others
    )


def _has_endpoint_without_tasks(place: Place) -> bool:
    return place.kind == "streams-groups" and any(
        other.where.endswith(".error_code")
        and other.kafka == UNKNOWN_SERVER_ERROR
        and other.barnabas == 0
        for other in place.others
    )


def _has_lost_an_answer(place: Place) -> bool:
    where, kafka, barnabas = place.difference
    return (
        place.kind == "streams-groups"
        and "epoch None +-" in place.step
        and where.endswith(("active_tasks", "standby_tasks", "warmup_tasks"))
        and kafka is None
        and isinstance(barnabas, list)
    )


def _has_uncounted_topics(place: Place) -> bool:
    where, kafka, barnabas = place.difference
    return (
        place.kind == "streams-groups"
        and "StreamsGroupDescribe" in place.step
        and ".state_changelog_topics[" in where
        and where.endswith(".partitions")
        and kafka == 0
        and bool(barnabas)
    )


KNOWN: Final[Mapping[str, Known]] = {
    "timed-out": Known(_has_timed_out, ends=True),
    "broken-twice": Known(_is_broken_twice, ends=False),
    "topic-id-of-zeros": Known(_is_of_zeros, ends=False),
    "wordless": Known(_is_wordless, ends=False),
    "batches-after-kill": Known(_is_remembered, ends=False),
    "unused-index": Known(_is_unused_index, ends=False),
    "unanswered": Known(_is_unanswered, ends=True),
    "lost-tombstones": Known(_has_lost_tombstones, ends=True),
    "endpoint-without-tasks": Known(_has_endpoint_without_tasks, ends=True),
    "lost-answer": Known(_has_lost_an_answer, ends=False),
    "uncounted-topics": Known(_has_uncounted_topics, ends=False),
}
"""
Classes that are found by comparing. Others are never seen, since no workload goes there or both
sides are read in a way that leaves them out.
"""


def _has_another_share(place: Place) -> bool:
    where, *answered = place.difference
    return (
        place.kind == "share-groups"
        and where.endswith(".assignment")
        and "epoch +0" in place.step
        and answered.count(None) == 1
    )


def _has_another_leader(place: Place) -> bool:
    where, *leaders = place.difference
    return where.endswith("].value.leader") and any(
        str(leader).startswith("id ") for leader in leaders
    )


CHANCE: Final[Mapping[str, Known]] = {
    # The assignor goes by the hashes of topic ids: one side may leave a member what it has, where
    # the other gives it as many other partitions.
    "share": Known(_has_another_share, ends=True),
    # The first member in a hash map, where the broker has given ids to some. Where both sides name
    # a member that has chosen its id, the order of the map decides on both, and it is the same.
    "leader": Known(_has_another_leader, ends=True),
}
"""
Differences between ids that both brokers choose at random: no differences of the brokers.
"""

MOST_BY_CHANCE: Final = 0.1
"""The share of the workloads of a kind that may end so."""

LEFT_OUT: Final = frozenset(
    {
        "acl-numbers",
        "acl-wildcard",
        "answer-memory",
        "bomb",
        "broker-options",
        "cleaned-left",
        "cleaner-checkpoint-early",
        "config-operation",
        "coordinator-memory",
        "delegation-tokens",
        "directory-names",
        "endless-transaction",
        "entries",
        "expired-token",
        "first-round",
        "not-ready",
        "created-by-metadata",
        "full-index-after-crash",
        "giant-record",
        "gap-after-power-loss",
        "long-poll-behind",
        "members",
        "metrics-patterns",
        "missing-secret",
        "producers",
        "scram-extensions",
        "session-partitions",
        "set-aside",
        "share-gap",
        "share-runs",
        "share-state-ahead",
        "stale-timer",
        "stored-variables",
        "telemetry",
        "unknown-user",
        "unreadable-member",
        "lz4-low-levels",
        "snappy-bytes",
        "zstd-bytes",
        "records-null",
        "refused-commit",
        "index-larger-than-limit",
        "partitions-at-once",
        "pattern-classes",
        "pattern-time",
        "protocol-twice",
        "topology-size",
    }
)
"""Classes that workloads keep clear of, or that are compared by what the bytes mean."""


def class_of(place: Place) -> tuple[str, Known] | None:
    """
    The class to which a difference belongs, known or of chance, by name.
    """
    for name, known in {**KNOWN, **CHANCE}.items():
        if known.holds(place):
            return name, known
    return None
