"""
The files that a dump reads, opened so that nothing can change in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.storage.dump.failure import KAFKA_EXCEPTION, NO_SUCH_FILE, DumpFailure
from barnabas.storage.dump.java_text import parse_long
from barnabas.storage.dump.log_slice import LogSlice
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.interface import Files


class DumpedFile:
    """
    A file that the user has named.

    Args:
        given: as the user wrote it, which is also how most of the output calls it.
    """

    __slots__ = ("absolute_path", "files", "name", "path")

    def __init__(self, given: str, files: Files) -> None:
        self.path = re.sub("/+", "/", given)
        if len(self.path) > 1:
            self.path = self.path.removesuffix("/")
        self.files = files
        self.name = self.path.rpartition("/")[2]
        self.absolute_path = str(Path.cwd()).rstrip("/") + "/" + self.path
        if self.path.startswith("/"):
            self.absolute_path = self.path

    @property
    def base_offset(self) -> int:
        """
        The number in front of the first dot of the name.

        Raises:
            DumpFailure: there is none.
        """
        return parse_long(self.name.partition(".")[0])

    def sibling(self, suffix: str) -> str:
        """
        The absolute path of the file of the same segment that has *suffix*.
        """
        directory = self.absolute_path.rpartition("/")[0]
        return f"{directory}/{self.name.partition('.')[0]}{suffix}"


@contextmanager
def open_log(files: Files, path: str) -> Iterator[LogSlice]:
    """
    Raises:
        DumpFailure: there is no such file, or it cannot be read.
    """
    try:
        file = files.open(Path(path), create=False, read_only=True)
    except FileNotFoundError as error:
        raise DumpFailure(NO_SUCH_FILE, path) from error
    except KafkaStorageError as error:
        raise unreadable(path, error) from error
    try:
        yield LogSlice(file, path)
    except KafkaStorageError as error:
        raise unreadable(path, error) from error
    finally:
        file.close()


def unreadable(path: str, error: KafkaStorageError) -> DumpFailure:
    """
    What to say of a file that is there but cannot be read.
    """
    cause = error.__cause__
    if isinstance(cause, PermissionError):
        return DumpFailure("java.nio.file.AccessDeniedException", path)
    reason = cause.strerror if isinstance(cause, OSError) else str(error)
    return DumpFailure(KAFKA_EXCEPTION, f"java.io.IOException: {reason}")
