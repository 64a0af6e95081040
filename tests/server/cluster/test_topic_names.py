from __future__ import annotations

import pytest

from barnabas.protocol.errors import InvalidTopicException
from barnabas.server.cluster.topic_names import (
    collision_key,
    is_internal,
    reason_invalid,
    validate_topic_name,
)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "a" * 249, "__consumer_offsets", "-"])
def test_legal_names(name: str) -> None:
    """
    Letters, digits, dot, underscore and hyphen, up to 249 of them, make a name.
    """
    assert reason_invalid(name) is None
    validate_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics,"),
        ("ä", "'ä' contains one or more characters"),
        ("a\n", "'a\n' contains one or more characters"),
        ("a b", "'a b' contains one or more characters"),
    ],
)
def test_illegal_names(name: str, reason: str) -> None:
    """
    Everything else is refused in Kafka's words.
    """
    with pytest.raises(InvalidTopicException) as caught:
        validate_topic_name(name)

    assert str(caught.value).startswith(f"Topic name is invalid: {reason}")


def test_names_that_differ_in_dot_and_underscore_only_collide() -> None:
    """
    Both become the same name of a metric in Kafka.
    """
    assert collision_key("a.b_c") == collision_key("a_b.c") == "a_b_c"
    assert collision_key("a-b") is None


def test_internal_topics() -> None:
    """
    Those of the coordinators are internal; the metadata log is no topic that clients see.
    """
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert not is_internal("__cluster_metadata")
    assert not is_internal("consumer_offsets")
