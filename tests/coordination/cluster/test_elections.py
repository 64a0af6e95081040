from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.coordination.cluster.elections import ElectionRules, build_change
from barnabas.coordination.cluster.partition_registration import (
    NO_LEADER,
    LeaderRecoveryState,
    PartitionRegistration,
)
from barnabas.protocol.internal_topics.metadata_records import PartitionChangeRecord

TOPIC = UUID(int=77)
DIRECTORY = UUID(int=1000)
ALIVE, DEAD = {1}, set[int]()


def partition(**changes: Any) -> PartitionRegistration:
    """
    A healthy partition on broker 1.
    """
    facts: dict[str, Any] = {
        "replicas": (1,),
        "directories": (DIRECTORY,),
        "isr": (1,),
        "leader": 1,
    }
    return PartitionRegistration(**(facts | changes))


def change(
    before: PartitionRegistration, alive: set[int], *, elr: bool = True, **event: Any
) -> PartitionChangeRecord | None:
    """
    What is recorded when *event* happens to the partition while the brokers *alive* are up.
    """
    facts = {name: event.pop(name) for name in ("min_isr", "unclean") if name in event}
    rules = ElectionRules(is_acceptable=alive.__contains__, elr_enabled=elr, **facts)
    return build_change(before, TOPIC, 0, rules, **event)


def record(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **fields)


STOPPED = partition(
    isr=(), leader=NO_LEADER, eligible_leader_replicas=(1,), last_known_elr=(1,), leader_epoch=1
)
KILLED = partition(isr=(), leader=NO_LEADER, last_known_elr=(1,), leader_epoch=1)


def test_a_clean_stop_leaves_an_eligible_leader() -> None:
    left = change(partition(), DEAD, removed=1)

    assert left == record(
        isr=[], leader=NO_LEADER, eligible_leader_replicas=[1], last_known_elr=[1]
    )


def test_the_eligible_leader_is_elected_when_it_is_back() -> None:
    back = change(STOPPED, ALIVE)

    assert back == record(isr=[1], leader=1, eligible_leader_replicas=[], last_known_elr=[])
    assert back is not None
    assert STOPPED.merge(back) == partition(leader_epoch=2, partition_epoch=1)


def test_killed_broker_is_no_eligible_leader() -> None:
    # Records that were not synced may be lost, so it is only the last known leader.
    assert record(isr=[], leader=NO_LEADER, last_known_elr=[1]) == change(
        partition(), DEAD, killed=1
    )


def test_last_known_leader_is_elected_as_recovering() -> None:
    assert record(
        isr=[1], leader=1, leader_recovery_state=LeaderRecoveryState.RECOVERING, last_known_elr=[]
    ) == change(KILLED, ALIVE)


def test_broker_killed_after_it_was_fenced_loses_its_eligibility() -> None:
    assert record(eligible_leader_replicas=[]) == change(STOPPED, DEAD, killed=1)


def test_partition_without_a_possible_leader_stays_unchanged() -> None:
    assert change(STOPPED, DEAD) is None
    assert change(KILLED, DEAD) is None


def test_healthy_partition_stays_unchanged() -> None:
    assert change(partition(), ALIVE) is None
    assert change(partition(), ALIVE, removed=2) is None


def test_without_eligible_leader_replicas_the_last_replica_stays_in_the_isr() -> None:
    # Clusters older than KIP-966 never have an empty ISR.
    assert record(leader=NO_LEADER) == change(partition(), DEAD, elr=False, removed=1)
    stopped = partition(leader=NO_LEADER)
    assert record(leader=1) == change(stopped, ALIVE, elr=False)


@pytest.mark.parametrize(
    ("min_isr", "eligible"),
    [(1, None), (2, None), (3, [2])],
)
def test_replica_that_leaves_an_isr_above_the_minimum_is_not_eligible(
    min_isr: int, eligible: list[int] | None
) -> None:
    # Only below the minimum can a leaving replica have all acknowledged records.
    before = partition(replicas=(2, 1, 3), directories=(DIRECTORY,) * 3, isr=(2, 1, 3), leader=2)

    left = change(before, {1, 3}, min_isr=min_isr, removed=2)

    assert left == record(isr=[1, 3], leader=1, eligible_leader_replicas=eligible)


def test_unclean_election_takes_an_available_replica() -> None:
    before = partition(
        replicas=(2, 1), directories=(DIRECTORY,) * 2, isr=(), leader=NO_LEADER,
        eligible_leader_replicas=(2,), last_known_elr=(2,),
    )  # fmt: skip

    assert change(before, {1}) is None
    assert change(before, {1}, unclean=True) == record(
        isr=[1],
        leader=1,
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
        eligible_leader_replicas=[],
        last_known_elr=[],
    )


def test_every_change_raises_the_partition_epoch_and_a_new_leader_the_leader_epoch() -> None:
    before = partition(leader_epoch=4, partition_epoch=9)

    after = before.merge(record(eligible_leader_replicas=[2]))
    assert (4, 10) == (after.leader_epoch, after.partition_epoch)
    after = before.merge(record(leader=1))
    assert (5, 10) == (after.leader_epoch, after.partition_epoch)
