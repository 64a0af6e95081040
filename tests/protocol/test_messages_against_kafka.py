"""
Every version of every message against bytes that Apache Kafka's own classes wrote.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.codec.codec import decode_from, encode
from barnabas.protocol.codec.schema import Message
from tests.support.messages import VERSIONS, Samples, name_of

GOLDEN = {
    (name, int(version)): {True: full.strip("-"), False: bare.strip("-")}
    for name, version, full, bare in (
        line.split()
        for line in (Path(__file__).parent / "kafka_messages.txt").read_text().splitlines()
        if not line.startswith("#")
    )
}


def test_kafka_messages_cover_exactly_our_versions() -> None:
    """
    A version added here needs its line of golden data.
    """
    assert {(cls.__name__, version) for cls, version in VERSIONS} == set(GOLDEN)


@pytest.mark.parametrize("full", [True, False], ids=["full", "bare"])
@pytest.mark.parametrize(("cls", "version"), VERSIONS, ids=name_of)
def test_encoding_equals_that_of_kafka(cls: type[Message], version: int, full: bool) -> None:
    golden = GOLDEN[cls.__name__, version][full]
    sample = Samples(full=full).message(cls, version)

    assert golden == encode(sample, version).hex()
    assert (sample, len(golden) // 2) == decode_from(cls, version, bytes.fromhex(golden), 0)
