"""
Every instant at which a machine can crash: the one place that enumerates them.

``Watch`` looks at a disk before each change of it, and stores what a crash at that instant would
leave, with what had been promised until then. A test of one operation watches that operation
(``crash_images``). A ``Subject`` is a longer life of a broker on a ``Machine``: it starts again
from each point and is checked, and its start is watched in turn. The machine is the model of a disk
here, and a real file system in ``tests/interop/disks``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from barnabas.storage.fs.interface import Files
from barnabas.testing.disks.crashable import EVERYTHING, NOTHING, Choose, CrashableFiles, Image
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.crash.count import CRASH_POINTS

P = TypeVar("P")
T = TypeVar("T")


class Keep(NamedTuple):
    """
    How much of the unsynced data survives.
    """

    name: str
    choose: Callable[[int], Choose]
    """Given the number of the change, so that each has its own chance."""
    loses_nothing: bool = False


def _any_part(seed: int) -> Callable[[int], Choose]:
    def choose_at(step: int) -> Choose:
        chance = Random(seed * 1_000_003 + step)
        # Often all or nothing: what is between is nearly always a torn write.
        return lambda most: chance.choice((0, most, chance.randint(0, most)))

    return choose_at


NONE: Final = Keep("nothing", lambda step: NOTHING)
ALL: Final = Keep("everything", lambda step: EVERYTHING, loses_nothing=True)
HALF: Final = Keep("half", lambda step: lambda most: most // 2)


def first(count: int) -> Keep:
    return Keep(f"the first {count}", lambda step: lambda most: min(most, count))


def any_part(seed: int) -> Keep:
    return Keep(f"any part ({seed})", _any_part(seed))


class LastFiles(CrashableFiles):
    """
    A disk after its last crash. It has no copies of all bytes for the next one.
    """

    can_crash = False


@dataclass(frozen=True)
class Point(Generic[P]):
    """
    An instant, and the promises made by then.
    """

    place: str
    promised: P
    now_ms: int

    def files(self) -> Files:
        """
        The disk of the machine that starts again.
        """
        raise NotImplementedError

    def last_files(self) -> Files:
        """
        The same, for a machine that does not crash any more.
        """
        return self.files()


@dataclass(frozen=True)
class ImagePoint(Point[P]):
    """
    A point with the content of the disk after a crash.
    """

    image: Image

    def files(self) -> CrashableFiles:
        return CrashableFiles(image=self.image)

    def last_files(self) -> MemoryFiles:
        return LastFiles(image=self.image)


class Lookout(Protocol):
    """
    Notes what is promised before each change of a disk.
    """

    def look(self, instant: str) -> None:
        """
        Note it now, too.
        """

    def end(self) -> Any:
        """
        Look no more.
        """


class Machine(ABC, Generic[P]):
    """
    A machine that may crash at any instant.
    """

    files: Files

    @abstractmethod
    def watch(
        self,
        now_ms: Callable[[], int],
        promised: Callable[[Keep], P],
        *,
        key: Callable[[P], object] = id,
    ) -> Lookout:
        """
        Note what is promised from now on.

        Args:
            promised: the promises at this instant if a crash keeps so much, as a value that does
                not change later.
            key: equal for equal promises.
        """


class Watch(Generic[P]):
    """
    Stores the points of what is done with *files*; of equal points only the first.

    Args:
        promised: the promises at this instant if a crash keeps so much, as a value that does not
            change later.
        key: equal for equal promises.
    """

    def __init__(
        self,
        files: CrashableFiles,
        now_ms: Callable[[], int],
        keeps: tuple[Keep, ...],
        promised: Callable[[Keep], P],
        *,
        key: Callable[[P], object] = id,
        place: str = "",
    ) -> None:
        self.points: list[ImagePoint[P]] = []
        self._files = files
        self._now_ms = now_ms
        self._keeps = keeps
        self._promised = promised
        self._key = key
        self._place = place
        self._known: set[object] = set()
        files.before_change = self._before_change

    def _before_change(self, action: str, path: Path) -> None:
        self.look(f"before {action} {path.parent.name}/{path.name}")

    def look(self, instant: str) -> None:
        """
        Store what a crash would leave now.
        """
        for keep in self._keeps:
            # In this order: what another thread does meanwhile is not promised.
            promised = self._promised(keep)
            image = self._files.image(keep.choose(self._files.steps))
            key = image.key, self._key(promised)
            if key in self._known:
                continue
            self._known.add(key)
            where = f"crash {instant} (change {self._files.steps}), keeping {keep.name}"
            place = f"{self._place}{where}"
            self.points.append(ImagePoint(place, promised, self._now_ms(), image))

    def end(self) -> list[ImagePoint[P]]:
        """
        Look no more, and return the points.
        """
        self._files.before_change = lambda action, path: None
        return self.points


class ModelMachine(Machine[P]):
    """
    A machine whose disk is the model of one.
    """

    files: CrashableFiles

    def __init__(self, files: CrashableFiles, keeps: tuple[Keep, ...], place: str = "") -> None:
        self.files = files
        self._keeps = keeps
        self._place = place
        self._watch: Watch[P] | None = None

    def watch(
        self,
        now_ms: Callable[[], int],
        promised: Callable[[Keep], P],
        *,
        key: Callable[[P], object] = id,
    ) -> Watch[P]:
        self._watch = Watch(self.files, now_ms, self._keeps, promised, key=key, place=self._place)
        return self._watch

    @property
    def points(self) -> list[ImagePoint[P]]:
        assert self._watch is not None
        return self._watch.end()


@contextmanager
def crash_images(files: CrashableFiles, *keeps: Keep) -> Iterator[list[Image]]:
    """
    What a crash before each change in the block would leave, and after its last change; each once.
    """
    images: list[Image] = []
    watch = Watch(files, lambda: 0, keeps or (NONE,), lambda keep: None)
    yield images
    watch.look("at the end")
    images += [point.image for point in watch.end()]


class Subject(ABC, Generic[P]):
    """
    A life of a broker that does the same whenever it is run.
    """

    name: str
    """What crashes, for the summary of the test run."""
    second_crashes: ClassVar[tuple[int, int]]
    """
    From how many points a start is cut short, at how many of its points each; and with
    ``--crash-points all``.
    """

    directories_survive: ClassVar[bool] = True

    async def points(self, keeps: tuple[Keep, ...]) -> list[ImagePoint[P]]:
        """
        All points of its life.
        """
        files = CrashableFiles(directories_survive=self.directories_survive)
        machine: ModelMachine[P] = ModelMachine(files, keeps)
        await self.live(machine)
        return self.different(machine.points)

    async def points_of_recovery(
        self, point: ImagePoint[P], keeps: tuple[Keep, ...]
    ) -> list[ImagePoint[P]]:
        """
        All points of the start after a crash.
        """
        place = f"{point.place}; in the recovery, "
        machine: ModelMachine[P] = ModelMachine(point.files(), keeps, place)
        await self.recover(machine, point)
        return self.different(machine.points)

    def different(self, points: list[ImagePoint[P]]) -> list[ImagePoint[P]]:
        """
        Those of the points that are worth a check.
        """
        return points

    @abstractmethod
    async def live(self, machine: Machine[P]) -> None:
        """
        Live, and have the machine watch.
        """

    @abstractmethod
    async def recover(self, machine: Machine[P], point: Point[P]) -> None:
        """
        Start after a crash, and have the machine watch.
        """

    @abstractmethod
    async def check(self, point: Point[P], *, lives: int, thoroughly: bool) -> None:
        """
        Start from a point and check that every promise holds; *thoroughly*, also in what follows.

        Args:
            lives: which start this is, since the promises.
        """


def keeps(everything: bool) -> tuple[Keep, ...]:
    return (NONE, ALL, *map(any_part, range(1, 9 if everything else 2)))


async def crash_at_every_point(subject: Subject[P], everything: bool) -> None:
    """
    Check a subject after a crash at each of its points, every fifth or *everything* thoroughly.
    """
    points = await subject.points(keeps(everything))
    assert points
    for number, point in enumerate(points):
        await _check(subject, point, lives=1, thoroughly=everything or number % 5 == 0)
    CRASH_POINTS[f"crashes of {subject.name}"] += len(points)


async def crash_again_in_recovery(subject: Subject[P], everything: bool) -> None:
    """
    Check a subject after two crashes, the second while the broker starts after the first.
    """
    chance, most = Random(subject.name), subject.second_crashes[everything]
    first = _sample(chance, await subject.points(keeps(everything)), most)
    assert first
    for point in first:
        of_recovery = await subject.points_of_recovery(point, keeps(everything))
        for second in _sample(chance, of_recovery, most):
            await _check(subject, second, lives=2, thoroughly=True)
            CRASH_POINTS[f"second crashes of {subject.name}"] += 1


def _sample(chance: Random, points: list[T], most: int) -> list[T]:
    return chance.sample(points, min(len(points), most))


async def _check(subject: Subject[P], point: Point[P], *, lives: int, thoroughly: bool) -> None:
    try:
        await subject.check(point, lives=lives, thoroughly=thoroughly)
    except BaseException as error:
        error.add_note(f"{subject.name}: {point.place}")
        raise
