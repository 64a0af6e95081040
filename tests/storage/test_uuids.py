from __future__ import annotations

import os
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage import uuids
from barnabas.storage.uuids import parse_uuid, random_uuid, uuid_text


@given(st.uuids(allow_nil=True))
def test_uuid_text_survives_a_round_trip(value: UUID) -> None:
    text = uuid_text(value)

    assert 22 == len(text)
    assert value == parse_uuid(text) == parse_uuid(text + "==")


def test_reserved_uuids_are_those_of_kafka() -> None:
    """
    That of the metadata topic is 1.
    """
    assert "AAAAAAAAAAAAAAAAAAAAAQ" == uuid_text(uuids.METADATA_TOPIC_ID)
    assert UUID(int=0) == parse_uuid("AAAAAAAAAAAAAAAAAAAAAA")


@pytest.mark.parametrize(
    "text", ["", "A", "AAAAAAAAAAAAAAAAAAAA", "A" * 24, "AAAAAAAAAAAAAAAAAAAAA+", "é" * 22, "A A"]
)
def test_invalid_uuid_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"base64 UUID|decodes to"):
        parse_uuid(text)


def test_random_uuid_does_not_begin_with_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    On a command line it would be taken for an option.
    """
    candidates = [b"\xfb" * 16, b"\x11" * 16]
    monkeypatch.setattr(os, "urandom", lambda size: candidates.pop(0))

    value = random_uuid()

    assert UUID("11111111-1111-4111-9111-111111111111") == value
    assert 4 == value.version
