"""
What a request tells of who sends it.
"""

from __future__ import annotations

from typing import NamedTuple


class ClientSoftware(NamedTuple):
    """
    What a client calls itself in ApiVersions (KIP-511).
    """

    name: str
    version: str
