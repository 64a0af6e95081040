from __future__ import annotations

import pytest

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

OWNED = [TopicPartition(topic="t", partitions=[0, 2])]


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "00000001 000174 ffffffff"),
        (1, "00000001 000174 ffffffff 00000001 000174 00000002 00000000 00000002"),
        (2, "00000001 000174 ffffffff 00000001 000174 00000002 00000000 00000002 00000007"),
        (
            3,
            "00000001 000174 ffffffff 00000001 000174 00000002 00000000 00000002 000000070001 72",
        ),
    ],
)
def test_subscription_has_the_fields_of_its_version(version: int, data: str) -> None:
    subscription = ConsumerProtocolSubscription(
        topics=["t"],
        owned_partitions=OWNED if version >= 1 else [],
        generation_id=7 if version >= 2 else -1,
        rack_id="r" if version >= 3 else None,
    )

    assert bytes.fromhex(data) == encode(subscription, version)
    assert subscription == decode(ConsumerProtocolSubscription, version, bytes.fromhex(data))


@pytest.mark.parametrize("version", range(4))
def test_assignment_is_the_same_in_all_versions(version: int) -> None:
    assignment = ConsumerProtocolAssignment(assigned_partitions=OWNED, user_data=b"u")
    data = bytes.fromhex("00000001 000174 00000002 00000000 00000002 00000001 75")

    assert data == encode(assignment, version)
    assert assignment == decode(ConsumerProtocolAssignment, version, data)
