"""
The model of a disk (``CrashableFiles``) beside a real one.

What was done with the real file system up to a power cut is done with the model. Then the model has
to allow the state that the power cut has left: each directory has the durable names and some of the
later changes, each file has the durable bytes and some of the later writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from barnabas.testing.disks.crashable import CrashableFiles, Folder
from barnabas.testing.disks.memory import Cut, Node
from tests.interop.disks.recorded import Operation

UNRECORDED: Final = frozenset({".lock"})
"""Made by a lock, which is not the disk's affair."""
REMOVED: Final = ("-delete", "-stray")
"""Suffixes of directories whose files are removed in an order that the model does not know."""


def model_at(operations: Sequence[Operation], position: int, root: Path) -> CrashableFiles:
    """
    The model after the operations that had begun before *position*. A sync counts if it had ended.
    """
    files = CrashableFiles(directories_survive=False)
    files.make_directory(root)
    files.sync_directory(root.parent)
    for operation in operations:
        if operation.begun < position:
            is_done = 0 <= operation.ended <= position
            if is_done or not operation.action.startswith("sync"):
                _do(files, operation)
    return files


def _do(files: CrashableFiles, operation: Operation) -> None:
    path = operation.path
    match operation.action:
        case "create":
            files.open(path).close()
        case "make directory":
            files.make_directory(path)
        case "rename":
            assert operation.target is not None
            files.rename(path, operation.target)
        case "remove":
            files.remove(path)
        case "remove tree":
            files.remove_tree(path)
        case "sync directory":
            files.sync_directory(path)
        case _:
            _change(files, operation)


def _change(files: CrashableFiles, operation: Operation) -> None:
    try:
        file = files.open(operation.path, create=False)
    except FileNotFoundError:
        return  # It was open, and is removed.
    match operation.action:
        case "write":
            file.write_at(operation.position, operation.data)
        case "truncate":
            file.truncate(operation.position)
        case "sync":
            file.sync()
    file.close()


def unmodelled(model: CrashableFiles, root: Path) -> list[str]:
    """
    What the file system at *root* has that the model does not allow.
    """
    return list(_in_folder(model._folders[root], root))


def _in_folder(folder: Folder, path: Path) -> Iterable[str]:
    if path.name.endswith(REMOVED):
        return []
    found = {each.name for each in path.iterdir()} - UNRECORDED
    nearest: list[str] | None = None
    for names in _survivors(folder, found):
        if set(names) == found:
            problems = [
                problem
                for name, inode in names.items()
                for problem in (
                    _in_folder(inode, path / name)
                    if isinstance(inode, Folder)
                    else _in_file(inode, path / name)
                )
            ]
            if not problems:
                return []
            nearest = problems if nearest is None else nearest
    if nearest is not None:
        return nearest
    pending = [(going, coming) for going, coming, _ in folder.pending]
    durable = set(folder.durable)
    return [f"names: {path} lacks {durable - found}, has {found - durable}, pending {pending}"]


def _survivors(folder: Folder, found: set[str]) -> Iterator[dict[str, Node | Folder]]:
    """
    The names after a power cut that keeps so many changes, and of the files that were synced later
    those that are *found*.
    """
    for count in range(len(folder.pending), -1, -1):
        later = [
            coming in found
            for going, coming, inode in folder.pending[count:]
            if going is None and inode is not None and inode.may_survive
        ]
        chosen = iter([count, *later])
        yield folder.survivors(lambda most, chosen=chosen: int(next(chosen, 0)))  # type: ignore[misc]


def _in_file(node: Node, path: Path) -> Iterable[str]:
    content = path.read_bytes()
    pending = node.pending or []
    if content == node.durable or content == bytes(node.data):
        return
    lengths = {len(node.durable), *(each.size for each in pending if isinstance(each, Cut))}
    writes = [each for each in pending if not isinstance(each, Cut)]
    if len(content) not in lengths and not any(
        each.position < len(content) <= each.position + len(each.data) for each in writes
    ):
        yield f"length: {path} has {len(content)} bytes, not {lengths} or as {len(writes)} writes"
    sizes = [len(node.durable), *(each.size for each in pending if isinstance(each, Cut))]
    hole = min(sizes)
    # Indexes are holes of megabytes; zeros at the end are told by the length.
    for index, byte in enumerate(content.rstrip(b"\0")):
        may_be = {each.data[index - each.position] for each in writes
                  if 0 <= index - each.position < len(each.data)}  # fmt: skip
        if index < len(node.durable):
            may_be.add(node.durable[index])
        if index >= hole:
            may_be.add(0)
        if byte not in may_be:
            yield f"byte: {path} has {byte} at {index}, not {may_be}"
            return
    for each in writes:
        kept = content[each.position : each.position + len(each.data)]
        before = node.durable[each.position : each.position + len(each.data)].ljust(
            len(kept), b"\0"
        )
        differs = [i for i, (a, b) in enumerate(zip(each.data, before, strict=False)) if a != b]
        survived = [i < len(kept) and kept[i] == each.data[i] for i in differs]
        if survived != sorted(survived, reverse=True) and not any(
            other is not each and other.position < each.position + len(each.data)
            and each.position < other.position + len(other.data) for other in writes
        ):  # fmt: skip
            yield f"middle: {path} lost the beginning of a write at {each.position}, not its end"
