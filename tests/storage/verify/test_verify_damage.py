"""
Damage of every kind, at a place of chance: ``verify`` finds it, or it is no damage.

Each test begins with a directory in which nothing is wrong. What cannot be found is listed with the
reason why nobody could.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from barnabas.storage.errors import CorruptCheckpoint
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.state_files.checkpoints import (
    parse_checkpoint,
    parse_epoch_entry,
    parse_offset_entry,
)
from barnabas.storage.verify.cluster import KnownTopics
from barnabas.storage.verify.report import Violation
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.some import some
from tests.support.sound_directory import ROOT, TOPICS, sound_directory
from tests.support.verifying import verified

SEEDS = range(10)
TRIES = 12
OFFSET_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
)


def read_topics(_root: LogRoot) -> KnownTopics:
    return TOPICS


@cache
def contents() -> dict[Path, bytes]:
    return {path: bytes(node.data) for path, node in sound_directory().nodes.items()}


def found(changes: dict[Path, bytes | None]) -> list[Violation]:
    """
    What is wrong with the directory if some files are changed, or missing.
    """
    files = MemoryFiles()
    for path in (ROOT, *(path.parent for path in contents())):
        files.make_directory(path)
    for path, data in {**contents(), **changes}.items():
        if data is not None:
            files.open(path).append(data)
    return verified([ROOT], read_topics, files=files)[0]


def test_undamaged_directory_has_no_violations() -> None:
    assert [] == found({})
    kinds = {path.suffix for path in contents()}
    assert {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".metadata"} <= kinds


# One byte.


def is_harmless(path: Path, data: bytes) -> bool:
    """
    Whether nobody can tell that the file *path* should not have *data*.
    """
    old = contents()[path]
    if path.name == "meta.properties":
        # Comments; and ids that are written nowhere else in a single directory.
        return _lines_with(old, b"node.id", b"version") == _lines_with(data, b"node.id", b"version")
    try:
        if path.name in OFFSET_CHECKPOINTS:
            # An offset that is too low only means more work. White space of any kind is the same.
            before = dict(parse_checkpoint(old, path, parse_offset_entry))
            after = dict(parse_checkpoint(data, path, parse_offset_entry))
            return before.keys() == after.keys() and all(
                0 <= after[each] <= before[each] for each in before
            )
        if path.name == "leader-epoch-checkpoint":
            # DeleteRecords moves the beginning of the first epoch.
            one, *more = parse_checkpoint(old, path, parse_epoch_entry)
            other, *others = parse_checkpoint(data, path, parse_epoch_entry)
            return one.epoch == other.epoch and more == others
    except CorruptCheckpoint:
        pass
    return False


def _lines_with(data: bytes, *words: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line.startswith(words)]


def check_byte(path: Path, position: int, flipped: int) -> None:
    data = bytearray(contents()[path])
    data[position] ^= flipped

    if not found({path: bytes(data)}):
        assert is_harmless(path, bytes(data)), (path, position, flipped)


@pytest.mark.parametrize("seed", SEEDS)
def test_changed_byte_is_found(seed: int) -> None:
    chance = random.Random(seed)
    # Most bytes are in segments: by file, the others have their turn as well.
    paths = [path for path, data in contents().items() if data]
    for _ in range(TRIES):
        path = chance.choice(paths)
        check_byte(path, chance.randrange(len(contents()[path])), chance.randrange(1, 256))


@pytest.mark.parametrize("position", range(61))
def test_changed_byte_in_a_batch_header_is_found(position: int) -> None:
    for name, flipped in (("plain-0", 0xFF), ("transactions-0", 1), ("compacted-0", 0x80)):
        check_byte(ROOT / name / f"{0:020d}.log", position, flipped)


# More than one.


def is_legal_cut(path: Path, size: int) -> bool:
    if path.suffix == ".index":
        # An index need not know all batches.
        return size % 8 == 0
    if path.name == ".kafka_cleanshutdown":
        # As of releases that said no more.
        return size == 0
    # Of what is not said, nothing is expected.
    return path.name in OFFSET_CHECKPOINTS and is_harmless_list(path, size)


def is_harmless_list(path: Path, size: int) -> bool:
    data = contents()[path][:size]
    if data in (b"", b"0", b"0\n"):
        return True
    return is_harmless(path, data)


@pytest.mark.parametrize("seed", SEEDS)
def test_truncated_file_is_found(seed: int) -> None:
    chance = random.Random(seed)
    paths = [path for path, data in contents().items() if data]
    for _ in range(TRIES):
        path = chance.choice(paths)
        size = chance.randrange(len(contents()[path]))

        if not found({path: contents()[path][:size]}):
            legal = is_legal_cut(path, size) or is_harmless(path, contents()[path][:size])
            assert legal, (path, size)


@pytest.mark.parametrize("seed", SEEDS)
def test_trailing_bytes_are_found(seed: int) -> None:
    chance = random.Random(seed)
    paths = list(contents())
    for _ in range(TRIES):
        path = chance.choice(paths)
        more = bytes(
            chance.choice((0, chance.randrange(256))) for _ in range(chance.randrange(1, 40))
        )

        if not found({path: contents()[path] + more}):
            legal = is_harmless(path, contents()[path] + more) or not more.strip()
            assert legal, (path, more)


@pytest.mark.parametrize("seed", SEEDS)
def test_overwritten_piece_of_a_file_is_found(seed: int) -> None:
    """
    Overwritten with zeros, as a file system may do after a crash, or with a piece of another file.
    """
    chance = random.Random(seed)
    paths = [path for path, data in contents().items() if len(data) > 20]
    everything = b"".join(contents().values())
    for _ in range(TRIES):
        path = chance.choice(paths)
        data = bytearray(contents()[path])
        start = chance.randrange(len(data))
        size = chance.randrange(1, 1 + len(data) - start)
        at = chance.randrange(len(everything) - size)
        data[start : start + size] = chance.choice((bytes(size), everything[at : at + size]))

        if data != contents()[path] and not found({path: bytes(data)}):
            zeros = path.suffix == ".index" and not data[start // 8 * 8 :].strip(b"\0")
            assert zeros or is_harmless(path, bytes(data)), (path, start, size)


# Whole files.


def may_be_missing(path: Path) -> bool:
    return (
        # The records tell the same.
        path.suffix == ".snapshot"
        # Of what is not said, nothing is expected.
        or path.name in OFFSET_CHECKPOINTS
        or path.name in (".kafka_cleanshutdown", ".lock")
        # There was no epoch with records.
        or path == ROOT / "empty-0" / "leader-epoch-checkpoint"
        # Where no file is, a log that has just been made has none yet.
        or (path.name.endswith(".txnindex") and path.parent.name == "compacted-0")
    )


@pytest.mark.parametrize("path", sorted(contents()), ids=lambda path: str(path.relative_to(ROOT)))
def test_missing_file_is_found(path: Path) -> None:
    assert may_be_missing(path) is (found({path: None}) == [])


def test_file_of_another_segment_is_found() -> None:
    """
    Each segment, time index and transaction index replaced by every other one of the same log. The
    contents of an offset index may be valid for two segments.
    """
    for path, data in contents().items():
        if path.suffix not in (".log", ".timeindex", ".txnindex") or not data:
            continue
        for other, other_data in some(contents().items()):
            alike = other.parent == path.parent and other.suffix == path.suffix
            if alike and other != path and other_data != data and other_data:
                assert [] != found({path: other_data}), (path, other)


@pytest.mark.parametrize("name", ["plain-0", "sequences-0", "transactions-0", "packed-0"])
def test_missing_segments_are_found(name: str) -> None:
    """
    With all of their files, in the middle or at the end. Missing first segments look like
    retention.
    """
    paths = [path for path in contents() if path.parent == ROOT / name]
    _, *bases = sorted(path.stem for path in paths if path.suffix == ".log")
    for base in some(bases):
        assert [] != found({path: None for path in paths if path.name.startswith(base)}), base
