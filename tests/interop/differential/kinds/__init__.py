"""
The kinds of workloads. Seeds take them in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.interop.differential.kinds.appends import (
    append_time,
    appends,
    recompression,
    rolling,
    time_limits,
)
from tests.interop.differential.kinds.compaction import compaction
from tests.interop.differential.kinds.configs import config_changes, more_partitions
from tests.interop.differential.kinds.consumer_groups import consumer_groups, migrations
from tests.interop.differential.kinds.coordinated import (
    both_protocols,
    first_protocol,
    first_protocol_oddly,
    second_protocol,
    second_protocol_oddly,
    timeouts,
)
from tests.interop.differential.kinds.malformed import damaged_codecs, malformed
from tests.interop.differential.kinds.producers import idempotence, markers, open_transactions
from tests.interop.differential.kinds.removal import delete_records, retention
from tests.interop.differential.kinds.requests import requests
from tests.interop.differential.kinds.sessions import sessions
from tests.interop.differential.kinds.share_groups import share_groups
from tests.interop.differential.kinds.streams_groups import streams_groups
from tests.interop.differential.scripts import Kind, Script, Workload

KINDS: Final[Mapping[str, Kind]] = {
    "appends": appends,
    "malformed": malformed,
    "idempotence": idempotence,
    "retention": retention,
    "rolling": rolling,
    "recompression": recompression,
    "append-time": append_time,
    "damaged-codecs": damaged_codecs,
    "delete-records": delete_records,
    "time-limits": time_limits,
    "open-transactions": open_transactions,
    "config-changes": config_changes,
    "compaction": compaction,
    "more-partitions": more_partitions,
    "requests": requests,
    "sessions": sessions,
    "markers": markers,
    "first-protocol": first_protocol,
    "second-protocol": second_protocol,
    "first-protocol-oddly": first_protocol_oddly,
    "second-protocol-oddly": second_protocol_oddly,
    "both-protocols": both_protocols,
    "timeouts": timeouts,
    "consumer-groups": consumer_groups,
    "migrations": migrations,
    "streams-groups": streams_groups,
    "share-groups": share_groups,
}
COORDINATED_KINDS: Final = frozenset(list(KINDS)[-10:])
"""
Groups, and transactions that the coordinator knows of; the others' come from nowhere.
"""

GROUP_KINDS: Final = frozenset({"consumer-groups", "migrations", "share-groups", "streams-groups"})


def write(seed: int, started_ms: int) -> Workload:
    name = list(KINDS)[seed % len(KINDS)]
    script = Script(seed, name, started_ms)
    KINDS[name](script)
    return script.workload()
