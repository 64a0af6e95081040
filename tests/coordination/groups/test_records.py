from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.member import ClassicGroupMember, MemberProtocol
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.modern.records import ModernRecord, Role
from barnabas.coordination.groups.persistence import (
    empty_group_record,
    group_record,
    restored_group,
)
from barnabas.coordination.groups.records import (
    GroupRecord,
    OffsetRecord,
    decode_record,
    encode_record,
)
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.internal_topics.group_records import OffsetCommitValue

KEY = bytes.fromhex("0001 0002 6731 0001 74 00000002")


def commit(**changes: Any) -> OffsetCommitValue:
    values: dict[str, Any] = {
        "offset": 42,
        "leader_epoch": 5,
        "metadata": "m",
        "commit_timestamp": 1_700_000_000_000,
        "expire_timestamp": -1,
        "topic_id": ZERO_UUID,
    }
    return OffsetCommitValue(**values | changes)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (commit(), "0004 000000000000002a 00000005 026d 0000018bcfe56800 00"),
        (
            commit(topic_id=UUID("00112233-4455-6677-8899-aabbccddeeff")),
            "0004 000000000000002a 00000005 026d 0000018bcfe56800"
            " 01 00 10 00112233445566778899aabbccddeeff",
        ),
        # An expiry of its own has only room in version 1, which lacks epoch and topic id.
        (
            commit(expire_timestamp=1_700_000_000_001),
            "0001 000000000000002a 0001 6d 0000018bcfe56800 0000018bcfe56801",
        ),
    ],
)
def test_offset_records_equal_kafkas(value: OffsetCommitValue, expected: str) -> None:
    # Version 4 unless the offset has an expiry time.
    assert (KEY, bytes.fromhex(expected)) == encode_record(OffsetRecord("g1", "t", 2, value))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0000 000000000000002a 0001 6d 0000018bcfe56800", commit(leader_epoch=-1)),
        (
            "0001 000000000000002a 0001 6d 0000018bcfe56800 0000018bcfe56801",
            commit(leader_epoch=-1, expire_timestamp=1_700_000_000_001),
        ),
        ("0002 000000000000002a 0001 6d 0000018bcfe56800", commit(leader_epoch=-1)),
        ("0003 000000000000002a 00000005 0001 6d 0000018bcfe56800", commit()),
        ("0004 000000000000002a 00000005 026d 0000018bcfe56800 00", commit()),
    ],
)
@pytest.mark.parametrize("key_version", [0, 1])
def test_offset_records_of_every_version_are_read(
    key_version: int, value: str, expected: OffsetCommitValue
) -> None:
    key = key_version.to_bytes(2, "big") + KEY[2:]

    record = decode_record(key, bytes.fromhex(value))

    assert OffsetRecord("g1", "t", 2, expected) == record


def test_tombstones_have_no_value() -> None:
    assert (KEY, None) == encode_record(OffsetRecord("g1", "t", 2, None))
    assert OffsetRecord("g1", "t", 2, None) == decode_record(KEY, None)
    key = bytes.fromhex("0002 0002 6731")
    assert (key, None) == encode_record(GroupRecord("g1", None))
    assert GroupRecord("g1", None) == decode_record(key, None)


def test_group_record_equals_kafkas() -> None:
    # Version 3: first empty, later with members.
    group = ClassicGroup("g1", state_timestamp_ms=1_700_000_000_000)
    key = bytes.fromhex("0002 0002 6731")
    empty = bytes.fromhex("0003 0000 00000000 ffff ffff 0000018bcfe56800 00000000")
    assert (key, empty) == encode_record(empty_group_record(group))

    group.become(GroupState.PREPARING_REBALANCE, 0)
    group.add(
        ClassicGroupMember(
            "m",
            instance_id="i",
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=2,
            session_timeout_ms=1,
            protocol_type="p",
            protocols=(MemberProtocol("x", b"sub"),),
        )
    )
    group.begin_generation(1_700_000_000_001)
    expected = bytes.fromhex(
        "0003 0001 70 00000001 0001 78 0001 6d 0000018bcfe56801 00000001"
        " 0001 6d 0001 69 0001 63 0002 2f68 00000002 00000001"
        " 00000003 737562 00000002 6173"
    )
    assert (key, expected) == encode_record(group_record(group, {"m": b"as"}))


