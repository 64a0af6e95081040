"""
What somebody should look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypedDict

from barnabas.coordination.transactions.state import TransactionState

if TYPE_CHECKING:
    from barnabas.server.requests.broker_parts import BrokerParts

MOST: Final = 1000
"""So many things are listed."""


class Attention(TypedDict):
    """
    One thing, in a sentence.
    """

    kind: Literal[
        "offline_directory",
        "offline_partition",
        "uncleanable_partition",
        "stuck_transaction",
        "loses_unread",
    ]
    topic: str | None
    partition: int | None
    group: str | None
    transactional_id: str | None
    says: Annotated[str, "a sentence"]


def offline_directories(parts: BrokerParts) -> Iterator[Attention]:
    """
    The log directories that have failed.
    """
    for path in parts.log_manager.directories.offline:
        yield attention("offline_directory", f"The log directory {path} has failed.")


def offline_partition(topic: str, partition: int, sentence: str) -> Attention:
    """
    A partition that is not served.

    Args:
        sentence: the reason.
    """
    says = f"{topic}-{partition} is offline: {sentence or 'its log cannot be opened'}."
    return attention("offline_partition", says.replace("..", "."), topic, partition)


def uncleanable_partitions(parts: BrokerParts) -> Iterator[Attention]:
    """
    The compacted logs that the cleaner could not clean.
    """
    cleaner = parts.log_manager.cleaner
    if cleaner is None:
        return
    for path in parts.log_manager.directories.live:
        for found in sorted(cleaner.manager.uncleanable_partitions(path)):
            says = f"The cleaner has failed on {found}, and leaves it as it is until a restart."
            yield attention("uncleanable_partition", says, *found)


def stuck_transactions(parts: BrokerParts) -> Iterator[Attention | None]:
    """
    The transactions that are open for longer than their timeouts; None between two others.
    """
    coordinator = parts.coordinators.transaction_coordinator
    now_ms = parts.clock.now_ms()
    # The coordinator looks for them from time to time.
    grace_ms = parts.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
    for shard in () if coordinator is None else coordinator.shards:
        for name, transaction in tuple(shard.seen.transactions.items()):
            late_ms = now_ms - transaction.start_ms - transaction.timeout_ms - 2 * grace_ms
            if transaction.state is TransactionState.ONGOING and late_ms > 0:
                says = (
                    f"The transaction of {name} is open for {now_ms - transaction.start_ms} ms; its"
                    f" timeout is {transaction.timeout_ms} ms."
                )
                found = attention("stuck_transaction", says)
                found["transactional_id"] = name
                yield found
            yield None


def attention(
    kind: Literal[
        "offline_directory",
        "offline_partition",
        "uncleanable_partition",
        "stuck_transaction",
        "loses_unread",
    ],
    says: str,
    topic: str | None = None,
    partition: int | None = None,
) -> Attention:
    """
    An entry of the list.
    """
    return {
        "kind": kind,
        "topic": topic,
        "partition": partition,
        "group": None,
        "transactional_id": None,
        "says": says,
    }
