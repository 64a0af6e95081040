"""
The timeouts of members of streams groups.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TypeAlias

from barnabas.coordination.groups.modern.sessions import MemberSessions
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.member import StreamsGroupMember

Sessions: TypeAlias = MemberSessions[StreamsGroup, StreamsGroupMember]
"""
Starts and ends the timeouts of the members of one partition.
"""
