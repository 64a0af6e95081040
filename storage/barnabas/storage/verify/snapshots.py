"""
A snapshot of producers, against what the records up to its offset say.

What a snapshot lacks is seldom wrong: producers are forgotten when they were idle for long, and all
of them when a broker was stopped cleanly and somebody removed its snapshots. Only a producer with
an open transaction is never forgotten. What a snapshot has must have been so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from barnabas.protocol.structs import struct
from barnabas.storage.producers.entry import NO_COORDINATOR_EPOCH, ProducerStateEntry
from barnabas.storage.producers.snapshots import SnapshotFile
from barnabas.storage.verify import rules
from barnabas.storage.verify.report import FileReport


@struct
class KnownProducers:
    """
    What the records say.
    """

    producers: Mapping[int, ProducerStateEntry]
    first_offset: int
    """Of the log; what was before is not known."""
    exact: bool
    """Whether nothing is missing behind that."""
    doubtful: Collection[int]
    """Producers of which something contradictory was found already."""


def check_snapshot(
    offset: int,
    entries: Sequence[ProducerStateEntry],
    known: KnownProducers | None,
    report: FileReport,
) -> None:
    """
    Check the entries of a readable snapshot.

    Args:
        offset: that in the name of the snapshot.
        known: None if the records say nothing.
    """
    seen = set()
    for number, entry in enumerate(entries):
        problem = _beyond(entry, offset)
        if problem is None and entry.producer_id in seen:
            problem = f"producer {entry.producer_id} twice", "once"
        if problem is None and known is not None and entry.producer_id not in known.doubtful:
            problem = _contradiction(entry, known)
        if problem is not None:
            report.add(rules.SNAPSHOT_PRODUCER, *problem, entry=number)
        seen.add(entry.producer_id)
    if known is None:
        return
    for producer_id, producer in known.producers.items():
        first = producer.current_txn_first_offset
        if first is not None and producer_id not in seen and producer_id not in known.doubtful:
            report.add(
                rules.SNAPSHOT_PRODUCER,
                f"no producer {producer_id}",
                f"its transaction, which is open since offset {first}",
                offset=first,
            )


Problem = tuple[str, str]
"""What was found, and what was expected."""


def _beyond(entry: ProducerStateEntry, offset: int) -> Problem | None:
    who = f"producer {entry.producer_id}"
    if entry.producer_id < 0:
        return who, "0 or more"
    if entry.last_data_offset >= offset:
        return f"{who} with a batch up to {entry.last_data_offset}", f"below {offset}"
    first = entry.current_txn_first_offset
    if first is not None and first >= offset:
        return f"{who} with a transaction from {first}", f"below {offset}"
    return None


def _contradiction(entry: ProducerStateEntry, known: KnownProducers) -> Problem | None:
    who = f"producer {entry.producer_id}"
    logged = known.producers.get(entry.producer_id)
    if logged is None:
        if known.exact and entry.last_data_offset >= known.first_offset:
            return f"{who} with a batch up to {entry.last_data_offset}", "no batch of it"
        return None
    pairs = _exact_pairs(entry, logged) if known.exact else _partial_pairs(entry, logged)
    for name, found, expected in pairs:
        if found != expected:
            return f"{who} with {name} {_text(found)}", _text(expected)
    return None


Pair = tuple[str, int | None, int | None]


def _exact_pairs(entry: ProducerStateEntry, logged: ProducerStateEntry) -> list[Pair]:
    pairs: list[Pair] = [
        ("epoch", entry.producer_epoch, logged.producer_epoch),
        ("last sequence", entry.last_seq, logged.last_seq),
        ("last offset", entry.last_data_offset, logged.last_data_offset),
        ("offset delta", entry.last_offset_delta, logged.last_offset_delta),
        ("last timestamp", entry.last_timestamp, logged.last_timestamp),
        (
            "a transaction from",
            entry.current_txn_first_offset,
            logged.current_txn_first_offset,
        ),
    ]
    if entry.coordinator_epoch != NO_COORDINATOR_EPOCH:
        # None, if the producer was forgotten between its last marker and its last batch.
        pairs.append(("coordinator epoch", entry.coordinator_epoch, logged.coordinator_epoch))
    return pairs


def _partial_pairs(entry: ProducerStateEntry, logged: ProducerStateEntry) -> list[Pair]:
    """
    What must be so though some of the producer's batches and markers are gone.
    """
    if entry.producer_epoch > logged.producer_epoch:
        return []
    if entry.producer_epoch < logged.producer_epoch:
        return [("epoch", entry.producer_epoch, logged.producer_epoch)]
    if entry.last_data_offset > logged.last_data_offset or logged.is_empty:
        return []
    pairs: list[Pair] = [
        ("last offset", entry.last_data_offset, logged.last_data_offset),
        ("last sequence", entry.last_seq, logged.last_seq),
        ("offset delta", entry.last_offset_delta, logged.last_offset_delta),
    ]
    first = logged.current_txn_first_offset
    if first is not None and entry.current_txn_first_offset is None:
        pairs.append(("a transaction from", None, first))
    return pairs


def _text(value: int | None) -> str:
    return "none" if value is None else str(value)


def check_strays(
    snapshots: Sequence[SnapshotFile],
    base_offsets: Collection[int],
    end_offset: int,
    report: FileReport,
) -> None:
    """
    Snapshots that are at no base of a segment: one may be from when the log was opened, and one
    from when it was closed, at its end.
    """
    strays = [snapshot for snapshot in snapshots if snapshot.offset not in base_offsets]
    if strays and strays[-1].offset == end_offset:
        del strays[-1]
    for snapshot in strays[:-1]:
        report.beside(snapshot.path).add(
            rules.SNAPSHOT_STRAY,
            f"offset {snapshot.offset}",
            "the base offset of a segment, or where the log was opened or closed",
        )
