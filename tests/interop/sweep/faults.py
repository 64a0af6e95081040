"""
Faults that made requests harm others: the sweep finds each of them.
"""

from __future__ import annotations

from typing import Final

from tests.interop.sweep.sweep import OFTEN, ONCE, UNREAD, Way
from tests.mutations.overlay import Change

_SERVER: Final = "server/barnabas/server/"
_COORDINATION: Final = "coordination/barnabas/coordination/"
_RECORDS: Final = "storage/barnabas/storage/segment/records.py"
_OUTLINES: Final = "        return self.batch_at(header).outlines()\n"


class RequestFault:
    """
    Attributes:
        api, way: the requests of the sweep that find it.
        is_quick: whether they do within seconds.
    """

    def __init__(
        self, name: str, api: str, way: Way, *changes: Change, is_quick: bool = False
    ) -> None:
        self.name = name
        self.api = api
        self.way = way
        self.changes = changes
        self.is_quick = is_quick


FAULTS: Final = (
    RequestFault(
        "a refused record ends the metadata log",
        "alter_user_scram_credentials",
        ONCE,
        Change(
            _SERVER + "cluster/metadata_log.py",
            "except KafkaStorageError as error:",
            "except KafkaError as error:",
        ),
        is_quick=True,
    ),
    RequestFault(
        "a look-up by time makes an object of each header",
        "list_offsets",
        UNREAD,
        Change(_RECORDS, _OUTLINES, "        return iter([*self.batch_at(header).records()])\n"),
    ),
    RequestFault(
        "a look-up by time decompresses the whole batch",
        "list_offsets",
        UNREAD,
        Change(
            _RECORDS,
            _OUTLINES,
            "        from barnabas.protocol.compression import decompress\n\n"
            "        batch = self.batch_at(header)\n"
            "        payload = bytes(decompress(batch.compression, batch.payload))\n"
            "        payload = payload if batch.codec else batch.payload\n"
            "        return batch.outlines_of(iter([payload]))\n",
        ),
    ),
    RequestFault(
        "a pattern of a consumer group is matched in one step",
        "consumer_group_heartbeat",
        OFTEN,
        Change(
            _SERVER + "coordinator_runtime/executor.py",
            "result = await self._turns.aside(work, WorkKind.COORDINATOR)",
            "from barnabas.coordination.steps import finished\n\n"
            "            result = finished(work())",
        ),
        is_quick=True,
    ),
    RequestFault(
        "a pattern of ListTransactions is matched in one step",
        "list_transactions",
        UNREAD,
        Change(
            _SERVER + "handlers/list_transactions.py",
            "matches = await context.broker.turns.aside(\n"
            "            matching, WorkKind.REQUEST, lambda: client.is_closing\n"
            "        )",
            "from barnabas.coordination.steps import finished\n\n"
            "        matches = finished(matching())",
        ),
    ),
    RequestFault(
        "fetch sessions keep names of any length",
        "fetch",
        OFTEN,
        Change(
            _SERVER + "fetch/contexts.py",
            "len(topic.topic) <= MAX_NAME_LENGTH and topic.topic.isascii() for",
            "True for",
        ),
        is_quick=True,
    ),
    RequestFault(
        "answers grow while the memory is used up",
        "list_groups",
        UNREAD,
        Change(
            _SERVER + "network/request_memory.py",
            "        if not self.is_used_up:\n            return True\n        if self._answer",
            "        if True:\n            return True\n        if self._answer",
        ),
    ),
    RequestFault(
        "delegation tokens have no bound",
        "create_delegation_token",
        OFTEN,
        Change(
            _COORDINATION + "cluster/delegation_tokens.py",
            "    def _check_room(self, requester: str, size: int) -> None:\n",
            "    def _check_room(self, requester: str, size: int) -> None:\n        return\n",
        ),
    ),
    RequestFault(
        "budgets count characters",
        "init_producer_id",
        OFTEN,
        Change(
            _COORDINATION + "text_memory.py",
            "return _MORE_OF_A_TEXT + MOST_BYTES_OF_A_CHARACTER * len(text)",
            "return len(text)",
        ),
    ),
)
