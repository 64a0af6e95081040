"""
A file system in memory, on a machine that can crash at any step.

What was written to a file survives once the file is synced. That it was made, renamed or removed
survives once the directory it is in is synced, and so for directories themselves. Of the rest any
part may survive: of each write its beginning, of the changes in a directory the first so many, as
file systems keep them in order; and what grows may be longer before its bytes are there. A new file
that was synced, and a directory with one, may survive without the changes before it, as on btrfs.

``CrashableFiles.image`` is what a crash at this instant would leave, and changes nothing: from one
run, a machine can be started again from each of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.testing.disks.memory import Cut, MemoryFiles, Node, Write

READING: Final = frozenset({"open", "map", "read", "look", "list"})
"""Actions that change nothing. Making a file, when opening does so, is an action of its own."""

Choose = Callable[[int], int]
"""
How many of so many survive, each time it matters.
"""

NOTHING: Final[Choose] = lambda most: 0  # noqa: E731  # three names for three little functions
EVERYTHING: Final[Choose] = lambda most: most  # noqa: E731  # likewise

_path = lru_cache(maxsize=10_000)(Path)


class Crashed(BaseException):
    """
    The machine has stopped. Nothing that runs may notice, so it is no ``Exception``.
    """


class StoredFile(NamedTuple):
    """
    A file on a disk whose machine is off.
    """

    content: bytes
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Image:
    """
    All that is on a disk whose machine is off, by the names of files and of directories.
    """

    files: Mapping[str, StoredFile]
    directories: frozenset[str]

    @property
    def key(self) -> object:
        """
        Equal for images that are equal.
        """
        return frozenset((name, file.content) for name, file in self.files.items()), (
            self.directories
        )


@dataclass(slots=True, eq=False)
class Folder:
    """
    A directory whatever its name: what is in it for sure, and what was changed since.
    """

    durable: dict[str, Node | Folder] = field(default_factory=dict)
    pending: list[tuple[str | None, str | None, Node | Folder | None]] = field(default_factory=list)
    """For each change the name that goes, the name that comes, and what it is the name of."""

    def copied(self, copies: dict[object, Any]) -> Folder:
        """
        A copy, with copies of all that is or was in it.
        """
        if self in copies:
            found: Folder = copies[self]
            return found
        made = copies[self] = Folder(is_synced=self.is_synced)

        def copy_of(inode: Node | Folder) -> Node | Folder:
            if isinstance(inode, Folder):
                return inode.copied(copies)
            node: Node = copies.setdefault(inode, inode.copied())
            return node

        made.durable = {name: copy_of(inode) for name, inode in self.durable.items()}
        made.pending = [
            (going, coming, None if inode is None else copy_of(inode))
            for going, coming, inode in self.pending
        ]
        return made

    is_synced: bool = False

    def sync(self) -> None:
        self.is_synced = True
        self.durable = self.survivors(EVERYTHING)
        self.pending.clear()

    @property
    def may_survive(self) -> bool:
        """
        Whether it may have its name after a crash without the changes before that.
        """
        inside = (*self.durable.values(), *(inode for _, _, inode in self.pending))
        return self.is_synced or any(inode is not None and inode.may_survive for inode in inside)

    def survivors(self, choose: Choose) -> dict[str, Node | Folder]:
        """
        What is left after a crash.
        """
        if not self.pending:
            return self.durable
        names = dict(self.durable)
        count = choose(len(self.pending))
        for going, coming, inode in self.pending[:count]:
            if going is not None:
                names.pop(going, None)
            if coming is not None:
                assert inode is not None
                names[coming] = inode
        for going, coming, inode in self.pending[count:]:
            if inode is None or coming is None or going is not None:
                continue
            if inode.may_survive and choose(1):
                names[coming] = inode
        return names


class CrashableFiles(MemoryFiles):
    """
    The disk of a machine that stops before a chosen change, or at which somebody looks before each.
    """

    can_crash = True

    def __init__(
        self,
        now_ms: Callable[[], int] = lambda: 0,
        image: Image | None = None,
        *,
        directories_survive: bool = True,
    ) -> None:
        """
        Args:
            image: what is on the disk at the beginning.
            directories_survive: once made, as if the one above had been synced; for tests of what
                is in them.
        """
        super().__init__(now_ms)
        self._directories_survive = directories_survive
        self.steps = 0
        """How many changes there were."""
        self.before_change: Callable[[str, Path], None] = lambda action, path: None
        self._steps_left: int | None = None
        self._root = Folder()
        self._folders = {Path("/"): self._root}
        if image is not None:
            self._load(image)

    def _clear(self) -> None:
        super()._clear()
        self._root = Folder()
        self._folders = {Path("/"): self._root}

    def _remember(self, copies: dict[object, Any]) -> Callable[[], None]:
        put_back_names = super()._remember(copies)
        root = self._root.copied(copies)
        folders = {path: folder.copied(copies) for path, folder in dict(self._folders).items()}

        def put_back() -> None:
            put_back_names()
            self._root, self._folders = root, folders

        return put_back

    def _load(self, image: Image) -> None:
        self._clear()
        for name in sorted(image.directories):
            self.link_directory(_path(name))
        for name, (content, modified_ms) in image.files.items():
            pending: list[Write | Cut] | None = [] if self.can_crash else None
            self.link(_path(name), Node(bytearray(content), modified_ms, content, pending))
        for folder in self._folders.values():
            folder.sync()

    def image(self, choose: Choose = NOTHING) -> Image:
        """
        What would be on the disk after a crash at this instant.
        """
        found: dict[str, StoredFile] = {}
        directories: set[str] = set()
        self._collect("", self._root, choose, found, directories)
        return Image(found, frozenset(directories))

    def _collect(
        self,
        prefix: str,
        folder: Folder,
        choose: Choose,
        found: dict[str, StoredFile],
        directories: set[str],
    ) -> None:
        for name, inode in folder.survivors(choose).items():
            path = f"{prefix}/{name}"
            if isinstance(inode, Folder):
                directories.add(path)
                self._collect(path, inode, choose, found, directories)
            else:
                found[path] = StoredFile(inode.survivor(choose), inode.modified_ms)

    def crash_before(self, step: int) -> None:
        """
        Stop before the change number *step* from now, and refuse everything until ``crash``.
        """
        self._steps_left = step

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if action in READING:
            if self._steps_left == 0:
                raise Crashed
            return
        self.steps += 1
        self.before_change(action, path)
        if self._steps_left is None:
            return
        if self._steps_left == 0:
            raise Crashed
        self._steps_left -= 1

    def crash(self, choose: Choose = NOTHING) -> None:
        """
        Be as after a restart of the machine.
        """
        self.power_loss(choose)()

    def power_loss(self, choose: Choose = NOTHING) -> Callable[[], None]:
        """
        Remember what a crash at this instant would leave. The function that is returned puts it in
        place of what was done since.
        """
        image = self.image(choose)

        def restore() -> None:
            self._steps_left = None
            self.locked.clear()
            self._load(image)

        return restore

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self._folders[path].sync()

    # The changes of names, each remembered by the directory it happens in.

    def link_directory(self, path: Path) -> None:
        super().link_directory(path)
        folder = self._folders[path] = Folder()
        above = self._folders[path.parent]
        if self._directories_survive:
            above.durable[path.name] = folder
        else:
            above.pending.append((None, path.name, folder))

    def unlink_directory(self, path: Path) -> None:
        super().unlink_directory(path)
        del self._folders[path]
        self._folders[path.parent].pending.append((path.name, None, None))

    def link(self, path: Path, node: Node) -> None:
        super().link(path, node)
        self._folders[path.parent].pending.append((None, path.name, node))

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self._folders[path.parent].pending.append((path.name, None, None))

    def move(self, source: Path, target: Path) -> None:
        assert source.parent == target.parent, "a move between directories is not one change"
        super().move(source, target)
        change = (source.name, target.name, self.nodes[target])
        self._folders[target.parent].pending.append(change)

    def _rename_directory(self, source: Path, target: Path) -> None:
        assert source.parent == target.parent, "a move between directories is not one change"
        super()._rename_directory(source, target)
        inside = [path for path in self._folders if path == source or source in path.parents]
        for path in inside:
            self._folders[target / path.relative_to(source)] = self._folders.pop(path)
        change = (source.name, target.name, self._folders[target])
        self._folders[target.parent].pending.append(change)
