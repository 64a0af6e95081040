"""
The shard of the group coordinator.
"""

from __future__ import annotations

from typing import TypeAlias

from barnabas.coordination.groups.shard_state import ShardState
from barnabas.server.coordinator_runtime.shard import CoordinatorShard

GroupShard: TypeAlias = CoordinatorShard[ShardState]
"""
The groups of one partition (Kafka's ``GroupCoordinatorShard``).
"""
