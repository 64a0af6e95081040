"""
The consumer protocol of the groups of one partition, put together (KIP-848).

::

    Heartbeats ------+--> Regexes       the topics of patterns
    ClassicMembers --+--> Rebalancing   epochs, target assignments, reconciliation
                     +--> Fencing ----> Migration   to a classic group and back
                     +--> Sessions      the timeouts of members
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.coordinator_runtime.executor import Executor
from barnabas.coordination.coordinator_runtime.timers import Timers
from barnabas.coordination.groups.classic.rebalance import Rebalance
from barnabas.coordination.groups.consumer.classic_members import ClassicMembers
from barnabas.coordination.groups.consumer.fencing import Fencing
from barnabas.coordination.groups.consumer.heartbeats import Heartbeats
from barnabas.coordination.groups.consumer.migration import Migration
from barnabas.coordination.groups.consumer.rebalancing import Rebalancing
from barnabas.coordination.groups.consumer.regexes import Regexes
from barnabas.coordination.groups.consumer.sessions import Sessions
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.topics import SubscribedTopics


class ConsumerProtocol:
    """
    What handles the requests of the members of consumer groups.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        timers: Timers,
        executor: Executor,
        topics: SubscribedTopics,
        config_of: GroupConfigOf,
        rebalance: Rebalance,
        options: CoordinationOptions,
    ) -> None:
        """
        Args:
            rebalance: that of the classic groups.
        """
        migration = Migration(groups, topics, rebalance, options)
        self.sessions = Sessions(groups, timers, config_of)
        fencing = Fencing(topics, self.sessions, migration)
        self.sessions.fence = fencing.fence
        regexes = Regexes(
            groups, topics, executor, options.group_consumer_regex_refresh_interval_ms
        )
        rebalancing = Rebalancing(
            topics, self.sessions, config_of, options.group_consumer_assignors[0]
        )
        self.heartbeats = Heartbeats(
            groups,
            sessions=self.sessions,
            regexes=regexes,
            rebalancing=rebalancing,
            fencing=fencing,
            migration=migration,
            config_of=config_of,
            options=options,
        )
        self.classic_members = ClassicMembers(
            topics,
            sessions=self.sessions,
            regexes=regexes,
            rebalancing=rebalancing,
            fencing=fencing,
            migration=migration,
            options=options,
        )
