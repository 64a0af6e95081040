"""
The rules that a history has to keep.

A rule looks only at what clients asked and got, and never at the broker. It finds a violation only
if no order of the operations explains the responses: an operation with an unknown outcome may or
may not have taken effect, and operations that overlap may have taken effect in either order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from tests.interop.histories.history import (
    Acknowledged,
    Acknowledgement,
    Acquired,
    Commit,
    Committed,
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
    by_time,
    input_of,
    inputs_of,
)


class Violation(NamedTuple):
    rule: str
    reason: str


Rule = Callable[["Facts"], Iterator[str]]


class Facts:
    """
    A history, and what several rules look up in it.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.sends = history.of(Send)
        self.reads = history.of(Read)
        self.commits = history.of(Commit)
        self.faults = history.of(Fault)
        self.transactions = {txn.number: txn for txn in history.of(Transaction)}
        self.deletions: dict[str, list[TopicDeleted]] = defaultdict(list)
        for deletion in history.of(TopicDeleted):
            if deletion.outcome is not Outcome.FAILED:
                self.deletions[deletion.topic].append(deletion)
        self.logs = history.logs
        self.places: dict[Partition, dict[str, list[int]]] = {}
        for partition, log in history.logs.items():
            places = self.places[partition] = defaultdict(list)
            for entry in log.entries:
                if isinstance(entry.content, str):
                    places[entry.content].append(entry.offset)
        self.sent: dict[tuple[Partition, str], Send] = {
            (send.partition, value): send for send in self.sends for value in send.values
        }

    def is_lasting(self, partition: Partition) -> bool:
        """
        Return whether the topic was never deleted, so that its offsets identify its records.
        """
        return partition.topic not in self.deletions

    def is_gone(self, send: Send) -> bool:
        """
        Return whether a deletion of the topic may have removed the records.
        """
        return any(not d.precedes(send) for d in self.deletions.get(send.partition.topic, ()))

    def deleted_before(self, partition: Partition) -> int:
        """
        The highest offset before which an administrator may have deleted the records.
        """
        return max(
            (
                deletion.before
                for deletion in self.history.of(RecordsDeleted)
                if deletion.partition == partition and deletion.outcome is not Outcome.FAILED
            ),
            default=0,
        )

    def was_killed_since(self, time: float) -> bool:
        return any(fault.ends_sessions and fault.ended > time for fault in self.faults)

    def transaction_of(self, send: Send) -> Transaction | None:
        return None if send.transaction is None else self.transactions[send.transaction]


# The log


def acknowledged_records_are_kept(facts: Facts) -> Iterator[str]:
    for send in facts.sends:
        if send.outcome is not Outcome.OK or send.acks == 0 or facts.is_gone(send):
            continue
        log = facts.logs.get(send.partition)
        if log is None:
            if send.partition.topic not in facts.history.deleted_topics:
                yield f"{send.partition} is gone, with {send.values}"
            continue
        for value, offset in _acknowledged(send):
            found = facts.places[send.partition].get(value, [])
            if offset is None:
                if not found and not facts.deleted_before(send.partition):
                    yield f"{value} of {send.actor} is not in {send.partition}"
            elif offset >= log.start and offset not in found:
                yield f"{value} of {send.actor} is not in {send.partition} at {offset}: {found}"


def _acknowledged(send: Send) -> Iterator[tuple[str, int | None]]:
    for delta, value in enumerate(send.values):
        yield value, None if send.base_offset is None else send.base_offset + delta


def only_deletions_move_the_log_start(facts: Facts) -> Iterator[str]:
    for partition, log in facts.logs.items():
        allowed = facts.deleted_before(partition)
        if log.start > allowed:
            yield f"{partition} starts at {log.start}, and was deleted up to {allowed}"


def deleted_records_stay_deleted(facts: Facts) -> Iterator[str]:
    """
    Unless the broker was killed: like Kafka, it notes the log start offset once a minute only.
    """
    for deletion in facts.history.of(RecordsDeleted):
        log = facts.logs.get(deletion.partition)
        if log is None or deletion.outcome is not Outcome.OK:
            continue
        if not facts.is_lasting(deletion.partition) or facts.was_killed_since(deletion.ended):
            continue
        if log.start < deletion.before:
            yield f"{deletion.partition} starts at {log.start}, not at {deletion.before}"


