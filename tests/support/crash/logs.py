"""
The logs of a broker, as a subject of crashes: each of ``WORKLOADS`` is a life of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from barnabas.storage.fs.interface import Files
from barnabas.storage.state_files.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    write_meta_properties,
)
from barnabas.storage.topic_partition import TopicPartition
from tests.support.crash.ledger import Ledger
from tests.support.crash.points import Keep, Machine, Point, Subject
from tests.support.crash.workloads import Workload
from tests.support.crash.world import DIRECTORY_ID, NODE_ID, ROOT, World

Ledgers = Mapping[TopicPartition, Ledger]


class Logs(Subject[Ledgers]):
    """
    The logs of one workload; the promises are their ledgers.
    """

    second_crashes: ClassVar = (9, 1_000_000)
    directories_survive: ClassVar = False

    def __init__(self, workload: Workload) -> None:
        self.name = f"logs ({workload.__name__})"
        self._workload = workload

    async def live(self, machine: Machine[Ledgers]) -> None:
        files = machine.files
        world = World(files)
        files.make_directory(ROOT)
        files.sync_directory(ROOT.parent)
        meta = MetaProperties(cluster_id="crash", node_id=NODE_ID, directory_id=DIRECTORY_ID)
        write_meta_properties(files, ROOT / META_PROPERTIES, meta, 0)

        def promised(keep: Keep) -> Ledgers:
            ledgers = copied(world.ledgers)
            if keep.loses_nothing:
                for ledger in ledgers.values():
                    ledger.durable_end = ledger.acknowledged_end
            return ledgers

        watch = machine.watch(world.clock.now_ms, promised, key=key)
        try:
            self._workload(world)
        finally:
            world.release()
        watch.end()

    async def recover(self, machine: Machine[Ledgers], point: Point[Ledgers]) -> None:
        world = world_of(point, machine.files)
        watch = machine.watch(world.clock.now_ms, lambda keep: point.promised)
        try:
            world.start()
        finally:
            world.release()
        watch.end()

    async def check(self, point: Point[Ledgers], *, lives: int, thoroughly: bool) -> None:
        world = world_of(point, point.files())
        try:
            world.start(lives=lives)
            world.check()
            if thoroughly:
                world.check_that_life_goes_on()
        finally:
            world.release()


def world_of(point: Point[Ledgers], files: Files) -> World:
    return World(files, copied(point.promised), now_ms=point.now_ms)


def copied(ledgers: Ledgers) -> dict[TopicPartition, Ledger]:
    return {partition: ledger.copy() for partition, ledger in ledgers.items()}


def key(ledgers: Ledgers) -> object:
    return tuple((partition, ledger.key) for partition, ledger in ledgers.items())
