from __future__ import annotations

import pytest

from barnabas.server.security.host_address import host_address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42", "2001:db8:0:0:0:0:ff00:42"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("", ""),
        ("somewhere", "somewhere"),
    ],
)
def test_addresses_are_formatted_as_in_java(address: str, expected: str) -> None:
    """
    ``InetAddress.getHostAddress``.
    """
    assert expected == host_address(address)