def deleted_topics_lose_their_records(facts: Facts) -> Iterator[str]:
    """
    A topic that is created again under its name begins empty.
    """
    for topic, deletions in facts.deletions.items():
        for deletion in deletions:
            if deletion.outcome is not Outcome.OK:
                continue
            for (partition, value), send in facts.sent.items():
                if partition.topic != topic or not send.precedes(deletion):
                    continue
                if facts.places.get(partition, {}).get(value):
                    yield f"{value} of the deleted {topic} is in the new topic"


def records_are_not_duplicated(facts: Facts) -> Iterator[str]:
    for (partition, value), send in facts.sent.items():
        found = facts.places.get(partition, {}).get(value, [])
        if len(found) > 1 and (send.producer is not None or send.attempts == 1):
            yield f"{value} of {send.actor} is in {partition} {len(found)} times: {found}"


def records_keep_the_order_of_their_producer(facts: Facts) -> Iterator[str]:
    """
    Of producers that are idempotent, or that never have two batches on the way nor send one twice.
    """
    last: dict[tuple[str, Partition], tuple[int, str]] = {}
    for send in facts.sends:
        if send.producer is None and (send.in_flight > 1 or send.attempts > 1 or send.acks == 0):
            continue
        if not facts.is_lasting(send.partition):
            continue
        for value in send.values:
            found = facts.places.get(send.partition, {}).get(value)
            if not found:
                continue
            key = send.actor, send.partition
            if key in last and found[0] < last[key][0]:
                before, other = last[key]
                yield f"{send.partition}: {value} at {found[0]} is before {other} at {before}"
            last[key] = found[0], value


def batches_are_whole(facts: Facts) -> Iterator[str]:
    for send in facts.sends:
        log = facts.logs.get(send.partition)
        if log is None or facts.is_gone(send):
            continue
        places = facts.places[send.partition]
        found = [value for value in send.values if places.get(value)]
        if found and len(found) < len(send.values) and places[found[0]][0] > log.start:
            missing = set(send.values) - set(found)
            yield f"{send.partition} has a part of the batch of {found[0]}: {missing} are missing"


def records_were_sent(facts: Facts) -> Iterator[str]:
    """
    The log contains nothing that nobody sent, or whose only attempts were refused.
    """
    for partition, places in facts.places.items():
        for value in places:
            send = facts.sent.get((partition, value))
            if send is None:
                yield f"{partition} has {value}, which nobody sent there"
            elif send.outcome is Outcome.FAILED:
                yield f"{partition} has {value}, which {send.actor} was refused"


def offsets_identify_records(facts: Facts) -> Iterator[str]:
    """
    Acknowledgements, reads and the log agree about the record at each offset.
    """
    known: dict[tuple[Partition, int], tuple[str, str]] = {}
    for partition, offset, value, who in _sightings(facts):
        if facts.is_lasting(partition):
            other, whose = known.setdefault((partition, offset), (value, who))
            if other != value:
                yield f"{partition} at {offset} is {other} for {whose} and {value} for {who}"


def _sightings(facts: Facts) -> Iterator[tuple[Partition, int, str, str]]:
    """
    Each record that somebody saw at an offset, and who.
    """
    for partition, log in facts.logs.items():
        for entry in log.entries:
            content = entry.content if isinstance(entry.content, str) else entry.content.value
            yield partition, entry.offset, content, "the log"
    for send in facts.sends:
        if send.outcome is Outcome.OK and send.base_offset is not None:
            for offset, value in enumerate(send.values, send.base_offset):
                yield send.partition, offset, value, f"the producer {send.actor}"
    for read in facts.reads:
        for offset, value in read.values:
            yield read.partition, offset, value, f"the reader {read.actor}"
    for acquired in facts.history.of(Acquired):
        for offset, value in acquired.values:
            yield acquired.partition, offset, value, f"the member {acquired.member}"


