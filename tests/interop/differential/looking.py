"""
Looking at transactions: what brokers tell of producers, transactional ids and groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.protocol.codec.schema import Message
from tests.interop.differential.sides import PAUSE, Session
from tests.interop.differential.steps import Ask, Step, fixed
from tests.support.build import api_request

PATIENCE: Final = 90.0
TELLS_DURATIONS: Final = 1
TELLS_PATTERNS: Final = 2
PREPARED: Final = frozenset({"PrepareCommit", "PrepareAbort"})
ONGOING: Final = "Ongoing"
TRANSACTIONS: Final = 1


@dataclass(frozen=True, slots=True)
class Ended:
    """
    Wait until a transactional id is between two states no more: markers are written after the end
    of a transaction is answered.

    Args:
        by_time: wait for the broker to abort what takes too long.
    """

    name: str
    by_time: bool = False

    async def run(self, session: Session) -> Any:
        not_yet = PREPARED | {ONGOING} if self.by_time else PREPARED
        request = api_request("describe_transactions", transactional_ids=[self.name])
        for _ in range(round(PATIENCE / PAUSE)):
            answer = await session.ask(request, 0)
            if isinstance(answer, str):
                return answer
            state = answer.transaction_states[0].transaction_state
            if state not in not_yet:
                return state
            await asyncio.sleep(PAUSE)
        return f"still {state}"

    def __str__(self) -> str:
        return f"wait until {self.name} is {'aborted by time' if self.by_time else 'settled'}"


def describe_transactions(names: Sequence[str]) -> Step:
    text = f"DescribeTransactions {list(names)}"
    return fixed(text, 0, "describe_transactions", transactional_ids=names)


def describe_producers(topics: Mapping[str, Sequence[int]]) -> Step:
    asked = [{"name": name, "partition_indexes": indexes} for name, indexes in topics.items()]
    return fixed(f"DescribeProducers {dict(topics)}", 0, "describe_producers", topics=asked)


def list_transactions(
    whose: Sequence[str], pattern: str | None, states: Sequence[str], duration_ms: int, version: int
) -> Step:
    """
    Which of some producers' transactions there are; none are named to ask by the pattern alone.
    """

    def make(session: Session) -> Message:
        ids = [session.side.identities[who].producer_id for who in whose]
        return api_request(
            "list_transactions",
            state_filters=states,
            producer_id_filters=ids,
            duration_filter=duration_ms if version >= TELLS_DURATIONS else -1,
            transactional_id_pattern=pattern if version >= TELLS_PATTERNS else None,
        )

    text = f"ListTransactions of {list(whose)} {pattern!r}, {list(states)}, over {duration_ms} ms"
    return Ask(text, version, make)


def fetch_offsets(
    group: str, topic: str, partitions: int, *, stable: bool, version: int = 9
) -> Step:
    def make(session: Session) -> Message:
        named = session.named(topic, by_id=version >= 10)
        topics = [{"partition_indexes": range(partitions), **named}]
        groups = [{"group_id": group, "topics": topics}]
        return api_request("offset_fetch", groups=groups, require_stable=stable)

    return Ask(f"OffsetFetch of {group}, stable {stable}", version, make)


def find_coordinator(names: Sequence[str], key_type: int, version: int) -> Step:
    """
    Who looks after groups or transactional ids.
    """
    keys: dict[str, Any] = {"coordinator_keys": names} if version >= 4 else {"key": names[0]}
    text = f"FindCoordinator of {list(names)}, type {key_type}"
    return fixed(text, version, "find_coordinator", key_type=key_type if version else 0, **keys)
