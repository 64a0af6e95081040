"""
The brokers of a partition, and its reassignment to others (KIP-455).

A partition that is reassigned has its old and its new replicas until the new ones are in sync, then
the old ones are removed (Kafka's ``PartitionReassignmentReplicas``). On one node no replica gets
into sync: a reassignment to an absent broker stays in progress until it is cancelled, and one away
from an absent broker completes at once::

    [1] to [2]      replicas [2, 1]  adding [2]  removing [1]
    [1, 2] to [1]   replicas [1]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self
from uuid import UUID

from barnabas.coordination.cluster.partition_registration import PartitionRegistration
from barnabas.protocol.structs import replace, struct


@struct(kw_only=True)
class ReplicaAssignment:
    """
    The replicas of a partition, and those that are added and removed.

    Invariants:

    1. ``adding`` and ``removing`` are among ``replicas`` and have nothing in common.
    2. ``directories`` has an entry for each of ``replicas``.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    directories: Mapping[int, UUID]

    @classmethod
    def of(cls, partition: PartitionRegistration) -> Self:
        """
        The assignment that a partition has.
        """
        return cls(
            replicas=partition.replicas,
            isr=partition.isr,
            adding=partition.adding_replicas,
            removing=partition.removing_replicas,
            directories=dict(zip(partition.replicas, partition.directories, strict=True)),
        )

    def to(self, wanted: Sequence[int], directory_of: Callable[[int], UUID]) -> Self:
        """
        The first assignment of the reassignment to *wanted*, which continues an earlier one.

        Args:
            directory_of: returns the directory for new replicas of a broker.
        """
        adding = sorted(set(wanted) - set(self.replicas))
        removing = sorted(set(self.replicas) - set(wanted))
        return replace(
            self,
            replicas=(*wanted, *removing),
            # Replicas that an earlier reassignment adds or removes, unless this one has its own.
            adding=tuple(adding) or self.adding,
            removing=tuple(removing) or self.removing,
            directories={**{broker: directory_of(broker) for broker in adding}, **self.directories},
        )

    @property
    def reverted(self) -> Self:
        """
        The assignment before the reassignment. If none of its replicas is in sync, the first one is
        taken as such, which is an unclean election.
        """
        replicas = tuple(broker for broker in self.replicas if broker not in self.adding)
        isr = tuple(broker for broker in self.isr if broker not in self.adding)
        return replace(self, replicas=replicas, isr=isr or replicas[:1], adding=(), removing=())

    @property
    def reverts_uncleanly(self) -> bool:
        """
        Whether no replica of the assignment before the reassignment is in sync.
        """
        return set(self.isr) <= set(self.adding)

    def completed(self) -> Self:
        """
        The assignment after the reassignment, if that can complete now; else this one.
        """
        if not self.adding and not self.removing:
            return self
        replicas = tuple(broker for broker in self.replicas if broker not in self.removing)
        isr = tuple(broker for broker in self.isr if broker not in self.removing)
        if not replicas or not isr or not set(self.adding) <= set(isr):
            return self
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return self  # Fewer replicas, some of them not in sync, would be less safe.
        return replace(self, replicas=replicas, isr=isr, adding=(), removing=())

    def changes(self, partition: PartitionRegistration) -> dict[str, Any]:
        """
        The fields of the ``PartitionChangeRecord`` from *partition* to this assignment, without
        the ISR.
        """
        directories = tuple(self.directories[broker] for broker in self.replicas)
        fields = {
            "replicas": (self.replicas, partition.replicas),
            "directories": (directories, partition.directories),
            "adding_replicas": (self.adding, partition.adding_replicas),
            "removing_replicas": (self.removing, partition.removing_replicas),
        }
        return {name: list(new) for name, (new, old) in fields.items() if new != old}
