"""
The address of a client, in the words that Kafka uses for it in groups.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address


@lru_cache(maxsize=1024)
def client_host(address: str) -> str:
    """
    What Java's ``InetAddress.toString`` makes of an address without a name: a slash, and for IPv6
    all eight groups without leading zeros.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return f"/{address}"
    if not isinstance(parsed, IPv6Address):
        return f"/{parsed}"
    if parsed.ipv4_mapped is not None:
        return f"/{parsed.ipv4_mapped}"
    pairs = zip(parsed.packed[::2], parsed.packed[1::2], strict=True)
    groups = ":".join(f"{high << 8 | low:x}" for high, low in pairs)
    scope = f"%{parsed.scope_id}" if parsed.scope_id else ""
    return f"/{groups}{scope}"
