"""
Regular expressions of consumer groups: when they are resolved, by whom, and what comes of it.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.consumer.records import regex_record
from barnabas.coordination.groups.modern.subscriptions import ResolvedRegex
from barnabas.protocol.errors import InvalidRegularExpression
from tests.support.attributes import assert_has
from tests.support.consumer_groups import CALLER, ConsumerCoordination, told
from tests.support.coordination import GROUP
from tests.support.modern_groups import number_of

FLOOR_MS = 10_000


def joined(regex: str = "t.*", **options: int) -> tuple[ConsumerCoordination, int]:
    """
    A group with a member that has a pattern, which is resolved.
    """
    c = ConsumerCoordination({"t1": 1, "u": 1}, **options)
    c.enter("a", None, regex=regex)
    assert 1 == c.executor.do()
    return c, c.report("a").member_epoch


def test_pattern_is_resolved_in_the_background() -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t1", 2)
    c.create("u", 2)

    first = c.enter("a", None, regex="t.*")
    assert (1, {}) == (first.member_epoch, told(first))
    assert ["5 a", "8 a"] == c.last

    assert 1 == c.executor.do()
    assert ["16", "3"] == c.last
    assert_has(c.last_value(16), topics=["t1"], version=c.topics.version, timestamp=c.now_ms)
    assert (2, c.subscribed.hash({"t1"})) == (
        c.last_value(3).epoch,
        c.last_value(3).metadata_hash,
    )
    second = c.beat("a", 1)
    assert (2, {topic_id: [0, 1]}) == (second.member_epoch, told(second))


@pytest.mark.parametrize(("regex", "topics"), [("t", []), ("t.*", ["t1"]), ("t1|u", ["t1", "u"])])
def test_pattern_matches_whole_topic_names_and_begins_an_epoch_if_there_are_any(
    regex: str, topics: list[str]
) -> None:
    c, _ = joined(regex)

    (resolved,) = [batch for batch in c.batches if number_of(batch[0]) == "16"]
    assert (
        ResolvedRegex(frozenset(topics), c.topics.version, c.now_ms)
        == (c.consumers.subscriptions.resolved[regex])
    )
    assert ["16", *(["3"] if topics else [])] == [*map(number_of, resolved)]


def test_topic_names_and_a_pattern_are_combined() -> None:
    c = ConsumerCoordination()
    ids = {c.create("t1", 1): [0], c.create("u", 1): [0]}
    c.enter("a", ["u"], regex="t.*")
    c.executor.do()

    c.settle("a")

    assert ids == c.assigned("a")


def test_pattern_matches_only_topics_that_the_member_may_describe() -> None:
    c = ConsumerCoordination({"t1": 1, "t2": 1})
    caller = CALLER._replace(sees_topic=lambda topic: topic == "t2")

    c.enter("a", None, regex="t.*", caller=caller)
    c.executor.do()

    assert ["t2"] == c.last_value(16).topics


def test_resolved_pattern_is_not_compiled_again_and_begins_an_epoch_at_once() -> None:
    c, epoch = joined()

    answer = c.enter("b", None, regex="t.*")

    assert ["5 b", "3", "7 b", "6", "8 b"] == c.last
    assert epoch + 1 == answer.member_epoch


def test_unresolved_pattern_begins_no_epoch() -> None:
    c = ConsumerCoordination({"t1": 1})
    c.enter("a", None, regex="t.*")
    c.enter("b", None, regex="t.*")

    assert 1 == c.consumers.group_epoch
    assert 1 == c.executor.do()
    assert 2 == c.consumers.group_epoch


def test_removed_pattern_revokes_its_topics() -> None:
    c, epoch = joined()

    answer = c.beat("a", epoch, regex="")

    assert {} == told(answer)
    assert ["5 a", "-16", "3", "7 a", "6", "8 a"] == c.last
    assert not c.consumers.subscriptions.resolved
    assert 0 == c.consumers.metadata_hash


@pytest.mark.parametrize(
    ("subscription", "removed", "left"),
    [({"regex": "t.*"}, [], "t1"), ({"topics": ["u"]}, ["-16"], "u")],
    ids=["member with the pattern", "member without"],
)
def test_pattern_is_removed_when_its_last_member_leaves(
    subscription: dict[str, Any], removed: list[str], left: str
) -> None:
    c, _ = joined()
    c.enter("b", **{"topics": None} | subscription)

    c.go("a")

    assert ["-8 a", "-7 a", "-5 a", *removed, "3"] == c.last
    assert c.subscribed.hash({left}) == c.last_value(3).metadata_hash


def test_pattern_of_another_member_is_kept() -> None:
    c, _ = joined()
    c.enter("b", None, regex="t.*")
    c.settle("a", "b")

    c.beat("a", c.epoch("a"), regex="")

    assert "-16" not in c.last
    assert {"t.*"} == set(c.consumers.subscriptions.resolved)


def test_changed_pattern_revokes_topics_before_it_is_resolved() -> None:
    c, epoch = joined()

    answer = c.beat("a", epoch, regex="u.*")

    assert (epoch, {}) == (answer.member_epoch, told(answer))
    # The epoch comes with the resolution.
    assert ["5 a", "-16", "8 a"] == c.last


# Refreshes


@pytest.mark.parametrize(
    ("options", "new_topic", "interval_ms", "records"),
    [
        ({}, "t2", FLOOR_MS, ["16", "3"]),
        ({}, "other", FLOOR_MS, ["16"]),
        ({}, None, 600_000, ["16"]),
        ({"group_consumer_regex_refresh_interval_ms": 15_000}, None, 15_000, ["16"]),
    ],
    ids=["matching topic", "other topic", "no topic", "option"],
)
def test_patterns_are_refreshed_after_an_interval(
    options: dict[str, Any], new_topic: str | None, interval_ms: int, records: list[str]
) -> None:
    c, epoch = joined(**options)
    if new_topic is None:
        c.grow("u", 2)
    else:
        c.create(new_topic, 1)
    for _ in range(0, interval_ms, 5000):
        c.beat("a", epoch)
        assert 0 == c.executor.do()
        c.advance(5000)
    c.beat("a", epoch)
    assert 0 == c.executor.do()

    c.advance(1)
    c.beat("a", epoch)

    assert 1 == c.executor.do()
    assert records == c.last
    assert c.now_ms == c.last_value(16).timestamp
    assert (["t1", "t2"] if new_topic == "t2" else ["t1"]) == c.last_value(16).topics


@pytest.mark.parametrize("is_resolved", [False, True])
def test_second_pattern_waits_for_the_minimum_interval(is_resolved: bool) -> None:
    c = ConsumerCoordination()
    c.enter("a", None, regex="t.*")
    if is_resolved:
        assert 1 == c.executor.do()
    c.enter("b", None, regex="u.*")
    assert (not is_resolved) == c.executor.do()
    assert {"t.*"} == set(c.consumers.subscriptions.resolved)

    c.advance(FLOOR_MS + 1)
    c.beat("a", 1)

    assert 1 == c.executor.do()
    assert {"t.*", "u.*"} == set(c.consumers.subscriptions.resolved)


def test_pattern_of_a_member_that_left_meanwhile_is_dropped() -> None:
    c = ConsumerCoordination({"t1": 1})
    c.enter("a", None, regex="t.*")
    c.enter("b", ["u"])
    c.go("a")
    before = c.consumers.group_epoch

    c.executor.do()

    assert not c.consumers.subscriptions.resolved
    assert before == c.consumers.group_epoch


def test_group_may_be_deleted_while_its_patterns_are_resolved() -> None:
    c = ConsumerCoordination()
    c.enter("a", None, regex="t.*")
    c.state.groups.put(GROUP, None)
    before = list(c.batches)

    c.executor.do()

    assert before == c.batches


def test_deleted_topic_of_a_pattern_is_revoked() -> None:
    c, epoch = joined()

    c.delete("t1")
    answer = c.beat("a", epoch)

    assert {} == told(answer)
    assert epoch + 1 == c.beat("a", epoch, owned={}).member_epoch


def test_topics_of_a_pattern_are_followed() -> None:
    c, epoch = joined()

    c.grow("t1", 2)
    answer = c.beat("a", epoch)

    assert epoch + 1 == answer.member_epoch
    assert [[0, 1]] == list((told(answer) or {}).values())


def test_resolved_patterns_survive_a_restart() -> None:
    c, epoch = joined()
    c.advance(FLOOR_MS)

    c.restart()

    c.beat("a", epoch)
    assert 0 == c.executor.do()
    assert {"t.*"} == set(c.consumers.subscriptions.resolved)


def test_next_heartbeat_after_a_refresh_does_not_check_the_topics_again() -> None:
    c = ConsumerCoordination({"t1": 1})
    c.enter("a", None, regex="t.*")
    c.executor.do()

    assert not c.consumers.is_metadata_stale


@pytest.mark.parametrize("regex", ["(", "a{2,1}", "(?=a)", r"\1", "*"])
def test_invalid_pattern_is_refused(regex: str) -> None:
    c = ConsumerCoordination()

    with pytest.raises(InvalidRegularExpression):
        c.enter("a", None, regex=regex)


def test_invalid_pattern_does_not_change_the_member() -> None:
    c, epoch = joined()
    before = c.member("a")

    with pytest.raises(InvalidRegularExpression):
        c.beat("a", epoch, regex="(")

    assert before == c.member("a")


def test_invalid_pattern_stored_by_another_broker_matches_nothing() -> None:
    c, epoch = joined()
    c.write_records([regex_record(GROUP, "(", ResolvedRegex(frozenset({"u"}), 0, 0))])
    counts = c.consumers.subscriptions.regexes
    counts["("] = 1
    c.create("t2", 1)
    c.advance(FLOOR_MS + 1)

    c.beat("a", epoch)
    c.executor.do()

    resolved = c.consumers.subscriptions.resolved
    assert {"t1", "t2"} == resolved["t.*"].topics
    assert not resolved["("].topics


def test_abandoned_pattern_triggers_a_refresh_of_the_others() -> None:
    # As in Kafka: the number of patterns differs from the number resolved.
    c = ConsumerCoordination()
    c.enter("a", None, regex="t.*")
    c.executor.do()
    c.advance(FLOOR_MS + 1)
    c.enter("b", None, regex="u.*")
    c.executor.do()
    c.settle("a", "b")
    c.advance(FLOOR_MS + 1)
    c.settle("a", "b")
    assert 0 == c.executor.do()

    c.beat("a", c.member("a").member_epoch, regex="u.*")

    assert 1 == c.executor.do()
    assert {"u.*"} == set(c.consumers.subscriptions.resolved)
