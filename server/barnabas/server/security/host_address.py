"""
The address of a client as Java writes it.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address


@lru_cache(maxsize=1024)
def host_address(address: str) -> str:
    """
    What Java's ``InetAddress.getHostAddress`` makes of an address: for IPv6 all eight groups
    without leading zeros, and IPv4 where IPv6 only carries it.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    pairs = zip(parsed.packed[::2], parsed.packed[1::2], strict=True)
    groups = ":".join(f"{high << 8 | low:x}" for high, low in pairs)
    scope = f"%{parsed.scope_id}" if parsed.scope_id else ""
    return f"{groups}{scope}"


def is_address(name: str) -> bool:
    """
    Whether *name* is an address, and not the name of a host.
    """
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
