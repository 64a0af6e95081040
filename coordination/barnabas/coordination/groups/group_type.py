"""
The types of groups, which differ in the protocol of their members.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from enum import Enum


class GroupType(Enum):
    """
    The type of a group, named as on the wire (Kafka's ``Group.GroupType``).
    """

    CLASSIC = "classic"
    CONSUMER = "consumer"  # KIP-848
    SHARE = "share"  # KIP-932
    STREAMS = "streams"  # KIP-1071
