"""
The log directories: whether they can be written to, whether they last, how quick they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from barnabas.server.cluster.formatting import check_places
from barnabas.server.config import BrokerConfig
from barnabas.server.tools.doctor.facts import Facts
from barnabas.server.tools.doctor.findings import Finding, advice, ok, problem
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.explain.units import rounded_size
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.state_files.meta_properties import META_PROPERTIES

LITTLE_BYTES: Final = 100 << 20
SLOW_S: Final = 0.02
"""
The fsync of a disk without a cache of its own takes about as long.
"""
FLEETING: Final = {
    "tmpfs": "in memory: it is empty when the machine or the container starts again",
    "ramfs": "in memory: it is empty when the machine starts again",
    "overlay": "in the layer of a container: it is gone with the container",
    "aufs": "in the layer of a container: it is gone with the container",
}
REMOTE: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "virtiofs"})


def check_directories(config: BrokerConfig, facts: Facts) -> Iterator[Finding]:
    """
    All log directories, and that of the metadata log.
    """
    for directory in dict.fromkeys((*config.log_directories, config.metadata_directory)):
        yield from _check(directory, config, facts)


def _check(directory: Path, config: BrokerConfig, facts: Facts) -> Iterator[Finding]:
    subject = str(directory)
    place = _existing(directory)
    if not place.is_dir():
        yield problem(subject, f"{place} is a file", "name a directory in log.dirs")
        return
    if not facts.may_write(place):
        yield problem(
            subject,
            f"{place} cannot be written to by this user",
            f"chown or chmod {place}, or run the broker as its owner",
        )
        return
    if reason := _is_foreign(directory):
        yield problem(subject, reason, "name an empty directory, or the one of a broker")
    if facts.is_locked(directory):
        yield ok(subject, "a broker runs on it")
    elif place != directory.absolute():
        yield ok(subject, "it does not exist yet: a start creates it")
    yield from _lasting(subject, facts.file_system(place))
    try:
        yield from _room(subject, facts.free_bytes(place), config)
        yield from _speed(subject, facts.sync_s(place))
    except OSError as error:
        yield problem(subject, f"it cannot be written to: {error.strerror}", "look at the disk")


def _is_foreign(directory: Path) -> str | None:
    """
    Why no broker starts in a directory that exists; None if nothing is known against it.
    """
    if not directory.is_dir() or (directory / META_PROPERTIES).exists():
        return None
    try:
        check_places([directory], DiskFiles())
    except InvalidLogDirectory as error:
        return str(error).replace("\n", " ")
    return None


def _existing(directory: Path) -> Path:
    """
    The directory itself, or what there is of the way to it, in which a start would create it.
    """
    path = directory.absolute()
    return next(each for each in (path, *path.parents) if each.exists())


def _lasting(subject: str, file_system: str) -> Iterator[Finding]:
    if file_system in FLEETING:
        yield advice(
            subject,
            f"it is {FLEETING[file_system]} ({file_system})",
            "use a disk or a volume, unless the data may be lost",
        )
    elif file_system in REMOTE:
        yield advice(
            subject,
            f"it is on another machine ({file_system}), which decides what a lock and an fsync are"
            " worth",
            "use a local disk",
        )


def _room(subject: str, free: int, config: BrokerConfig) -> Iterator[Finding]:
    fact = f"{rounded_size(free)} free"
    if free < LITTLE_BYTES:
        yield problem(
            subject,
            f"{fact}: a directory goes offline when its disk is full",
            "make room, or set log.retention.bytes for fewer",
        )
    elif free < config.log_segment_bytes:
        yield advice(
            subject,
            f"{fact}, less than a segment (log.segment.bytes): nothing is deleted before a segment"
            " is full",
            "make room, or lower log.segment.bytes",
        )
    else:
        yield ok(subject, fact)


def _speed(subject: str, seconds: float) -> Iterator[Finding]:
    fact = f"an fsync takes {seconds * 1000:.1f} ms"
    if seconds <= SLOW_S:
        yield ok(subject, fact)
    else:
        yield advice(
            subject,
            f"{fact}: so long waits each answer with flush.messages=1, and each start and stop for"
            " each log",
            "use a quicker disk, or leave the flushing to the system (the default)",
        )
