"""
Every instant at which a machine can crash.

A workload is run once. Before each change of the disk, what a crash would leave there is put aside,
with what had been promised until then; from each of these pairs a broker is started and looked at.
While it starts, the same is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from barnabas.storage.state_files.file_names import TopicPartition
from barnabas.storage.state_files.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    write_meta_properties,
)
from tests.support.crash.ledger import Ledger
from tests.support.crash.workloads import Workload
from tests.support.crash.world import DIRECTORY_ID, NODE_ID, ROOT, World
from tests.support.crashable_disk import (
    EVERYTHING,
    NOTHING,
    Choose,
    CrashableFiles,
    Image,
)


class Keep(NamedTuple):
    """
    What survives of that which was not synced.
    """

    name: str
    choose: Callable[[int], Choose]
    """Given the number of the step, so that each has its own chance."""
    loses_nothing: bool = False


def _any_part(seed: int) -> Callable[[int], Choose]:
    def choose_at(step: int) -> Choose:
        chance = Random(seed * 1_000_003 + step)
        # Often all or nothing: what is between is nearly always a torn write.
        return lambda most: chance.choice((0, most, chance.randint(0, most)))

    return choose_at


NONE: Final = Keep("nothing", lambda step: NOTHING)
ALL: Final = Keep("everything", lambda step: EVERYTHING, loses_nothing=True)


def any_part(seed: int) -> Keep:
    return Keep(f"any part ({seed})", _any_part(seed))


@dataclass(frozen=True, slots=True)
class Point:
    """
    An instant, what is left of the disk, and what was promised by then.
    """

    workload: str
    place: str
    image: Image
    ledgers: Mapping[TopicPartition, Ledger]
    now_ms: int

    def world(self) -> World:
        ledgers = {partition: ledger.copy() for partition, ledger in self.ledgers.items()}
        return World(CrashableFiles(image=self.image), ledgers, now_ms=self.now_ms)


class _Watch:
    """
    Puts points aside while something is done, those only that are not like the one before.
    """

    def __init__(self, world: World, name: str, keeps: tuple[Keep, ...], place: str = "") -> None:
        self.points: list[Point] = []
        self._world = world
        self._name = name
        self._keeps = keeps
        self._place = place
        self._known: set[object] = set()

    def before_change(self, action: str, path: Path) -> None:
        files, world = self._world.files, self._world
        assert isinstance(files, CrashableFiles)
        promises = tuple((name, ledger.key) for name, ledger in world.ledgers.items())
        for keep in self._keeps:
            image = files.image(keep.choose(files.steps))
            key = image.key, promises, keep.loses_nothing
            if key in self._known:
                continue
            self._known.add(key)
            ledgers = {name: ledger.copy() for name, ledger in world.ledgers.items()}
            if keep.loses_nothing:
                for ledger in ledgers.values():
                    ledger.durable_end = ledger.acknowledged_end
            place = (
                f"{self._place}crash before change {files.steps} ({action} {path.name}), keeping"
                f" {keep.name}"
            )
            now_ms = world.clock.now_ms()
            self.points.append(Point(self._name, place, image, ledgers, now_ms))


def points_of(workload: Workload, keeps: tuple[Keep, ...]) -> list[Point]:
    """
    All points of a workload.
    """
    files = CrashableFiles(directories_survive=False)
    world = World(files)
    files.make_directory(ROOT)
    files.sync_directory(ROOT.parent)
    meta = MetaProperties(cluster_id="crash", node_id=NODE_ID, directory_id=DIRECTORY_ID)
    write_meta_properties(files, ROOT / META_PROPERTIES, meta, 0)
    watch = _Watch(world, workload.__name__, keeps)
    files.before_change = watch.before_change
    workload(world)
    return watch.points


def points_of_recovery(point: Point, keeps: tuple[Keep, ...]) -> list[Point]:
    """
    All points of the start after a crash.
    """
    world = point.world()
    expected = {partition: ledger.copy() for partition, ledger in world.ledgers.items()}
    watch = _Watch(world, point.workload, keeps, f"{point.place}; while that is recovered, ")
    assert isinstance(world.files, CrashableFiles)
    world.files.before_change = watch.before_change
    world.start()
    return [
        Point(found.workload, found.place, found.image, expected, found.now_ms)
        for found in watch.points
    ]


def check(point: Point, *, lives: int = 1, thoroughly: bool = True) -> None:
    """
    Start from a point, and see that all is as it should be; *thoroughly*, also after another stop.
    """
    world = point.world()
    try:
        world.start(lives=lives)
        world.check()
        if thoroughly:
            world.check_that_life_goes_on()
    except BaseException as error:
        error.add_note(f"in the workload {point.workload}: {point.place}")
        raise