def what_was_read_stays(facts: Facts) -> Iterator[str]:
    for read in facts.reads:
        log = facts.logs.get(read.partition)
        if log is None or not facts.is_lasting(read.partition):
            continue
        for offset, value in read.values:
            if offset >= log.start and offset not in facts.places[read.partition].get(value, ()):
                yield f"{read.actor} read {value} in {read.partition} at {offset}; it is not there"


# Consumers


def positions_move_forward(facts: Facts) -> Iterator[str]:
    """
    A consumer gets rising offsets from its position on, and none twice until it seeks.
    """
    last: dict[tuple[int, Partition], int] = {}
    for read in facts.reads:
        key = read.session, read.partition
        before = max(last.get(key, -1), read.position - 1)
        for offset, value in read.values:
            if offset <= before:
                yield f"{read.actor} got {value} at {offset} of {read.partition} after {before}"
            before = offset
        last[key] = max(before, read.next_position - 1)


def polls_skip_nothing(facts: Facts) -> Iterator[str]:
    """
    A consumer passes no record that its isolation level shows.
    """
    visible = {
        (partition, is_committed): _visible(log, is_committed=is_committed)
        for partition, log in facts.logs.items()
        for is_committed in (False, True)
    }
    for read in facts.reads:
        key = read.partition, read.is_committed
        if key not in visible or not facts.is_lasting(read.partition):
            continue
        got = {offset for offset, _ in read.values}
        content = visible[key]
        first = bisect_left(content, (read.position, ""))
        for offset, value in content[first:]:
            if offset >= read.next_position:
                break
            if offset not in got:
                yield (
                    f"{read.actor} got nothing for {value} at {offset} of {read.partition},"
                    f" between {read.position} and {read.next_position}"
                )


def _visible(log: FinalLog, *, is_committed: bool) -> list[tuple[int, str]]:
    if is_committed:
        return sorted(log.committed)
    return [(e.offset, e.content) for e in log.entries if isinstance(e.content, str)]


def acknowledged_records_can_be_read_at_once(facts: Facts) -> Iterator[str]:
    """
    A fetch that begins after an acknowledgement finds the record.

    Without ``read_committed``: an open transaction may hide it there.
    """
    known: dict[Partition, list[Send]] = defaultdict(list)
    for send in facts.sends:
        if send.outcome is Outcome.OK and send.base_offset is not None and send.acks != 0:
            known[send.partition].append(send)
    for read in facts.reads:
        if read.values or read.is_committed or not facts.is_lasting(read.partition):
            continue
        if read.next_position > read.position:
            continue
        for send in known[read.partition]:
            assert send.base_offset is not None
            if send.precedes(read) and send.base_offset >= read.position:
                yield (
                    f"{read.actor} found no record from {read.position} on in {read.partition},"
                    f" which has {send.values[0]} at {send.base_offset}"
                )


def watermarks_move_forward(facts: Facts) -> Iterator[str]:
    """
    The log start offset may fall when the broker is killed, see ``deleted_records_stay_deleted``.
    """
    by_partition: dict[Partition, list[Read]] = defaultdict(list)
    for read in by_time(facts.reads):
        if facts.is_lasting(read.partition):
            by_partition[read.partition].append(read)
    for partition, reads in by_partition.items():
        for name, of in _WATERMARKS.items():
            for life in _lives(facts, reads) if name == _LOG_START else (reads,):
                for before, after in _falling(life, of):
                    yield f"the {name} of {partition} is {after} after {before}"


def _lives(facts: Facts, reads: Iterable[Read]) -> Iterable[Sequence[Read]]:
    """
    The reads between two kills, without those that overlap one.
    """
    kills = sorted((f.began, f.ended) for f in facts.faults if f.ends_sessions)
    lives: dict[int, list[Read]] = defaultdict(list)
    for read in reads:
        if not any(began <= read.ended and ended >= read.began for began, ended in kills):
            lives[sum(ended < read.began for _, ended in kills)].append(read)
    return lives.values()


_LOG_START: Final = "log start offset"
_WATERMARKS: Final[Mapping[str, Callable[[Read], int]]] = {
    "high watermark": lambda read: read.high_watermark,
    "last stable offset": lambda read: read.last_stable_offset,
    _LOG_START: lambda read: read.log_start_offset,
}


