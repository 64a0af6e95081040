from __future__ import annotations

import pytest

from barnabas.coordination.cluster.topic_names import (
    collision_key,
    is_internal,
    reason_invalid,
    validate_topic_name,
)
from barnabas.protocol.errors import InvalidTopicException


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "a" * 249, "__consumer_offsets", "-"])
def test_legal_topic_names_have_up_to_249_letters_digits_dots_underscores_and_hyphens(
    name: str,
) -> None:
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
def test_illegal_topic_names_are_refused_with_kafkas_message(name: str, reason: str) -> None:
    with pytest.raises(InvalidTopicException) as caught:
        validate_topic_name(name)

    assert str(caught.value).startswith(f"Topic name is invalid: {reason}")


def test_topic_names_that_differ_only_in_dot_and_underscore_collide() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c") == "a_b_c"
    assert collision_key("a-b") is None


def test_topics_of_the_coordinators_are_internal() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert not is_internal("__cluster_metadata")
    assert not is_internal("consumer_offsets")
