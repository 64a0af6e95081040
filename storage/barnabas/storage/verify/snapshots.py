"""
A snapshot of producers, compared with the records below its offset.

A missing producer is seldom an error: a broker forgets idle producers, and all producers if
somebody removes the snapshots after a clean stop. It never forgets one with an open transaction. An
entry of a snapshot must be right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from barnabas.protocol.structs import struct
from barnabas.storage.producers.entry import NO_COORDINATOR_EPOCH, ProducerStateEntry
from barnabas.storage.producers.snapshots import SnapshotFile
from barnabas.storage.verify import invariants
from barnabas.storage.verify.report import FileReport


@struct
class KnownProducers:
    """
    The state of the producers after a replay.
    """

    producers: Mapping[int, ProducerStateEntry]
    first_offset: int
    """The first offset of the log. Earlier batches are unknown."""
    exact: bool
    """Whether no later batch is missing."""
    doubtful: Collection[int]
    """Producers with a violation that was reported already."""


def check_snapshot(
    offset: int,
    entries: Sequence[ProducerStateEntry],
    known: KnownProducers | None,
    report: FileReport,
) -> None:
    """
    Check the entries of a readable snapshot.

    Args:
        offset: the offset in the name of the snapshot.
        known: None if the replay is not reliable.
    """
    seen = set()
    for number, entry in enumerate(entries):
        problem = _beyond(entry, offset)
        if problem is None and entry.producer_id in seen:
            problem = f"producer {entry.producer_id} twice", "once"
        if problem is None and known is not None and entry.producer_id not in known.doubtful:
            problem = _contradiction(entry, known)
        if problem is not None:
            report.add(invariants.SNAPSHOT_PRODUCER, *problem, entry=number)
        seen.add(entry.producer_id)
    if known is None:
        return
    for producer_id, producer in known.producers.items():
        first = producer.current_txn_first_offset
        if first is not None and producer_id not in seen and producer_id not in known.doubtful:
            report.add(
                invariants.SNAPSHOT_PRODUCER,
                f"no producer {producer_id}",
                f"its transaction, which is open since offset {first}",
                offset=first,
            )


Problem = tuple[str, str]
"""The found and the expected value, in words."""


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
        # It is -1 if the broker forgot the producer between its last marker and its last batch.
        pairs.append(("coordinator epoch", entry.coordinator_epoch, logged.coordinator_epoch))
    return pairs


def _partial_pairs(entry: ProducerStateEntry, logged: ProducerStateEntry) -> list[Pair]:
    """
    The values that must be equal although some batches and markers of the producer are missing.
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
            invariants.SNAPSHOT_STRAY,
            f"offset {snapshot.offset}",
            "the base offset of a segment, or where the log was opened or closed",
        )
