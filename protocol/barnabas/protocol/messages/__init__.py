"""
The messages of all APIs, one module each.

A module is imported when its API is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from barnabas.protocol.schema import Message

_MODULES: Final = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    34: "alter_replica_log_dirs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    55: "describe_quorum",
    57: "update_features",
    60: "describe_cluster",
    61: "describe_producers",
    64: "unregister_broker",
    65: "describe_transactions",
    66: "list_transactions",
    74: "list_config_resources",
    75: "describe_topic_partitions",
}


class Messages(Mapping[int, type[Message]]):
    """
    The requests or the responses, by API key.
    """

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def __getitem__(self, key: int) -> type[Message]:
        module = _MODULES[key]
        name = "".join(word.capitalize() for word in module.split("_")) + self._suffix
        found: type[Message] = getattr(import_module(f"{__name__}.{module}"), name)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)

    def __contains__(self, key: object) -> bool:
        return key in _MODULES


REQUESTS: Final[Mapping[int, type[Message]]] = Messages("Request")
RESPONSES: Final[Mapping[int, type[Message]]] = Messages("Response")
