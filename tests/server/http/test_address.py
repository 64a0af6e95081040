from __future__ import annotations

import pytest

from barnabas.server.http.address import Address, BadAddress


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("8099", Address("127.0.0.1", 8099)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:80", Address("::1", 80)),
    ],
)
def test_valid_address_is_parsed(given: str, address: Address) -> None:
    assert address == Address.parse(given)
    assert address.is_loopback


@pytest.mark.parametrize("given", ["", "x", "localhost:", "127.0.0.1:65536", "::1:80", "-1", ":80"])
def test_invalid_address_is_refused(given: str) -> None:
    with pytest.raises(BadAddress):
        Address.parse(given)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "kafka"])
def test_other_addresses_are_not_loopback(host: str) -> None:
    assert not Address(host, 80).is_loopback
