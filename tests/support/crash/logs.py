"""
The logs of a broker, as a subject of crashes: each of ``WORKLOADS`` is a life of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from barnabas.storage.state_files.file_names import TopicPartition
from barnabas.storage.state_files.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    write_meta_properties,
)
from barnabas.testing.disks.crashable import CrashableFiles
from tests.support.crash.ledger import Ledger
from tests.support.crash.points import Keep, Point, Subject, Watch
from tests.support.crash.workloads import Workload
from tests.support.crash.world import DIRECTORY_ID, NODE_ID, ROOT, World

Ledgers = Mapping[TopicPartition, Ledger]


class Logs(Subject[Ledgers]):
    """
    The logs of one workload; the promises are their ledgers.
    """

    second_crashes: ClassVar = (9, 1_000_000)

    def __init__(self, workload: Workload) -> None:
        self.name = f"logs ({workload.__name__})"
        self._workload = workload

    async def points(self, keeps: tuple[Keep, ...]) -> list[Point[Ledgers]]:
        files = CrashableFiles(directories_survive=False)
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

        watch = Watch(files, world.clock.now_ms, keeps, promised, key=key)
        self._workload(world)
        return watch.end()

    async def points_of_recovery(
        self, point: Point[Ledgers], keeps: tuple[Keep, ...]
    ) -> list[Point[Ledgers]]:
        files = point.files()
        world = world_of(point, files)
        place = f"{point.place}; in the recovery, "
        watch = Watch(files, world.clock.now_ms, keeps, lambda keep: point.promised, place=place)
        world.start()
        return watch.end()

    async def check(self, point: Point[Ledgers], *, lives: int, thoroughly: bool) -> None:
        world = world_of(point, point.files())
        world.start(lives=lives)
        world.check()
        if thoroughly:
            world.check_that_life_goes_on()


def world_of(point: Point[Ledgers], files: CrashableFiles) -> World:
    return World(files, copied(point.promised), now_ms=point.now_ms)


def copied(ledgers: Ledgers) -> dict[TopicPartition, Ledger]:
    return {partition: ledger.copy() for partition, ledger in ledgers.items()}


def key(ledgers: Ledgers) -> object:
    return tuple((partition, ledger.key) for partition, ledger in ledgers.items())
