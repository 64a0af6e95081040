"""
What consumers and their leader say to each other.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_with_version,
)
from barnabas.protocol.errors import DecodeError

OWNED = [TopicPartition(topic="t", partitions=[0, 2])]


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "0000 00000001 000174 ffffffff"),
        (1, "0001 00000001 000174 ffffffff 00000001 000174 00000002 00000000 00000002"),
        (2, "0002 00000001 000174 ffffffff 00000001 000174 00000002 00000000 00000002 00000007"),
        (
            3,
            "0003 00000001 000174 ffffffff 00000001 000174 00000002 00000000 00000002 00000007"
            "0001 72",
        ),
    ],
)
def test_a_subscription_has_the_fields_of_its_version(version: int, data: str) -> None:
    """
    And is read back with them.
    """
    subscription = ConsumerProtocolSubscription(
        topics=["t"],
        owned_partitions=OWNED if version >= 1 else [],
        generation_id=7 if version >= 2 else -1,
        rack_id="r" if version >= 3 else None,
    )

    assert bytes.fromhex(data) == encode_with_version(subscription, version)
    assert subscription == decode_subscription(bytes.fromhex(data))


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_the_same_in_all_versions(version: int) -> None:
    """
    But for the version.
    """
    assignment = ConsumerProtocolAssignment(assigned_partitions=OWNED, user_data=b"u")

    data = encode_with_version(assignment, version)

    assert (
        bytes([0, version])
        + bytes.fromhex("00000001 000174 00000002 00000000 00000002 00000001 75")
        == data
    )
    assert assignment == decode_assignment(data)


def test_a_later_version_is_read_as_the_highest_known() -> None:
    """
    It begins like that, and has more behind it.
    """
    data = encode_with_version(ConsumerProtocolSubscription(topics=["t"]), 3)

    assert ["t"] == decode_subscription(b"\0\x09" + data[2:] + b"more").topics


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\1"])
def test_bytes_that_say_nothing_are_refused(data: bytes) -> None:
    """
    No version, a negative one, or less than announced.
    """
    with pytest.raises(DecodeError):
        decode_subscription(data)
    with pytest.raises(DecodeError):
        decode_assignment(data)
