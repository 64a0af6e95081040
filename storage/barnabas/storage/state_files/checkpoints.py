"""
Checkpoints: small text files that a start reads (Kafka's CheckpointFile).

::

    0                 version
    2                 number of entries
    orders 0 42       an entry on each line; nothing behind the last line
    orders 1 0

An empty file, or one of a version line alone, has no entries. Any other content is an error, and
none of it is used. Files are replaced in one step: a crash leaves the old one or the new one.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import CorruptCheckpoint, KafkaStorageError, LaterCheckpoint
from barnabas.storage.fs.interface import Files
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

Entry = TypeVar("Entry")

CHECKPOINT_VERSION: Final = 0
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_BLANKS: Final = re.compile(r"\s+")


class EpochEntry(NamedTuple):
    """
    A leader epoch, and the first offset that was written in it.
    """

    epoch: int
    start_offset: int


def format_checkpoint(lines: Collection[str]) -> bytes:
    """
    A file with *lines* as its entries.
    """
    return "".join(f"{line}\n" for line in (CHECKPOINT_VERSION, len(lines), *lines)).encode()


def parse_checkpoint(
    data: bytes, path: Path, parse: Callable[[Sequence[str]], Entry]
) -> list[Entry]:
    """
    The entries of a file.

    Args:
        path: the name of the file in errors.
        parse: makes an entry from the words of a line.

    Raises:
        LaterCheckpoint: the file is of a later version.
        CorruptCheckpoint: it is malformed.
    """
    try:
        lines = re.split(r"\r\n|\r|\n", data.decode())
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"Checkpoint file {path} is not UTF-8", path=path) from error
    if not lines[-1]:
        del lines[-1]
    if not lines:
        return []
    version = _header(lines[0], path)
    if version != CHECKPOINT_VERSION:
        kind = LaterCheckpoint if version > CHECKPOINT_VERSION else CorruptCheckpoint
        raise kind(
            f"Unrecognised version:{version}, expected version: {CHECKPOINT_VERSION} in checkpoint "
            f"file at: {path}",
            path=path,
        )
    if len(lines) == 1:
        return []
    expected = _header(lines[1], path)
    entries = []
    for line in lines[2:]:
        try:
            entries.append(parse(_BLANKS.split(line.rstrip())))
        except ValueError as error:
            raise _malformed(line, path) from error
    if len(entries) != expected:
        raise CorruptCheckpoint(
            f"Expected [{expected}] entries in checkpoint file [{path}], but found only "
            f"[{len(entries)}]",
            path=path,
        )
    return entries


def _header(line: str, path: Path) -> int:
    try:
        return _integer(line)
    except ValueError as error:
        raise _malformed(line, path) from error


def _malformed(line: str, path: Path) -> CorruptCheckpoint:
    return CorruptCheckpoint(f"Malformed line in checkpoint file [{path}]: {line}", path=path)


def _integer(text: str) -> int:
    # int() alone would also take blanks, underscores and the digits of other scripts.
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return int(text)


def parse_offset_entry(words: Sequence[str]) -> tuple[TopicPartition, int]:
    """
    Raises:
        ValueError: the words are not a topic, a partition and an offset.
    """
    topic, partition, offset = words
    return TopicPartition(topic, _integer(partition)), _integer(offset)


def parse_epoch_entry(words: Sequence[str]) -> EpochEntry:
    """
    Raises:
        ValueError: the words are not an epoch and an offset.
    """
    epoch, start_offset = words
    return EpochEntry(_integer(epoch), _integer(start_offset))


class OffsetCheckpointFile:
    """
    An offset for each partition: recovery points, log start offsets, high watermarks.

    Safe from any thread.
    """

    __slots__ = ("_files", "_writing", "path")

    def __init__(self, files: Files, path: Path) -> None:
        """
        Open the file, which is created empty if it is missing.
        """
        self.path = path
        self._files = files
        # Threads share one temporary file.
        self._writing = threading.Lock()
        if not files.exists(path):
            files.open(path).close()

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """
        Replace the entries of the file by *offsets*; they survive a crash.
        """
        data = format_checkpoint(
            [f"{name.topic} {name.partition} {offset}" for name, offset in offsets.items()]
        )
        with self._writing:
            self._files.write_atomically(self.path, data)

    def read(self) -> dict[TopicPartition, int]:
        """
        Raises:
            CorruptCheckpoint: the file is malformed.
            KafkaStorageError: it cannot be read, or is gone.
        """
        try:
            data = self._files.read_bytes(self.path)
        except FileNotFoundError as error:
            raise KafkaStorageError(f"Checkpoint file {self.path} is gone") from error
        return dict(parse_checkpoint(data, self.path, parse_offset_entry))


class LeaderEpochCheckpointFile:
    """
    The leader epochs of one log, in its own directory.

    One thread at a time may write: there is one temporary file.
    """

    __slots__ = ("_directory", "_files")

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._directory = directory

    @property
    def path(self) -> Path:
        return self._directory / LEADER_EPOCH_CHECKPOINT

    def update_parent_dir(self, directory: Path) -> None:
        """
        Follow the directory of the log, which was renamed.
        """
        self._directory = directory

    def write(self, entries: Collection[EpochEntry]) -> None:
        lines = [f"{entry.epoch} {entry.start_offset}" for entry in entries]
        self._files.write_atomically(self.path, format_checkpoint(lines))

    def write_if_dir_exists(self, entries: Collection[EpochEntry]) -> None:
        """
        Write, unless the log was renamed to be deleted in the meantime.
        """
        try:
            self.write(entries)
        except KafkaStorageError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            logger.warning("%s was not written, its directory is gone", self.path)

    def create(self) -> Sequence[EpochEntry]:
        """
        Create an empty file; return its entries, of which there are none.
        """
        self._files.open(self.path).close()
        return ()

    def read(self) -> Sequence[EpochEntry]:
        """
        Read the file, which is created empty if it is missing.

        Raises:
            CorruptCheckpoint: the file is malformed.
            KafkaStorageError: it cannot be read.
        """
        path = self.path
        try:
            data = self._files.read_bytes(path)
        except FileNotFoundError:
            return self.create()
        known = _known_epochs.get(data)
        if known is None:
            known = parse_checkpoint(data, path, parse_epoch_entry)
            # Most logs of a broker have begun with one of a few epochs, at the same offset.
            if len(_known_epochs) >= _MOST_KNOWN:
                _known_epochs.clear()
            _known_epochs[data] = known
        return known


_MOST_KNOWN: Final = 100
"""Not tuned: most logs have one of a few contents."""
_known_epochs: Final[dict[bytes, Sequence[EpochEntry]]] = {}


class CleanShutdownFile:
    """
    The mark in a log directory that all its logs were flushed and closed.

    One line of JSON, ``{"version":0,"brokerEpoch":205}``. Older brokers wrote an empty file, which
    means the same without an epoch (Kafka's CleanShutdownFileHandler, KIP-966).
    """

    __slots__ = ("_files", "path")

    def __init__(self, files: Files, log_dir: Path) -> None:
        self._files = files
        self.path = log_dir / CLEAN_SHUTDOWN_FILE

    def exists(self) -> bool:
        return self._files.exists(self.path)

    def read(self) -> int | None:
        """
        The epoch of the broker that stopped, if the file exists and has it.
        """
        try:
            content = json.loads(self._files.read_bytes(self.path))
        except (FileNotFoundError, KafkaStorageError, ValueError):
            return None
        epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
        return epoch if type(epoch) is int else None

    def write(self, broker_epoch: int) -> None:
        """
        Args:
            broker_epoch: -1 if it is not known.
        """
        content = {"version": CHECKPOINT_VERSION, "brokerEpoch": broker_epoch}
        self._files.write_atomically(self.path, json.dumps(content, separators=(",", ":")).encode())

    def delete(self) -> None:
        """
        Remove the mark of a clean stop; it stays removed if the machine crashes right after.
        """
        if self._files.remove(self.path):
            self._files.sync_directory(self.path.parent)