def _falling(reads: Sequence[Read], of: Callable[[Read], int]) -> Iterator[tuple[int, int]]:
    """
    Values that are lower than that of a read that was over before; *reads* are in order of time.
    """
    ends = [read.ended for read in reads]
    highest = list(accumulate((of(read) for read in reads), max))
    for read in reads:
        count = bisect_left(ends, read.began)
        if count and highest[count - 1] > of(read) >= 0:
            yield highest[count - 1], of(read)


# Transactions


def committed_readers_see_no_open_transaction(facts: Facts) -> Iterator[str]:
    """
    ``read_committed`` shows no aborted record, nor a record before its commit is asked
    for.
    """
    for read in facts.reads:
        if not read.is_committed or not facts.is_lasting(read.partition):
            continue
        for offset, value in read.values:
            send = facts.sent.get((read.partition, value))
            transaction = None if send is None else facts.transaction_of(send)
            if transaction is None:
                continue
            if transaction.must_be_aborted:
                yield f"{read.actor} read {value} at {offset}, which {transaction.actor} aborted"
            elif read.ended < transaction.began:
                yield f"{read.actor} read {value} at {offset} before its commit"


def transactions_are_atomic(facts: Facts) -> Iterator[str]:
    """
    All records of a transaction are committed, or none.
    """
    committed = {
        partition: {value for _, value in log.committed} for partition, log in facts.logs.items()
    }
    for number, records in _acknowledged_in_transactions(facts).items():
        transaction = facts.transactions[number]
        missing = [value for partition, value in records if value not in committed[partition]]
        if transaction.must_be_committed and missing:
            yield f"transaction {number} of {transaction.actor} is committed without {missing}"
        elif not transaction.must_be_aborted and 0 < len(missing) < len(records):
            yield f"transaction {number} of {transaction.actor} is committed in part: no {missing}"
    for (partition, value), send in facts.sent.items():
        of = facts.transaction_of(send)
        if of is not None and of.must_be_aborted and value in committed.get(partition, ()):
            yield f"{value} of the aborted transaction {of.number} is committed"


def _acknowledged_in_transactions(facts: Facts) -> dict[int, list[tuple[Partition, str]]]:
    """
    The records that each transaction must show or hide together.
    """
    found: dict[int, list[tuple[Partition, str]]] = defaultdict(list)
    for send in facts.sends:
        if send.transaction is None or send.outcome is not Outcome.OK or facts.is_gone(send):
            continue
        if send.partition in facts.logs and not facts.deleted_before(send.partition):
            found[send.transaction] += [(send.partition, value) for value in send.values]
    return found


def records_without_transaction_are_committed(facts: Facts) -> Iterator[str]:
    """
    Records outside transactions appear with ``read_committed`` in the order of the log.
    """
    for partition, log in facts.logs.items():
        committed = {value for _, value in log.committed}
        offsets = [offset for offset, _ in log.committed]
        if offsets != sorted(set(offsets)):
            yield f"the committed offsets of {partition} do not rise: {offsets}"
        for entry in log.entries:
            if isinstance(entry.content, Marker) or entry.is_transactional:
                continue
            if entry.content not in committed:
                yield f"{entry.content} at {entry.offset} of {partition} is not committed"


def fenced_producers_are_refused(facts: Facts) -> Iterator[str]:
    """
    After a new instance has its epoch, nothing that an older one asks for takes effect.
    """
    inits: dict[int, list[Init]] = defaultdict(list)
    for init in facts.history.of(Init):
        inits[init.producer[0]].append(init)

    def newer(producer: tuple[int, int], began: float) -> Init | None:
        for init in inits[producer[0]]:
            if init.producer[1] > producer[1] and init.ended < began:
                return init
        return None

    for send in facts.sends:
        if send.producer is None or send.transaction is None or send.outcome is not Outcome.OK:
            continue
        if fence := newer(send.producer, send.began):
            yield f"{send.values[0]} of {send.producer} was taken after {fence.producer}"
    for txn in facts.transactions.values():
        if txn.outcome is Outcome.OK and (fence := newer(txn.producer, txn.began)):
            yield f"transaction {txn.number} of {txn.producer} was ended after {fence.producer}"


