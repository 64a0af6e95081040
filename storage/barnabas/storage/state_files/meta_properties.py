"""
``meta.properties``: the cluster, the node and the id of a log directory.

::

    #
    #Sat Nov 21 05:32:39 UTC 2026
    node.id=1
    directory.id=Fw1kXoKQTLyqNqcrYFhS8A
    version=1
    cluster.id=4L6g3nShT-eMCtK--X86sw

All directories of a node have the same cluster and node, and each an id of its own, by which the
metadata knows it whatever its path (KIP-858). Version 0 is from the time of ZooKeeper: it has a
``broker.id``, and nothing in it is required.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

from barnabas.protocol.structs import replace, struct
from barnabas.storage.clock import gmtime, strftime
from barnabas.storage.errors import (
    CorruptCheckpoint,
    InvalidLogDirectory,
    KafkaStorageError,
    LaterCheckpoint,
)
from barnabas.storage.fs.interface import Files
from barnabas.storage.properties import format_properties, read_properties
from barnabas.storage.uuids import parse_uuid, random_uuid, uuid_text

META_PROPERTIES: Final = "meta.properties"
CURRENT_VERSION: Final = 1
RESERVED_DIRECTORY_IDS: Final = 100
"""So many of the first UUIDs have a meaning of their own: MIGRATING, UNASSIGNED, LOST, ..."""


@struct(kw_only=True)
class MetaProperties:
    """
    The content of the file of one log directory.
    """

    version: int = CURRENT_VERSION
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: UUID | None = None


def is_reserved(directory_id: UUID) -> bool:
    """
    Whether the id is no directory's (Kafka's DirectoryId).
    """
    most, least = directory_id.int >> 64, directory_id.int & (1 << 64) - 1
    # Kafka compares the lower half as a signed number.
    return most == 0 and (least < RESERVED_DIRECTORY_IDS or least >= 1 << 63)


def random_directory_id() -> UUID:
    """
    A new id for a directory.
    """
    while is_reserved(candidate := random_uuid()):
        pass
    return candidate


def parse_meta_properties(data: bytes, path: Path) -> MetaProperties:
    """
    Raises:
        LaterCheckpoint: the file of that *path* is of a later version.
        CorruptCheckpoint: it lacks something, or has a value of no sense.
    """
    try:
        properties = read_properties(data.decode("latin-1"))
        return _parse(properties, _version(properties.get("version", "0"), path))
    except ValueError as error:
        raise CorruptCheckpoint(f"{path}: {error}", path=path) from error


def _parse(properties: Mapping[str, str], version: int) -> MetaProperties:
    directory_id = properties.get("directory.id")
    meta = MetaProperties(
        version=version,
        cluster_id=properties.get("cluster.id"),
        node_id=_integer(properties, "broker.id" if version == 0 else "node.id"),
        directory_id=None if directory_id is None else parse_uuid(directory_id),
    )
    if version > 0 and meta.cluster_id is None:
        raise ValueError("cluster.id was not found.")
    if version > 0 and meta.node_id is None:
        raise ValueError("Failed to find node.id")
    return meta


def _version(text: str, path: Path) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text.strip()):
        raise ValueError(f"Invalid meta.properties version string '{text}'")
    version = int(text)
    if version > CURRENT_VERSION:
        raise LaterCheckpoint(
            f"{path}: Unknown meta.properties version number {version}", path=path
        )
    if version < 0:
        raise ValueError(f"Unknown meta.properties version number {version}")
    return version


def _integer(properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f"Unable to read {name} as a base-10 number.")
    return int(text)


def format_meta_properties(meta: MetaProperties, now_ms: int) -> bytes:
    """
    The file, as Java's Properties write it at that time.
    """
    date = strftime("%a %b %d %H:%M:%S UTC %Y", gmtime(now_ms // 1000))
    properties = {
        "broker.id" if meta.version == 0 else "node.id": _text(meta.node_id),
        "directory.id": None if meta.directory_id is None else uuid_text(meta.directory_id),
        "version": str(meta.version),
        "cluster.id": meta.cluster_id,
    }
    known = {name: value for name, value in properties.items() if value is not None}
    return format_properties(known, ("", date)).encode("latin-1")


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def read_meta_properties(files: Files, path: Path) -> MetaProperties:
    """
    Raises:
        FileNotFoundError: there is no such file.
        CorruptCheckpoint: see ``parse_meta_properties``.
    """
    return parse_meta_properties(files.read_bytes(path), path)


def write_meta_properties(files: Files, path: Path, meta: MetaProperties, now_ms: int) -> None:
    """
    Put *meta* in the place of the file.
    """
    files.write_atomically(path, format_meta_properties(meta, now_ms))


class MetaPropertiesEnsemble:
    """
    The files of all log directories of a node.

    Invariants:

    1. A directory is in one of three places: ``properties``, ``empty`` (it has no file), ``failed``
       (its file could not be read).
    """

    def __init__(self, files: Files, log_dirs: Iterable[Path]) -> None:
        """
        Read the file of each directory that has one.
        """
        self._files = files
        self.properties: dict[Path, MetaProperties] = {}
        self.empty: list[Path] = []
        self.failed: dict[Path, KafkaStorageError] = {}
        for log_dir in log_dirs:
            try:
                self.properties[log_dir] = read_meta_properties(files, log_dir / META_PROPERTIES)
            except FileNotFoundError:
                self.empty.append(log_dir)
            except KafkaStorageError as error:
                self.failed[log_dir] = error

    @property
    def cluster_id(self) -> str | None:
        """
        The cluster that the directories belong to, if one of them says it.
        """
        ids = (meta.cluster_id for meta in self.properties.values())
        return next((cluster_id for cluster_id in ids if cluster_id is not None), None)

    @property
    def node_id(self) -> int | None:
        """
        The node that the directories belong to, if one of them says it.
        """
        ids = (meta.node_id for meta in self.properties.values())
        return next((node_id for node_id in ids if node_id is not None), None)

    def verify(self, cluster_id: str | None, node_id: int | None) -> None:
        """
        Check that the directories belong together, and to this cluster and node if given.

        Raises:
            InvalidLogDirectory: one does not.
        """
        directories: dict[UUID, Path] = {}
        for log_dir, meta in self.properties.items():
            path = log_dir / META_PROPERTIES
            cluster_id = meta.cluster_id if cluster_id is None else cluster_id
            if meta.cluster_id not in (None, cluster_id):
                raise InvalidLogDirectory(
                    f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read "
                    f"{meta.cluster_id}",
                    path=log_dir,
                )
            node_id = meta.node_id if node_id is None else node_id
            if meta.node_id not in (None, node_id):
                raise InvalidLogDirectory(
                    f"Stored node id {meta.node_id} doesn't match previous node id {node_id} in "
                    f"{path}. If you moved your data, make sure your configured node id matches. "
                    "If you intend to create a new node, you should remove all data in your data "
                    "directories.",
                    path=log_dir,
                )
            if meta.directory_id is not None:
                _check_directory_id(meta.directory_id, log_dir, directories)

    def complete(self, cluster_id: str, node_id: int, now_ms: int) -> None:
        """
        Write the files of directories that have none, or whose file lacks the directory's id.

        A file of version 0 becomes one of version 1. Directories in ``failed`` are left alone.
        """
        for log_dir in [*self.empty, *self.properties]:
            old = self.properties.get(log_dir, MetaProperties())
            new = replace(old, version=1, cluster_id=cluster_id, node_id=node_id)
            if new.directory_id is None:
                new = replace(new, directory_id=random_directory_id())
            if new != self.properties.get(log_dir):
                write_meta_properties(self._files, log_dir / META_PROPERTIES, new, now_ms)
                self.properties[log_dir] = new
        self.empty.clear()


def _check_directory_id(directory_id: UUID, log_dir: Path, seen: dict[UUID, Path]) -> None:
    if is_reserved(directory_id):
        raise InvalidLogDirectory(
            f"Invalid reserved directory ID {uuid_text(directory_id)} found in {log_dir}",
            path=log_dir,
        )
    other = seen.setdefault(directory_id, log_dir)
    if other != log_dir:
        raise InvalidLogDirectory(
            f"Duplicate directory ID {uuid_text(directory_id)} found. It was the ID of {other}, "
            f"but also of {log_dir}",
            path=log_dir,
        )
