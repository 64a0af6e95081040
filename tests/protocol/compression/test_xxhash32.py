from __future__ import annotations

from types import ModuleType

import pytest

from tests.support.compiled import compiled, plain

NAME = "barnabas.protocol.compression.xxhash32"
PLAIN = plain(NAME)


@pytest.fixture(scope="module", params=["plain", "compiled"])
def xxhash32(request: pytest.FixtureRequest) -> ModuleType:
    return PLAIN if request.param == "plain" else compiled(NAME)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
        (bytes.fromhex("6040"), 0x301A8268),
        (b"\xff" * 15, 0x20095B45),
        (b"\xff" * 16, 0xD85160AA),
        (b"\xff" * 1000, 0xE046CF63),
    ],
)
def test_xxhash32_equals_the_reference(xxhash32: ModuleType, data: bytes, expected: int) -> None:
    assert expected == xxhash32.xxhash32(data)
