"""
The streams protocol of the groups of one partition, put together (KIP-1071).

::

    Heartbeats --+--> Rebalancing   topics, epochs, target assignments, reconciliation
                 +--> Fencing       the removal of members
                 +--> Sessions      the timeouts of members
"""

from __future__ import annotations

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.coordinator_runtime.timers import Timers
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.coordination.groups.streams.fencing import Fencing
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.heartbeats import Heartbeats
from barnabas.coordination.groups.streams.rebalancing import Rebalancing
from barnabas.coordination.groups.streams.sessions import Sessions


class StreamsProtocol:
    """
    What handles the requests of the members of streams groups.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        timers: Timers,
        topics: SubscribedTopics,
        config_of: GroupConfigOf,
        options: CoordinationOptions,
    ) -> None:
        self.sessions = Sessions(
            groups,
            timers,
            StreamsGroup,
            lambda group_id: config_of(group_id).streams_session_timeout_ms,
        )
        fencing = Fencing(self.sessions)
        self.sessions.fence = fencing.fence
        self._rebalancing = Rebalancing(groups, timers, topics, self.sessions, config_of)
        self.heartbeats = Heartbeats(
            groups,
            topics=topics.topics,
            sessions=self.sessions,
            rebalancing=self._rebalancing,
            fencing=fencing,
            config_of=config_of,
            options=options,
        )

    def deleted(self, group_id: str) -> None:
        """
        End what the group waits for, which does not exist any more.
        """
        self._rebalancing.end_delay(group_id)