def markers_end_transactions(facts: Facts) -> Iterator[str]:
    """
    After everything has settled, a marker follows the records of every transaction, and a commit
    marker those of committed ones.
    """
    for partition, log in facts.logs.items():
        is_open: dict[int, list[str]] = defaultdict(list)
        committed = {value for _, value in log.committed}
        for entry in log.entries:
            if entry.producer is None:
                continue
            if isinstance(entry.content, Marker):
                for value in is_open.pop(entry.producer[0], ()):
                    if (value in committed) != (entry.content is Marker.COMMIT):
                        yield f"{value} of {partition} has the {entry.content.value}"
            elif entry.is_transactional:
                is_open[entry.producer[0]].append(entry.content)
        for values in is_open.values():
            yield f"no marker follows {values} in {partition}"


def outputs_match_inputs(facts: Facts) -> Iterator[str]:
    """
    Exactly once: of each input that a transformer's group has committed there is one output.
    """
    outputs = Counter(
        (partition.topic, source)
        for partition, log in facts.logs.items()
        for _, value in log.committed
        if (source := inputs_of(value)) is not None
    )
    for (topic, source), count in outputs.items():
        if count > 1:
            yield f"{topic} has {count} committed outputs of {source}"
    for group, topic in _transformers(facts).items():
        if topic in facts.deletions:
            continue
        if any(facts.deleted_before(each) for each in facts.logs if each.topic == topic):
            continue
        for partition, offset in _final_commits(facts, group).items():
            log = facts.logs.get(partition, FinalLog())
            deleted = facts.deleted_before(partition)
            for at, value in log.committed:
                if deleted <= at < offset and not outputs[topic, input_of(partition, at, value)]:
                    yield f"{group} committed {offset} of {partition} without an output of {value}"


def _transformers(facts: Facts) -> dict[str, str]:
    """
    The topic of the outputs, by the group that reads the inputs.
    """
    groups = {commit.transaction: commit.group for commit in facts.commits}
    return {
        groups[send.transaction]: send.partition.topic
        for send in facts.sends
        if send.transaction in groups and inputs_of(send.values[0]) is not None
    }


def _final_commits(facts: Facts, group: str) -> dict[Partition, int]:
    found: dict[Partition, tuple[float, int]] = {}
    for seen in facts.history.of(Committed):
        if seen.group == group and seen.ended >= found.get(seen.partition, (0.0, 0))[0]:
            found[seen.partition] = seen.ended, seen.offset
    return {partition: offset for partition, (_, offset) in found.items()}


# Groups


def commits_are_kept(facts: Facts) -> Iterator[str]:
    """
    The committed offset of a partition is a register: a client is given the last commit, or one
    that overlaps.
    """
    commits: dict[tuple[str, Partition], list[Commit]] = defaultdict(list)
    for commit in facts.commits:
        if _may_count(facts, commit):
            commits[commit.group, commit.partition].append(commit)
    for seen in facts.history.of(Committed):
        if not facts.is_lasting(seen.partition):
            continue
        candidates = [
            commit
            for commit in commits[seen.group, seen.partition]
            if commit.offset == seen.offset and commit.began < seen.ended
        ]
        sure = [
            commit
            for commit in commits[seen.group, seen.partition]
            if commit.outcome is Outcome.OK and _is_sure(facts, commit) and commit.precedes(seen)
        ]
        latest = max(sure, key=lambda commit: commit.began, default=None)
        if latest is None:
            if seen.offset == -1 or candidates:
                continue
        elif any(not candidate.precedes(latest) for candidate in candidates):
            continue
        expected = "none" if latest is None else f"{latest.offset} of {latest.actor}"
        yield (
            f"{seen.actor} was given {seen.offset} for {seen.partition} in {seen.group};"
            f" the last commit is {expected}"
        )


def _may_count(facts: Facts, commit: Commit) -> bool:
    if commit.outcome is Outcome.FAILED:
        return False
    return commit.transaction is None or not facts.transactions[commit.transaction].must_be_aborted


def _is_sure(facts: Facts, commit: Commit) -> bool:
    return commit.transaction is None or facts.transactions[commit.transaction].must_be_committed


