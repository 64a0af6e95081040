"""
The protocols by which members of a group agree on who reads what.
"""

from __future__ import annotations

from enum import Enum


class GroupType(Enum):
    """
    What kind of group it is, named as on the wire (Kafka's ``Group.GroupType``).
    """

    CLASSIC = "classic"
    CONSUMER = "consumer"  # KIP-848
    SHARE = "share"  # KIP-932
    STREAMS = "streams"  # KIP-1071
