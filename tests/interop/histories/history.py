"""
Records the requests of a history's clients and their answers.

Times are seconds of one monotonic clock, from just before a request is sent to just after its
response arrives. An operation without a response may take effect at any later time: its outcome is
``UNKNOWN``, and it ends at infinity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias, TypeVar

E = TypeVar("E", bound="Event")


class Partition(NamedTuple):
    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


Producer: TypeAlias = tuple[int, int]
"""
A producer id and its epoch.
"""


class Outcome(Enum):
    OK = "acknowledged"
    FAILED = "refused"
    UNKNOWN = "unknown"


class Marker(Enum):
    COMMIT = "commit marker"
    ABORT = "abort marker"


@dataclass(kw_only=True)
class Event:
    actor: str
    began: float
    ended: float = math.inf

    def precedes(self, other: Event) -> bool:
        """
        Whether this operation was over before *other* began.
        """
        return self.ended < other.began


@dataclass(kw_only=True)
class Send(Event):
    """
    One batch. Events of one actor are in the order in which the batches were first sent.
    """

    partition: Partition
    values: tuple[str, ...]
    outcome: Outcome = Outcome.UNKNOWN
    base_offset: int | None = None
    """None if the response does not state it."""
    producer: Producer | None = None
    """None for a producer without idempotence."""
    attempts: int = 1
    transaction: int | None = None
    """The number of the transaction."""
    acks: int = -1
    in_flight: int = 1


@dataclass(kw_only=True)
class Init(Event):
    """
    A transactional producer got an epoch, which fences all earlier ones.
    """

    transactional_id: str
    producer: Producer


@dataclass(kw_only=True)
class Transaction(Event):
    """
    *began* and *ended* are those of the request that ends it.

    A transaction whose producer never asked for a commit is ``aborted``, with or without a request.
    """

    number: int
    transactional_id: str
    producer: Producer
    is_commit: bool
    outcome: Outcome = Outcome.UNKNOWN

    @property
    def must_be_committed(self) -> bool:
        return self.is_commit and self.outcome is Outcome.OK

    @property
    def must_be_aborted(self) -> bool:
        return not self.is_commit or self.outcome is Outcome.FAILED


@dataclass(kw_only=True)
class Read(Event):
    """
    The response to one fetch of one partition.
    """

    partition: Partition
    position: int
    values: tuple[tuple[int, str], ...]
    """Offsets and values, without control records and what the consumer drops as aborted."""
    next_position: int
    is_committed: bool
    """Whether the isolation level is ``read_committed``."""
    session: int
    """Reads of one session continue at the position where the last one ended."""
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    group: str | None = None


@dataclass(kw_only=True)
class Commit(Event):
    """
    A committed offset. In a transaction, *began* is when its end was asked for.
    """

    group: str
    partition: Partition
    offset: int
    outcome: Outcome = Outcome.UNKNOWN
    member: str = ""
    epoch: int = -1
    """The epoch or generation of the member, or -1."""
    transaction: int | None = None
    is_reset: bool = False
    """Whether an administrator moved the group."""


@dataclass(kw_only=True)
class Committed(Event):
    """
    The committed offset that a client was given; -1 if the group has none.
    """

    group: str
    partition: Partition
    offset: int


@dataclass(kw_only=True)
class Owned(Event):
    """
    A response in which the coordinator confirms that a member owns partitions.
    """

    group: str
    member: str
    epoch: int
    """A classic group's generation, or a member's epoch."""
    partitions: frozenset[Partition]
    stint: int
    """A new number for each uninterrupted membership."""
    is_classic: bool = False


@dataclass(kw_only=True)
class Acquired(Event):
    """
    Records that a member of a share group acquired from one partition.
    """

    group: str
    member: str
    partition: Partition
    values: tuple[tuple[int, str], ...]
    lock_s: float
    session: int
    counts: tuple[int, ...] = ()
    """How often each record has been delivered, with this time."""


class Acknowledgement(Enum):
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3


@dataclass(kw_only=True)
class Acknowledged(Event):
    """
    What a member of a share group did with records.
    """

    group: str
    member: str
    partition: Partition
    offsets: tuple[int, ...]
    kind: Acknowledgement
    outcome: Outcome = Outcome.UNKNOWN


@dataclass(kw_only=True)
class Left(Event):
    """
    A member of a share group ended its session, or lost its connection: *began* is the earliest
    time at which the broker may release what the member holds.
    """

    group: str
    member: str


@dataclass(kw_only=True)
class RecordsDeleted(Event):
    partition: Partition
    before: int
    outcome: Outcome = Outcome.UNKNOWN


@dataclass(kw_only=True)
class TopicDeleted(Event):
    topic: str
    outcome: Outcome = Outcome.UNKNOWN


@dataclass(kw_only=True)
class Fault(Event):
    kind: str
    ends_sessions: bool = False
    """Whether the broker forgot connections and what consumers of share groups hold."""
    moves_time: bool = False
    """Whether timeouts of the broker may have passed early."""


class Entry(NamedTuple):
    """
    A record of the log as it is at the end.
    """

    offset: int
    content: str | Marker
    producer: Producer | None = None
    is_transactional: bool = False


@dataclass
class FinalLog:
    """
    A partition after everything has settled: no transaction is open.
    """

    entries: list[Entry] = field(default_factory=list)
    """All records from the log start offset on."""
    committed: list[tuple[int, str]] = field(default_factory=list)
    """What a new ``read_committed`` consumer reads."""
    start: int = 0
    end: int = 0
    """The high watermark."""


@dataclass
class History:
    events: list[Event] = field(default_factory=list)
    logs: dict[Partition, FinalLog] = field(default_factory=dict)
    drained: set[str] = field(default_factory=set)
    """Share groups from which everything was read at the end."""
    deleted_topics: set[str] = field(default_factory=set)
    """Topics that do not exist at the end."""
    is_complete: bool = True
    """Whether everything was read at the end; no rule looks at a history without its end."""
    problems: list[str] = field(default_factory=list)
    """What went wrong while the history was recorded, such as a broker that does not start."""

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


def inputs_of(value: str) -> str | None:
    """
    The input that a transformer made an output from; None if *value* is no output.
    """
    source, separator, _ = value.partition(">")
    return source if separator else None


def input_of(partition: Partition, offset: int, value: str) -> str:
    """
    Identifies an input. Its value alone does not, if its producer may have sent it twice.
    """
    return f"{value}@{partition.number}:{offset}"


def output_of(source: str, actor: str, transaction: int) -> str:
    return f"{source}>{actor}#{transaction}"


def by_time(events: Iterable[E]) -> list[E]:
    return sorted(events, key=lambda event: event.ended)