def groups_skip_nothing(facts: Facts) -> Iterator[str]:
    """
    At least once: a group has read every record before its committed offset.

    Deleted records do not count. A kill may bring them back, after the group has passed them.
    """
    got: dict[tuple[str, Partition], set[int]] = defaultdict(set)
    isolation: dict[str, bool] = {}
    for read in facts.reads:
        if read.group is not None:
            got[read.group, read.partition].update(offset for offset, _ in read.values)
            isolation[read.group] = isolation.get(read.group, False) or read.is_committed
    for group, is_committed in isolation.items():
        if any(commit.is_reset for commit in facts.commits if commit.group == group):
            continue
        for partition, end in _final_commits(facts, group).items():
            if partition not in facts.logs or not facts.is_lasting(partition):
                continue
            visible = _visible(facts.logs[partition], is_committed=is_committed)
            for offset, value in visible[
                bisect_left(visible, (facts.deleted_before(partition),)) :
            ]:
                if offset < end and offset not in got[group, partition]:
                    yield f"{group} committed {end} of {partition} and never read {value}"


def old_members_cannot_commit(facts: Facts) -> Iterator[str]:
    """
    A commit of an older generation is refused once a newer one is known to have begun.
    """
    began: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for owned in facts.history.of(Owned):
        if owned.is_classic:
            began[owned.group].append((owned.ended, owned.epoch))
    for commit in facts.commits:
        if commit.outcome is not Outcome.OK or commit.epoch < 0 or commit.transaction is not None:
            continue
        newest = max((e for t, e in began[commit.group] if t < commit.began), default=-1)
        if newest > commit.epoch:
            yield f"{commit.actor} committed with generation {commit.epoch} after {newest} began"


def assignments_are_disjoint(facts: Facts) -> Iterator[str]:
    """
    No partition has two owners.

    In a classic group two members of one generation share no partition. In a later one, nobody is
    given a partition between two responses that confirm it to another member without interruption.
    """
    owned = facts.history.of(Owned)
    yield from _two_in_one_generation([each for each in owned if each.is_classic])
    yield from _two_at_one_time([each for each in owned if not each.is_classic])


def _two_in_one_generation(owned: Iterable[Owned]) -> Iterator[str]:
    owners: dict[tuple[str, int, Partition], str] = {}
    for each in owned:
        for partition in each.partitions:
            other = owners.setdefault((each.group, each.epoch, partition), each.member)
            if other != each.member:
                yield f"{partition} has two owners in generation {each.epoch} of {each.group}"


def _two_at_one_time(owned: Iterable[Owned]) -> Iterator[str]:
    stints: dict[tuple[str, int], list[Owned]] = defaultdict(list)
    for each in owned:
        stints[each.group, each.stint].append(each)
    spans: dict[tuple[str, Partition], list[tuple[float, float, str]]] = defaultdict(list)
    for (group, _), confirmed in stints.items():
        for first, second in pairwise(confirmed):
            for partition in first.partitions & second.partitions:
                spans[group, partition].append((first.ended, second.began, first.member))
    for each in owned:
        for partition in each.partitions:
            for start, end, member in spans[each.group, partition]:
                if member != each.member and start < each.began and each.ended < end:
                    yield f"{each.member} and {member} of {each.group} both own {partition}"


def epochs_of_groups_rise(facts: Facts) -> Iterator[str]:
    """
    The epoch of a member, or the generation of a classic group, never falls.
    """
    last: dict[tuple[str, str], Owned] = {}
    for owned in by_time(facts.history.of(Owned)):
        key = (owned.group, "") if owned.is_classic else (owned.group, str(owned.stint))
        before = last.get(key)
        if before is not None and before.precedes(owned) and owned.epoch < before.epoch:
            yield f"{owned.group} is at epoch {owned.epoch} after {before.epoch}"
        if before is None or owned.epoch > before.epoch:
            last[key] = owned


# Share groups


