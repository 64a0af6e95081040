"""
What a request or a timeout makes of the coordinator's log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard

if TYPE_CHECKING:
    from barnabas.server.groups.records import EncodedRecord, Record


class Producer(NamedTuple):
    """
    A producer as it names itself.
    """

    producer_id: int
    producer_epoch: int


Written: TypeAlias = Callable[[ErrorCode | None, int], None]
"""
Called with the error that kept records out of the log, or None, and with the time in ms.
"""


@struct(kw_only=True)
class Changes:
    """
    Records to write, and what follows from them.

    Where ``ahead`` is false, the records are the change: it happens when they are applied, right
    after the append. A classic group in a rebalance is ``ahead`` of its log: the records only tell
    what it has become, and what is left to do once they are durable is in ``written``.

    Where ``divisible`` is true, the records may be spread over several batches, of which some may
    make it and others not (Kafka's ``isAtomic``, negated).
    """

    records: Sequence[Record] = ()
    encoded: Sequence[EncodedRecord] = ()
    """The same as bytes, where that is done already: many of them take their time."""
    producer: Producer | None = None
    """Whose transaction the records are part of; they count once it is committed."""
    guard: VerificationGuard = SENTINEL
    """With what the log takes the first records of that transaction."""
    ahead: bool = False
    divisible: bool = False
    written: Written | None = None


NOTHING: Final = Changes()
"""
No change.
"""
