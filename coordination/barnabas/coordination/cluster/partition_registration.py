"""
One partition in the metadata log: its replicas, its leader and their epochs.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self
from uuid import UUID

from barnabas.coordination.cluster import features
from barnabas.protocol.internal_topics.metadata_records import (
    PartitionChangeRecord,
    PartitionRecord,
)
from barnabas.protocol.structs import struct

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1

MIGRATING_DIRECTORY: Final = UUID(int=0)
"""
The directory of a replica that was placed before directories had ids.
"""


class LeaderRecoveryState(IntEnum):
    """
    Whether the leader was in sync when it was elected, or may lack records.
    """

    RECOVERED = 0
    RECOVERING = 1


@struct(kw_only=True)
class PartitionRegistration:
    """
    One partition after the last record about it (Kafka's class of this name).

    Invariants:

    1. ``directories`` has one entry for each of ``replicas``.
    2. Every change increments ``partition_epoch``; a change with a leader, even the same one, also
       increments ``leader_epoch``.
    """

    replicas: tuple[int, ...]
    directories: tuple[UUID, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @classmethod
    def from_record(cls, record: PartitionRecord) -> Self:
        """
        The partition as *record* declares it.
        """
        return cls(
            replicas=tuple(record.replicas),
            directories=_directories(record.directories, len(record.replicas)),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=LeaderRecoveryState(record.leader_recovery_state),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def merge(self, change: PartitionChangeRecord) -> PartitionRegistration:
        """
        The partition after *change*.
        """
        replicas = _changed(change.replicas, self.replicas)
        if change.directories is not None:
            directories = _directories(change.directories, len(replicas))
        else:
            there = dict(zip(self.replicas, self.directories, strict=True))
            directories = tuple(there.get(broker, MIGRATING_DIRECTORY) for broker in replicas)
        leads = change.leader != NO_LEADER_CHANGE
        recovery = change.leader_recovery_state
        return PartitionRegistration(
            replicas=replicas,
            directories=directories,
            isr=_changed(change.isr, self.isr),
            leader=change.leader if leads else self.leader,
            leader_epoch=self.leader_epoch + 1 if leads else self.leader_epoch,
            partition_epoch=self.partition_epoch + 1,
            leader_recovery_state=(
                self.leader_recovery_state
                if recovery == NO_RECOVERY_CHANGE
                else LeaderRecoveryState(recovery)
            ),
            removing_replicas=_changed(change.removing_replicas, self.removing_replicas),
            adding_replicas=_changed(change.adding_replicas, self.adding_replicas),
            eligible_leader_replicas=_changed(
                change.eligible_leader_replicas, self.eligible_leader_replicas
            ),
            last_known_elr=_changed(change.last_known_elr, self.last_known_elr),
        )

    def to_record(
        self, topic_id: UUID, partition_id: int, metadata_version: int
    ) -> tuple[PartitionRecord, int]:
        """
        The record that declares the partition as it is now, with the version to write it in.
        """
        record = PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            # Tagged fields: what is empty is left out.
            eligible_leader_replicas=list(self.eligible_leader_replicas) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )
        return record, features.partition_version(metadata_version)


def _changed(new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else tuple(new)


def _directories(given: list[UUID], replicas: int) -> tuple[UUID, ...]:
    if not given:  # A record of a version without directories.
        return (MIGRATING_DIRECTORY,) * replicas
    if len(given) != replicas:
        raise ValueError(f"{len(given)} directories for {replicas} replicas")
    return tuple(given)