@pytest.mark.parametrize(
    ("value", "rebalance_timeout_ms", "instance_id", "timestamp"),
    [
        # v0 has one timeout and does not tell the time, v1 has two, v2 tells the time.
        ("0000 0001 70 00000001 0001 78 0001 6d 00000001 M A", 1, None, None),
        ("0001 0001 70 00000001 0001 78 0001 6d 00000001 M 00000002 A", 2, None, None),
        (
            "0002 0001 70 00000001 0001 78 0001 6d 0000018bcfe56801 00000001 M 00000002 A",
            2,
            None,
            1_700_000_000_001,
        ),
        (
            "0003 0001 70 00000001 0001 78 0001 6d 0000018bcfe56801 00000001"
            " 0001 6d 0001 69 0001 63 0002 2f68 00000002 A",
            2,
            "i",
            1_700_000_000_001,
        ),
        (
            "0004 0270 00000001 0278 026d 0000018bcfe56801 02"
            " 026d 0269 0263 032f68 00000002 00000001 04737562 036173 00 00",
            2,
            "i",
            1_700_000_000_001,
        ),
    ],
)
def test_group_records_of_every_version_are_read(
    value: str, rebalance_timeout_ms: int, instance_id: str | None, timestamp: int | None
) -> None:
    value = value.replace("M", "0001 6d 0001 63 0002 2f68")
    value = value.replace("A", "00000001 00000003 737562 00000002 6173")

    record = decode_record(bytes.fromhex("0002 0002 6731"), bytes.fromhex(value))
    assert isinstance(record, GroupRecord)
    assert record.value is not None
    group = restored_group(record.group_id, record.value)

    member = group.members["m"]
    assert GroupState.STABLE is group.state
    assert ("p", 1, "x", "m", timestamp) == (
        group.protocol_type,
        group.generation_id,
        group.protocol_name,
        group.leader_id,
        group.state_timestamp_ms,
    )
    assert (instance_id, "c", "/h", rebalance_timeout_ms, 1, b"sub", b"as") == (
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        member.metadata("x"),
        member.assignment,
    )


def test_records_of_other_protocols_survive_a_round_trip() -> None:
    key = bytes.fromhex("0006 0001 67")
    value = bytes.fromhex("0000 00000007 01 00 08 0000000000000009")

    record = decode_record(key, value)

    assert isinstance(record, ModernRecord)
    assert (Role.TARGET_EPOCH, GroupType.CONSUMER) == (record.role, record.group_type)
    assert ("g", "") == (record.group_id, record.member_id)
    assert (7, 9) == (record.value.assignment_epoch, record.value.assignment_timestamp)
    assert (key, value) == encode_record(record)


def test_values_of_other_protocols_in_unknown_versions_are_refused() -> None:
    with pytest.raises(DecodeError, match="v1 is not known"):
        decode_record(bytes.fromhex("0003 0001 67"), bytes.fromhex("0001 00000007 00"))


@pytest.mark.parametrize("record_type", [9, 18, 24, 99, 32767])
def test_unknown_record_types_are_skipped(record_type: int) -> None:
    # A later release may have written them.
    assert decode_record(record_type.to_bytes(2, "big") + b"anything", b"at all") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", None),
        (b"\0", None),
        (KEY[:-1], None),
        (KEY, b""),
        (KEY, b"\0"),
        (KEY, b"\0\4"),
        (KEY, b"\0\5" + bytes(40)),
        (KEY, b"\xff\xff" + bytes(40)),
        (b"\0\2", None),
        (b"\0\2\0\1g", b"\0\5"),
    ],
)
def test_malformed_group_record_is_reported(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        decode_record(key, value)


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(key: bytes, value: bytes | None) -> None:
    with suppress(DecodeError):
        decode_record(key, value)
