"""
Each rule finds its anomaly in a history made by hand, and accepts the same history without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.interop.histories.checker import RULES, check
from tests.interop.histories.history import (
    Acknowledged,
    Acknowledgement,
    Acquired,
    Commit,
    Committed,
    Entry,
    Event,
    Fault,
    FinalLog,
    History,
    Init,
    Left,
    Marker,
    Outcome,
    Owned,
    Partition,
    Read,
    RecordsDeleted,
    Send,
    TopicDeleted,
    Transaction,
    input_of,
    output_of,
)

A, B = Partition("a", 0), Partition("b", 0)
OK = Outcome.OK
P, ZOMBIE = (7, 1), (7, 0)


def send(at: float, *values: str, offset: int | None = None, **given: Any) -> Send:
    fields: dict[str, Any] = {"actor": "p", "outcome": OK, "producer": P, "partition": A}
    return Send(began=at, ended=at + 0.5, values=values, base_offset=offset, **fields | given)


def read(at: float, position: int, *values: tuple[int, str], **given: Any) -> Read:
    next_position = values[-1][0] + 1 if values else position
    fields: dict[str, Any] = {
        "actor": "r",
        "partition": A,
        "is_committed": False,
        "session": 1,
    } | given
    fields = {"next_position": next_position} | fields
    return Read(began=at, ended=at + 0.5, position=position, values=values, **fields)


def log(
    *contents: str | Marker | None, transactional: Sequence[str] = (), start: int = 0
) -> FinalLog:
    """
    A log with one record at each offset from *start* on; None is an offset without one. What no
    abort marker follows is committed.
    """
    entries = [
        Entry(offset, content, P, isinstance(content, Marker) or content in transactional)
        for offset, content in enumerate(contents, start)
        if content is not None
    ]
    aborted: set[str] = set()
    is_open: set[str] = set()
    for entry in entries:
        if isinstance(entry.content, Marker):
            aborted |= is_open if entry.content is Marker.ABORT else set()
            is_open = set()
        elif entry.is_transactional:
            is_open.add(entry.content)
    committed = [
        (e.offset, e.content)
        for e in entries
        if isinstance(e.content, str) and e.content not in aborted
    ]
    return FinalLog(entries, committed, start, start + len(contents))


def transaction(at: float, **given: Any) -> Transaction:
    fields: dict[str, Any] = {
        "number": 1,
        "transactional_id": "tx",
        "producer": P,
        "is_commit": True,
    }
    fields |= {"actor": "p", "outcome": OK} | given
    return Transaction(began=at, ended=at + 0.5, **fields)


def commit(at: float, offset: int, **given: Any) -> Commit:
    fields: dict[str, Any] = {"actor": "m", "group": "g", "partition": A, "outcome": OK} | given
    return Commit(began=at, ended=at + 0.5, offset=offset, **fields)


def committed(at: float, offset: int, **given: Any) -> Committed:
    fields: dict[str, Any] = {"actor": "end", "group": "g", "partition": A} | given
    return Committed(began=at, ended=at + 0.5, offset=offset, **fields)


def owned(at: float, member: str, epoch: int, *partitions: Partition, **given: Any) -> Owned:
    fields: dict[str, Any] = {"actor": member, "group": "g", "stint": hash(member)} | given
    return Owned(
        began=at,
        ended=at + 0.5,
        member=member,
        epoch=epoch,
        partitions=frozenset(partitions),
        **fields,
    )


def acquired(at: float, member: str, *values: tuple[int, str], **given: Any) -> Acquired:
    fields: dict[str, Any] = {"actor": member, "group": "s", "partition": A, "lock_s": 30.0} | given
    fields = {"session": hash(member)} | fields
    return Acquired(began=at, ended=at + 0.5, member=member, values=values, **fields)


def acknowledged(at: float, member: str, *offsets: int, **given: Any) -> Acknowledged:
    fields: dict[str, Any] = {"actor": member, "group": "s", "partition": A, "outcome": OK}
    fields = {"kind": Acknowledgement.ACCEPT} | fields | given
    return Acknowledged(began=at, ended=at + 0.5, member=member, offsets=offsets, **fields)


def broken(*events: Event, a: FinalLog | None = None, **given: Any) -> set[str]:
    """
    The rules that a history breaks.
    """
    logs = {A: a if a is not None else FinalLog()} | given.pop("logs", {})
    history = History(list(events), logs, **given)
    return {violation.rule for violation in check(history)}


X = send(1, "x", offset=0)
Y = send(2, "y", offset=1)
TX = send(1, "x", offset=0, transaction=1)
TY = send(2, "y", offset=1, transaction=1)
COMMITTED = log("x", "y", Marker.COMMIT, transactional=("x", "y"))
ABORTED = log("x", "y", Marker.ABORT, transactional=("x", "y"))
INPUT = send(1, "x", offset=0)
OUTPUT = output_of(input_of(A, 0, "x"), "t", 1)
OUT = send(2, OUTPUT, offset=0, partition=B, transaction=1)
OUTPUTS = {B: log(OUTPUT, Marker.COMMIT, transactional=(OUTPUT,))}
MOVED = commit(3, 1, transaction=1)
GROUP_READ = read(1.6, 0, (0, "x"), group="g", is_committed=True)

GOOD: dict[str, tuple[Sequence[Event], dict[str, Any]]] = {
    "records of a plain log": ([X, Y, read(3, 0, (0, "x"), (1, "y"))], {"a": log("x", "y")}),
    "a committed transaction": ([TX, TY, transaction(3)], {"a": COMMITTED}),
    "an aborted transaction": ([TX, TY, transaction(3, is_commit=False)], {"a": ABORTED}),
    "a commit without an answer that took effect": (
        [TX, TY, transaction(3, outcome=Outcome.UNKNOWN)],
        {"a": COMMITTED},
    ),
    "a commit without an answer that did not": (
        [TX, TY, transaction(3, outcome=Outcome.UNKNOWN)],
        {"a": ABORTED},
    ),
    "a transformed record": (
        [INPUT, GROUP_READ, OUT, transaction(3), MOVED, committed(4, 1)],
        {"a": log("x"), "logs": OUTPUTS},
    ),
    "deleted records": (
        [X, Y, RecordsDeleted(actor="x", began=3, ended=4, partition=A, before=1, outcome=OK)],
        {"a": log("y", start=1)},
    ),
    "a batch without an answer that is missing": (
        [send(1, "x", outcome=Outcome.UNKNOWN)],
        {"a": log()},
    ),
    "a commit that overlaps the read": ([commit(1, 1), commit(2, 2), committed(2.1, 1)], {}),
    "a partition that changes its owner": (
        [owned(1, "m", 1, A), owned(2, "m", 2), owned(3, "n", 2, A), owned(4, "m", 2)],
        {},
    ),
    "a released record": (
        [
            X,
            acquired(2, "m", (0, "x")),
            acknowledged(3, "m", 0, kind=Acknowledgement.RELEASE),
            acquired(4, "n", (0, "x")),
        ],
        {"a": log("x"), "drained": {"s"}},
    ),
    "a record of a member that left": (
        [
            X,
            acquired(2, "m", (0, "x")),
            Left(actor="m", began=3, group="s", member="m"),
            acquired(4, "n", (0, "x")),
        ],
        {"a": log("x")},
    ),
    "a record that was held while the disk failed, before the kill": (
        [
            X,
            acquired(2, "m", (0, "x")),
            Fault(actor="", began=1.9, ended=3.2, kind="failed sync", ends_sessions=True),
            acquired(4, "n", (0, "x")),
        ],
        {"a": log("x")},
    ),
    "deleted records that a kill brings back": (
        [
            read(1, 5, log_start_offset=5),
            Fault(actor="", began=2, ended=2.5, kind="kill", ends_sessions=True),
            replace(read(1.7, 5, log_start_offset=0), ended=2.7),
            read(3, 5, log_start_offset=0),
        ],
        {},
    ),
    "a record that was held before a kill": (
        [
            X,
            acquired(2, "m", (0, "x")),
            Fault(actor="", began=3, ended=3.2, kind="kill", ends_sessions=True),
            acquired(4, "n", (0, "x")),
        ],
        {"a": log("x")},
    ),
}

BAD: dict[str, tuple[str, Sequence[Event], dict[str, Any]]] = {
    "a problem": ("nothing_went_wrong", [], {"problems": ["no start"]}),
    "a lost record": ("acknowledged_records_are_kept", [X, Y], {"a": log("x")}),
    "a lost record in the middle": (
        "acknowledged_records_are_kept",
        [X, Y],
        {"a": log(None, "y")},
    ),
    "a record at another offset": ("acknowledged_records_are_kept", [X], {"a": log(None, "x")}),
    "a topic that disappears": (
        "acknowledged_records_are_kept",
        [send(1, "x", offset=0, partition=B)],
        {},
    ),
    "records that disappear from the start": (
        "only_deletions_move_the_log_start",
        [X, Y],
        {"a": log("y", start=1)},
    ),
    "deleted records that come back": (
        "deleted_records_stay_deleted",
        [X, Y, RecordsDeleted(actor="x", began=3, ended=4, partition=A, before=1, outcome=OK)],
        {"a": log("x", "y")},
    ),
    "a topic that is not empty when it is created again": (
        "deleted_topics_lose_their_records",
        [X, TopicDeleted(actor="x", began=3, ended=4, topic="a", outcome=OK)],
        {"a": log("x")},
    ),
    "a duplicate of an idempotent producer": (
        "records_are_not_duplicated",
        [X],
        {"a": log("x", "x")},
    ),
    "a duplicate of a batch that was sent once": (
        "records_are_not_duplicated",
        [replace(X, producer=None)],
        {"a": log("x", "x")},
    ),
    "records out of order": (
        "records_keep_the_order_of_their_producer",
        [send(1, "x", offset=1), send(2, "y", offset=0)],
        {"a": log("y", "x")},
    ),
    "a part of a batch": (
        "batches_are_whole",
        [X, send(2, "y", "z", outcome=Outcome.UNKNOWN)],
        {"a": log("x", "y")},
    ),
    "a record of nobody": ("records_were_sent", [X], {"a": log("x", "other")}),
    "a record that was refused": (
        "records_were_sent",
        [send(1, "x", outcome=Outcome.FAILED)],
        {"a": log("x")},
    ),
    "two records at one offset": (
        "offsets_identify_records",
        [X, read(2, 0, (0, "y"))],
        {"a": log("x")},
    ),
    "a record that was read and is gone": (
        "what_was_read_stays",
        [send(1, "x", outcome=Outcome.UNKNOWN), read(2, 0, (0, "x"))],
        {"a": log()},
    ),
    "a record that is read twice": (
        "positions_move_forward",
        [X, read(2, 0, (0, "x")), read(3, 0, (0, "x"))],
        {"a": log("x")},
    ),
    "a poll that skips": (
        "polls_skip_nothing",
        [X, Y, read(3, 0, (1, "y"))],
        {"a": log("x", "y")},
    ),
    "a poll that moves past a record": (
        "polls_skip_nothing",
        [X, read(3, 0, next_position=1)],
        {"a": log("x")},
    ),
    "a poll that misses what was acknowledged before": (
        "acknowledged_records_can_be_read_at_once",
        [X, read(2, 0)],
        {"a": log("x")},
    ),
    "a high watermark that falls": (
        "watermarks_move_forward",
        [read(1, 0, high_watermark=5), read(2, 0, high_watermark=4)],
        {},
    ),
    "a last stable offset that falls": (
        "watermarks_move_forward",
        [read(1, 0, last_stable_offset=5), read(2, 0, last_stable_offset=4)],
        {},
    ),
    "a log start offset that falls": (
        "watermarks_move_forward",
        [read(1, 0, log_start_offset=5), read(2, 0, log_start_offset=4)],
        {},
    ),
    "an aborted read": (
        "committed_readers_see_no_open_transaction",
        [TX, TY, read(2.6, 0, (0, "x"), is_committed=True), transaction(4, is_commit=False)],
        {"a": ABORTED},
    ),
    "a read before the commit": (
        "committed_readers_see_no_open_transaction",
        [TX, TY, read(2.6, 0, (0, "x"), is_committed=True), transaction(4)],
        {"a": COMMITTED},
    ),
    "a commit that is lost": ("transactions_are_atomic", [TX, TY, transaction(3)], {"a": ABORTED}),
    "an abort that commits": (
        "transactions_are_atomic",
        [TX, TY, transaction(3, is_commit=False)],
        {"a": COMMITTED},
    ),
    "half a transaction": (
        "transactions_are_atomic",
        [TX, TY, transaction(3, outcome=Outcome.UNKNOWN)],
        {"a": replace(COMMITTED, committed=[(0, "x")])},
    ),
    "a plain record that is not committed": (
        "records_without_transaction_are_committed",
        [X],
        {"a": replace(log("x"), committed=[])},
    ),
    "committed records out of order": (
        "records_without_transaction_are_committed",
        [X, Y],
        {"a": replace(log("x", "y"), committed=[(1, "y"), (0, "x")])},
    ),
    "a record of a zombie": (
        "fenced_producers_are_refused",
        [
            Init(actor="q", began=0, ended=0.5, transactional_id="tx", producer=P),
            replace(TX, producer=ZOMBIE),
            transaction(3, is_commit=False, outcome=Outcome.FAILED),
        ],
        {"a": log("x", Marker.ABORT, transactional=("x",))},
    ),
    "a commit of a zombie": (
        "fenced_producers_are_refused",
        [
            Init(actor="q", began=2.6, ended=2.8, transactional_id="tx", producer=P),
            replace(TX, producer=ZOMBIE),
            transaction(3, producer=ZOMBIE),
        ],
        {"a": log("x", Marker.COMMIT, transactional=("x",))},
    ),
    "a transaction without a marker": (
        "markers_end_transactions",
        [TX, transaction(3)],
        {"a": log("x", transactional=("x",))},
    ),
    "the wrong marker": (
        "markers_end_transactions",
        [TX, TY, transaction(3)],
        {"a": replace(ABORTED, committed=COMMITTED.committed)},
    ),
    "two outputs of an input": (
        "outputs_match_inputs",
        [INPUT, OUT, transaction(3), replace(OUT, values=(OUTPUT + "2",), base_offset=1)],
        {
            "a": log("x"),
            "logs": {
                B: log(OUTPUT, OUTPUT + "2", Marker.COMMIT, transactional=(OUTPUT, OUTPUT + "2"))
            },
        },
    ),
    "an input without an output": (
        "outputs_match_inputs",
        [INPUT, send(1.5, "z", offset=1), GROUP_READ, OUT, transaction(3), MOVED, committed(4, 2)],
        {"a": log("x", "z"), "logs": OUTPUTS},
    ),
    "a lost commit": ("commits_are_kept", [commit(1, 1), committed(2, -1)], {}),
    "an older commit": ("commits_are_kept", [commit(1, 1), commit(2, 2), committed(3, 1)], {}),
    "a commit of nobody": ("commits_are_kept", [commit(1, 1), committed(2, 9)], {}),
    "a commit of an aborted transaction": (
        "commits_are_kept",
        [transaction(1, is_commit=False), commit(1, 1, transaction=1), committed(2, 1)],
        {},
    ),
    "a group that skips a record": (
        "groups_skip_nothing",
        [X, Y, read(3, 1, (1, "y"), group="g"), commit(4, 2), committed(5, 2)],
        {"a": log("x", "y")},
    ),
    "a commit of an old generation": (
        "old_members_cannot_commit",
        [owned(1, "m", 2, A, is_classic=True), commit(2, 1, epoch=1)],
        {},
    ),
    "two owners in one generation": (
        "assignments_are_disjoint",
        [owned(1, "m", 2, A, is_classic=True), owned(1, "n", 2, A, is_classic=True)],
        {},
    ),
    "two owners at one time": (
        "assignments_are_disjoint",
        [owned(1, "m", 1, A), owned(2, "n", 2, A), owned(3, "m", 2, A)],
        {},
    ),
    "an epoch that falls": (
        "epochs_of_groups_rise",
        [owned(1, "m", 2, A), owned(2, "m", 1, A)],
        {},
    ),
    "a record that is delivered after it was accepted": (
        "finished_records_are_not_delivered_again",
        [X, acquired(2, "m", (0, "x")), acknowledged(3, "m", 0), acquired(4, "n", (0, "x"))],
        {"a": log("x")},
    ),
    "a record with two holders": (
        "records_have_one_holder",
        [X, acquired(2, "m", (0, "x")), acquired(3, "n", (0, "x"))],
        {"a": log("x")},
    ),
    "a record that is never delivered": (
        "share_groups_deliver_everything",
        [X, Y, acquired(3, "m", (1, "y"))],
        {"a": log("x", "y"), "drained": {"s"}},
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_history_without_anomaly_breaks_no_rule(name: str) -> None:
    events, given = GOOD[name]
    assert set() == broken(*events, **given)


@pytest.mark.parametrize("name", BAD)
def test_anomaly_breaks_its_rule(name: str) -> None:
    rule, events, given = BAD[name]
    assert rule in broken(*events, **given)


def test_every_rule_has_an_anomaly() -> None:
    assert {rule.__name__ for rule in RULES} == {rule for rule, _, _ in BAD.values()}


def test_history_without_its_end_breaks_no_rule_but_that_of_problems() -> None:
    assert set() == broken(X, a=log(), is_complete=False)
    assert {"nothing_went_wrong"} == broken(X, a=log(), is_complete=False, problems=["late"])
