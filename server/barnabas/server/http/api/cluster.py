"""
The broker as a whole.
"""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, TypedDict

from barnabas.protocol.errors import KafkaError
from barnabas.server.http.api.attention import Attention
from barnabas.server.http.api.context import ApiContext
from barnabas.server.http.api.look import ALL, DirectoryLook, look_at
from barnabas.server.http.api.rates import RatesView
from barnabas.server.http.json_api import Answer, Nothing, Operation

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.server.http.api.look import Look
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.storage.directories.directories import LogDirectories


class DirectoryView(TypedDict):
    """
    A log directory; the numbers are null while it is offline.
    """

    path: str
    is_online: bool
    total_bytes: int | None
    usable_bytes: int | None
    size: int | None
    partitions: int | None


class ClusterView(TypedDict):
    """
    The broker.
    """

    cluster_id: str
    node_id: int
    version: str
    state: str
    now_ms: int
    started_ms: int
    records_allowed: bool
    directories: list[DirectoryView]
    topics: int
    internal_topics: int
    partitions: int
    offline_partitions: int
    segments: int
    size: int
    groups: int
    transactional_ids: int
    coordinators_loading: int
    connections: int
    rates: RatesView | None
    attention: list[Attention]


async def show(api: ApiContext, _: Nothing) -> Answer:
    parts = api.parts
    look = await api.in_turns(look_at(parts, api.broker.forecasts))
    found = _of_the_loop(api, parts, look)
    return await api.in_thread(partial(_complete, api, found, look))


def _complete(api: ApiContext, found: ClusterView, look: Look) -> Answer:
    directories = api.parts.log_manager.directories
    found["directories"] = [_directory(path, directories, look) for path in directories.all]
    found["rates"] = api.rates.note(look.counts).get(ALL)
    return Answer(found)


def _directory(path: Path, directories: LogDirectories, look: Look) -> DirectoryView:
    try:
        total, usable = directories.volume_bytes(path)
    except KafkaError:
        return {
            "path": str(path),
            "is_online": False,
            "total_bytes": None,
            "usable_bytes": None,
            "size": None,
            "partitions": None,
        }
    logs = look.directories.get(path) or DirectoryLook()
    return {
        "path": str(path),
        "is_online": True,
        "total_bytes": total,
        "usable_bytes": usable,
        "size": logs.size,
        "partitions": logs.partitions,
    }


def _of_the_loop(api: ApiContext, parts: BrokerParts, look: Look) -> ClusterView:
    groups = parts.coordinators.group_coordinator
    transactions = parts.coordinators.transaction_coordinator
    now_ms = parts.clock.now_ms()
    seen = look.topics.values()
    return {
        "cluster_id": parts.cluster_id,
        "node_id": parts.node_id,
        "version": version("barnabas"),
        "state": api.broker.readiness.state.name,
        "now_ms": now_ms,
        "started_ms": now_ms - int(api.broker.readiness.seconds * 1000),
        "records_allowed": api.are_records_allowed,
        "directories": [],
        "topics": len(seen),
        "internal_topics": sum(each.topic.is_internal for each in seen),
        "partitions": sum(each.open + each.offline for each in seen),
        "offline_partitions": sum(each.offline for each in seen),
        "segments": sum(each.segments for each in seen),
        "size": sum(each.size for each in seen),
        "groups": 0 if groups is None else sum(len(shard.seen.groups) for shard in groups.shards),
        "transactional_ids": 0
        if transactions is None
        else sum(len(shard.seen.transactions) for shard in transactions.shards),
        "coordinators_loading": parts.coordinators.loading,
        "connections": 0 if api.broker.connections is None else len(api.broker.connections),
        "rates": None,
        "attention": look.attention,
    }


OPERATIONS: Final = (
    Operation(
        "GET", "/cluster", "the broker: its state, sizes and rates", show, answers=ClusterView
    ),
)
