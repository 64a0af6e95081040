"""
The leader of a partition after a broker has started or stopped.

The rules are those of Kafka's ``PartitionChangeBuilder``. A replica that leaves while the in-sync
replicas (ISR) are below ``min.insync.replicas`` becomes an eligible leader replica (ELR, KIP-966):
it has every acknowledged record. A broker that was killed may have lost the records in its page
cache, so that it is no eligible leader any more; it becomes leader as the *last known* one, with
its recovery state set. On one node a clean stop and start writes ::

    isr [] leader -1 elr [1] last known [1]    then    isr [1] leader 1 elr [] last known []

and a start after a kill ::

    isr [] leader -1 last known [1]    then    isr [1] leader 1 recovering last known []

In both cases the leader epoch grows by two.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from barnabas.coordination.cluster.assignments import ReplicaAssignment
from barnabas.coordination.cluster.partition_registration import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    LeaderRecoveryState,
    PartitionRegistration,
)
from barnabas.protocol.internal_topics.metadata_records import PartitionChangeRecord
from barnabas.protocol.structs import struct


@struct(kw_only=True)
class ElectionRules:
    """
    The rules of an election.
    """

    is_acceptable: Callable[[int], bool]  # whether a broker is running and may lead
    min_isr: int = 1
    elr_enabled: bool = True
    unclean: bool = False  # whether a replica that is behind may lead
    preferred: bool = False  # whether the first replica is preferred to the current leader


@struct(frozen=False)
class _Outcome:
    isr: list[int]
    elr: list[int]
    leader: int = NO_LEADER
    unclean: bool = False
    last_known: list[int] | None = None


def build_change(
    partition: PartitionRegistration,
    topic_id: UUID,
    partition_id: int,
    rules: ElectionRules,
    *,
    removed: int | None = None,
    killed: int | None = None,
    assignment: ReplicaAssignment | None = None,
) -> PartitionChangeRecord | None:
    """
    The record that adapts *partition* to the running brokers; None if it stays as it is.

    Args:
        removed: a broker that leaves the ISR after a clean stop.
        killed: a broker that leaves without a clean stop.
        assignment: the new replicas of the partition, if they change.
    """
    target = (assignment or ReplicaAssignment.of(partition)).completed()
    outcome = _outcome_without(partition, rules, target, removed, killed)
    _elect(partition, rules, target, outcome)
    changes_leader = outcome.leader != partition.leader
    _remember_last_leader(partition, rules, outcome, changes_leader)
    return _record(partition, topic_id, partition_id, rules=rules, target=target, outcome=outcome)


def _outcome_without(
    partition: PartitionRegistration,
    rules: ElectionRules,
    target: ReplicaAssignment,
    removed: int | None,
    killed: int | None,
) -> _Outcome:
    isr = [replica for replica in target.isr if replica not in (removed, killed)]
    if not rules.elr_enabled or len(isr) >= rules.min_isr:
        return _Outcome(isr=isr, elr=[])
    candidates = [*partition.eligible_leader_replicas, *partition.isr]
    return _Outcome(isr=isr, elr=sorted({r for r in candidates if r not in isr and r != killed}))


def _elect(
    partition: PartitionRegistration,
    rules: ElectionRules,
    target: ReplicaAssignment,
    outcome: _Outcome,
) -> None:
    def may_lead(replica: int) -> bool:
        eligible = outcome.isr or outcome.elr
        return replica in eligible and rules.is_acceptable(replica)

    candidates = [partition.leader, *target.replicas]
    if rules.preferred:
        candidates.insert(0, target.replicas[0])
    clean = [replica for replica in candidates if may_lead(replica)]
    if clean:
        outcome.leader = clean[0]
        if clean[0] in outcome.elr:
            outcome.isr = [clean[0]]
            outcome.elr.remove(clean[0])
        return
    last_known = partition.last_known_elr
    candidates = []
    if rules.elr_enabled and not outcome.isr and not outcome.elr and len(last_known) == 1:
        candidates += last_known
    if rules.unclean:
        candidates += target.replicas
    leader = next(filter(rules.is_acceptable, candidates), NO_LEADER)
    if leader != NO_LEADER:
        outcome.leader, outcome.unclean = leader, True
        outcome.isr, outcome.elr = [leader], []


def _remember_last_leader(
    partition: PartitionRegistration, rules: ElectionRules, outcome: _Outcome, changed: bool
) -> None:
    if not rules.elr_enabled or not changed:
        return
    if outcome.leader == NO_LEADER and not partition.last_known_elr:
        outcome.last_known = [partition.leader]
    elif outcome.leader != NO_LEADER and partition.last_known_elr:
        outcome.last_known = []


def _record(
    partition: PartitionRegistration,
    topic_id: UUID,
    partition_id: int,
    *,
    rules: ElectionRules,
    target: ReplicaAssignment,
    outcome: _Outcome,
) -> PartitionChangeRecord | None:
    isr = None
    if outcome.isr != list(partition.isr) and (outcome.isr or rules.elr_enabled):
        # Without eligible leader replicas the last of the ISR stays in it, to be found again.
        isr = outcome.isr
    recovery = NO_RECOVERY_CHANGE
    if outcome.unclean and partition.leader_recovery_state is not LeaderRecoveryState.RECOVERING:
        recovery = LeaderRecoveryState.RECOVERING
    leader = outcome.leader if outcome.leader != partition.leader else NO_LEADER_CHANGE
    elr = outcome.elr if outcome.elr != list(partition.eligible_leader_replicas) else None
    reassigned = target.changes(partition)
    if leader == NO_LEADER_CHANGE and not set(partition.replicas) <= set(target.replicas):
        # A new epoch of the same leader fences the removed replicas.
        leader = partition.leader
    unchanged = isr is None and elr is None and outcome.last_known is None
    if unchanged and not reassigned and leader == NO_LEADER_CHANGE:
        return None
    return PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        isr=isr,
        leader=leader,
        leader_recovery_state=recovery,
        eligible_leader_replicas=elr,
        last_known_elr=outcome.last_known,
        **reassigned,
    )