def finished_records_are_not_delivered_again(facts: Facts) -> Iterator[str]:
    """
    Records that a member accepted or rejected are done, if it was told that this counts.
    """
    done: dict[tuple[str, Partition, int], Acknowledged] = {}
    for acknowledged in facts.history.of(Acknowledged):
        if acknowledged.outcome is Outcome.OK and acknowledged.kind is not Acknowledgement.RELEASE:
            for offset in acknowledged.offsets:
                done[acknowledged.group, acknowledged.partition, offset] = acknowledged
    for acquired in facts.history.of(Acquired):
        for offset, value in acquired.values:
            end = done.get((acquired.group, acquired.partition, offset))
            if end is not None and end.precedes(acquired):
                yield f"{acquired.member} got {value} after the {end.kind.name} of {end.member}"


def records_have_one_holder(facts: Facts) -> Iterator[str]:
    """
    A record that a member has acquired goes to no other member until its lock ends.
    """
    acquired = by_time(facts.history.of(Acquired))
    faults = [fault for fault in facts.history.of(Fault) if fault.ends_sessions or fault.moves_time]
    left = facts.history.of(Left)
    settled: dict[tuple[str, str, Partition, int], list[float]] = defaultdict(list)
    for acknowledged in facts.history.of(Acknowledged):
        if acknowledged.outcome is Outcome.FAILED:
            continue
        for offset in acknowledged.offsets:
            key = acknowledged.group, acknowledged.member, acknowledged.partition, offset
            settled[key].append(acknowledged.began)
    holders: dict[tuple[str, Partition, int], Acquired] = {}
    for each in acquired:
        for offset, value in each.values:
            holder = holders.get((each.group, each.partition, offset))
            holders[each.group, each.partition, offset] = each
            if holder is None or holder.session == each.session or not holder.precedes(each):
                continue
            # The lock begins when the broker hands out the record: after the request at least.
            if each.ended > holder.began + holder.lock_s:
                continue
            ends = settled[holder.group, holder.member, holder.partition, offset]
            ends = ends + [e.began for e in left if e.member == holder.member]
            if any(f.began <= each.ended and f.ended >= holder.began for f in faults):
                continue
            if not any(holder.began <= end <= each.ended for end in ends):
                yield f"{each.member} got {value}, which {holder.member} held"


def share_groups_deliver_everything(facts: Facts) -> Iterator[str]:
    """
    At least once: a drained group has delivered every record that was not deleted.
    """
    delivered: dict[str, set[tuple[Partition, int]]] = defaultdict(set)
    for acquired in facts.history.of(Acquired):
        delivered[acquired.group].update((acquired.partition, o) for o, _ in acquired.values)
    for group in facts.history.drained:
        topics = {partition.topic for partition, _ in delivered[group]}
        for partition, log in facts.logs.items():
            if partition.topic not in topics or not facts.is_lasting(partition):
                continue
            deleted = facts.deleted_before(partition)
            for offset, value in _visible(log, is_committed=False):
                if offset >= deleted and (partition, offset) not in delivered[group]:
                    yield f"{group} never delivered {value} at {offset} of {partition}"


def nothing_went_wrong(facts: Facts) -> Iterator[str]:
    yield from facts.history.problems


RULES: Final[Sequence[Rule]] = (
    nothing_went_wrong,
    acknowledged_records_are_kept,
    only_deletions_move_the_log_start,
    deleted_records_stay_deleted,
    deleted_topics_lose_their_records,
    records_are_not_duplicated,
    records_keep_the_order_of_their_producer,
    batches_are_whole,
    records_were_sent,
    offsets_identify_records,
    what_was_read_stays,
    positions_move_forward,
    polls_skip_nothing,
    acknowledged_records_can_be_read_at_once,
    watermarks_move_forward,
    committed_readers_see_no_open_transaction,
    transactions_are_atomic,
    records_without_transaction_are_committed,
    fenced_producers_are_refused,
    markers_end_transactions,
    outputs_match_inputs,
    commits_are_kept,
    groups_skip_nothing,
    old_members_cannot_commit,
    assignments_are_disjoint,
    epochs_of_groups_rise,
    finished_records_are_not_delivered_again,
    records_have_one_holder,
    share_groups_deliver_everything,
)


def check(history: History) -> list[Violation]:
    """
    All violations of all rules, none twice.
    """
    facts = Facts(history)
    rules = RULES if history.is_complete else (nothing_went_wrong,)
    return [
        Violation(rule.__name__, reason) for rule in rules for reason in dict.fromkeys(rule(facts))
    ]
