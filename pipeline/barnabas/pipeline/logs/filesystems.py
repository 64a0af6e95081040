"""
File systems of log directories: the local disk, and everything that pyarrow or fsspec can read.

``storage.readonly`` reads from a ``Files``. ``RemoteFiles`` is one for URLs, over a file system of
pyarrow: its own are S3, GCS, Azure and HDFS, and it wraps those of fsspec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import UnsupportedOperation
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.storage import S3, StorageOptions
from barnabas.protocol.codec.primitives import Buffer
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import File, Files, Lock, MappedFile

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(::[^/]+)?:/")
"""A single letter is a drive of Windows; ``a::b`` is one file system of fsspec on another."""
_FILE: Final = "file"
_GOOGLE: Final = ("gs", "gcs")
_GOOGLE_LIMIT: Final = "retry_limit_seconds"
_GOOGLE_LIMIT_S: Final = 60
"""pyarrow would ask Google for 15 minutes before it says that there are no credentials."""
_ADVICE: Final = {"hdfs": " Install Java and Hadoop's client, and set JAVA_HOME and HADOOP_HOME."}


class Location(NamedTuple):
    """
    A path in some file system.
    """

    files: Files
    path: Path


def locate(url: str, storage: StorageOptions | None = None) -> Location:
    """
    A local path, or a URL that pyarrow or fsspec knows.

    Args:
        storage: as ``file_system_of`` takes it.

    Raises:
        InvalidOption: nothing that is installed can read this kind of URL, or its path has a part
            that a ``Path`` would leave out, and would then be another key.
    """
    match = _URL.match(url)
    if match is None or match[1].lower() == _FILE:
        return Location(DiskFiles(), local_path(url))
    file_system, path = file_system_of(url, storage)
    if path and str(Path(path)) != path.rstrip("/"):
        raise InvalidOption(
            f"{url} cannot be read: its path has an empty part, or one that is a dot."
        )
    return Location(RemoteFiles(file_system), Path(path))


def is_url(given: str) -> bool:
    """
    Whether it is one, be it of a file.
    """
    return _URL.match(given) is not None


def is_local(given: str | Path) -> bool:
    """
    Whether it is no URL, or one of a file.
    """
    match = _URL.match(str(given))
    return match is None or match[1].lower() == _FILE


def file_system_of(url: str, storage: StorageOptions | None = None) -> tuple[Any, str]:
    """
    The file system of pyarrow for the URL of an object store, and the path in it.

    Args:
        storage: how S3 and Azure are reached; as the environment says by default. Other stores are
            reached with the credentials that their own libraries find, and so is Azure if nothing
            is said of it.

    Raises:
        InvalidOption: nothing that is installed can read this kind of URL.
    """
    scheme = url.partition(":")[0].lower()
    if "://" not in url:
        # fsspec would take it for a local path.
        raise InvalidOption(f"{url} cannot be read: URLs begin like {scheme}://.")
    options = StorageOptions.of() if storage is None else storage
    if scheme in S3 and "?" not in url:
        return fs.S3FileSystem(**options.for_pyarrow()), _path_in(url)
    azure = options.azure_place(url)
    if azure is not None:
        return fs.AzureFileSystem(**options.for_pyarrow_azure(azure.account)), azure.path
    if scheme in _GOOGLE and _GOOGLE_LIMIT not in url:
        url += f"{'&' if '?' in url else '?'}{_GOOGLE_LIMIT}={_GOOGLE_LIMIT_S}"
    try:
        system, path = fs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _by_fsspec(url)
    except OSError as error:
        advice = _ADVICE.get(scheme, "")
        raise InvalidOption(
            f"{url} cannot be read: {str(error).splitlines()[0]}.{advice}"
        ) from error
    return system, path


def _path_in(url: str) -> str:
    return url.partition("://")[2].rstrip("/")


def local_path(given: str | Path) -> Path:
    """
    The path of a directory or file of this machine, which may be given as a ``file:`` URL.

    Raises:
        InvalidOption: *given* is a URL of another kind, or of another host.
    """
    text = str(given)
    match = _URL.match(text)
    if match is None:
        return Path(text)
    if match[1].lower() != _FILE:
        raise InvalidOption(f"{text} is a URL: name a local path, or a file: URL.")
    rest = text[len(_FILE) + 1 :]
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidOption(f"{text} names the host {host}: file:///path is a local path.")
        rest = f"/{path}"
    return Path(unquote(rest))


def _by_fsspec(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415  # only some need it, and not all have it

        file_system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InvalidOption(
            f"{url} cannot be read: pyarrow does not know this kind of URL, and fsspec says:"
            f" {error}."
        ) from error
    return fs.PyFileSystem(fs.FSSpecHandler(file_system)), path


@contextmanager
def _os_errors() -> Iterator[None]:
    """
    Turns what pyarrow raises for errors without a class, such as a refusal of Azure's credentials,
    into an ``OSError``, as which it raises all others.
    """
    try:
        yield
    except pa.ArrowException as error:
        if isinstance(error, OSError):
            raise
        raise OSError(str(error).splitlines()[0]) from error


class RemoteFile(File):
    """
    A file that is read through pyarrow.
    """

    def __init__(self, path: Path, stream: Any) -> None:
        self.path = path
        self._stream = stream

    def read(self, position: int, size: int, *, nowait: bool = False) -> bytes:
        with _os_errors():
            available = max(0, self._stream.size() - position)
            data: bytes = self._stream.read_at(min(size, available), position)
        return data

    def size(self) -> int:
        size: int = self._stream.size()
        return size

    def close(self) -> None:
        self._stream.close()

    def append(self, data: Buffer) -> NoReturn:
        raise _read_only(self.path)

    def write_at(self, position: int, data: Buffer) -> NoReturn:
        raise _read_only(self.path)

    def truncate(self, size: int) -> NoReturn:
        raise _read_only(self.path)

    def sync(self) -> NoReturn:
        raise _read_only(self.path)


class RemoteFiles(Files):
    """
    A file system of pyarrow, for reading only.

    Sizes and times of files are those of the last listing of their directory, or a plan would ask
    an object store twice for each segment.
    """

    def __init__(self, file_system: Any) -> None:
        self._system = file_system
        self._listed: dict[str, dict[str, Any]] = {}

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> File:
        if not read_only:
            raise _read_only(path)
        with _os_errors():
            return RemoteFile(path, self._system.open_input_file(str(path)))

    def exists(self, path: Path) -> bool:
        return bool(self._info(path).type != fs.FileType.NotFound)

    def is_directory(self, path: Path) -> bool:
        return bool(self._info(path).type == fs.FileType.Directory)

    def names(self, directory: Path) -> list[str]:
        return sorted(info.base_name for info in self._infos(directory))

    def directory_names(self, directory: Path) -> list[str]:
        found = self._infos(directory)
        return sorted(info.base_name for info in found if info.type == fs.FileType.Directory)

    def read_bytes(self, path: Path) -> bytes:
        with _os_errors(), self._system.open_input_file(str(path)) as stream:
            data: bytes = stream.read()
        return data

    def size(self, path: Path) -> int:
        size: int = self._existing(path).size
        return size

    def modified_ms(self, path: Path) -> int:
        ns = self._existing(path).mtime_ns
        return 0 if ns is None else int(ns) // 1_000_000

    def is_locked(self, path: Path) -> bool:
        return False

    def _info(self, path: Path) -> Any:
        listed = self._listed.get(str(path.parent), {}).get(path.name)
        if listed is not None:
            return listed
        with _os_errors():
            return self._system.get_file_info(str(path))

    def _infos(self, directory: Path) -> list[Any]:
        try:
            with _os_errors():
                found: list[Any] = self._system.get_file_info(fs.FileSelector(str(directory)))
        except OSError as error:
            if "NO_SUCH_BUCKET" in str(error):
                raise FileNotFoundError(str(directory)) from error
            raise
        self._listed[str(directory)] = {info.base_name: info for info in found}
        return found

    def _existing(self, path: Path) -> Any:
        info = self._info(path)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(str(path))
        return info

    def map(self, path: Path, size: int | None, *, read_only: bool = False) -> MappedFile:
        raise _read_only(path)

    def make_directory(self, path: Path) -> NoReturn:
        raise _read_only(path)

    def rename(self, source: Path, target: Path) -> NoReturn:
        raise _read_only(source)

    def remove(self, path: Path) -> NoReturn:
        raise _read_only(path)

    def remove_tree(self, path: Path) -> NoReturn:
        raise _read_only(path)

    def sync_directory(self, path: Path) -> NoReturn:
        raise _read_only(path)

    def set_modified_ms(self, path: Path, ms: int) -> NoReturn:
        raise _read_only(path)

    def lock(self, path: Path) -> Lock | None:
        raise _read_only(path)

    def usable_bytes(self, path: Path) -> NoReturn:
        raise _read_only(path)

    def total_bytes(self, path: Path) -> NoReturn:
        raise _read_only(path)


def _read_only(path: Path) -> UnsupportedOperation:
    return UnsupportedOperation(f"{path} is only read")
