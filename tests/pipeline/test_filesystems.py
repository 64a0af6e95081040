from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.logs.filesystems import RemoteFiles, file_system_of, local_path, locate
from barnabas.pipeline.reading.plan import plan
from barnabas.pipeline.rows import parse_options, read, schema
from barnabas.pipeline.storage import StorageOptions
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.logs import end_transaction
from tests.support.scanned import plain_rows, scanned_rows

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    directory = WrittenDirectory(tmp_path)
    log = directory.log(segment_bytes=1000, index_interval_bytes=100)
    for start in range(0, 60, 5):
        append(log, some_records(5, start=start))
    batch = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append(log, some_records(5), **batch)
    end_transaction(log, 1, commit=False)
    directory.stop()
    return directory


@pytest.fixture
def bucket(written: WrittenDirectory) -> Any:
    memory = fsspec.filesystem("memory")
    memory.put(str(written.path), "/bucket", recursive=True)
    yield memory
    memory.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"isolationLevel": "read_committed"},
        {"level": "batches"},
        {"startingOffsets": '{"events": {"0": 33}}', "maxPartitionBytes": "200"},
        {"startingTimestamp": "1"},
    ],
)
def test_any_fsspec_file_system_can_be_read(
    written: WrittenDirectory, bucket: Any, options: dict[str, str]
) -> None:
    local = scanned_rows(written.path, **options)

    assert local
    assert local == scanned_rows("memory://bucket", **options)
    assert local == scanned_rows("memory://bucket/events-0", **options)


@pytest.mark.parametrize("prefix", ["file://", "file:", "file://localhost", "FILE://"])
def test_file_url_is_decoded_to_a_path(
    written: WrittenDirectory, tmp_path: Path, prefix: str
) -> None:
    with_space = tmp_path / "a b"
    with_space.mkdir()
    (with_space / "events-0").symlink_to(written.path / "events-0")

    assert scanned_rows(written.path) == scanned_rows(f"{prefix}{written.path}")
    quoted = f"{prefix}{str(with_space).replace(' ', '%20')}"
    assert scanned_rows(with_space, readUpTo="logEnd") == scanned_rows(quoted, readUpTo="logEnd")
    assert with_space == local_path(with_space.as_uri())


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nosuch://bucket/logs", "nosuch://bucket/logs cannot be read: pyarrow does not know"),
        ("nosuch:/bucket/logs", "nosuch:/bucket/logs cannot be read"),
        ("file://elsewhere/logs", "file://elsewhere/logs names the host elsewhere"),
        ("nosuch::memory://logs", "nosuch::memory://logs cannot be read"),
    ],
)
def test_unsupported_url_is_refused_and_never_a_local_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / url).mkdir(parents=True)

    with pytest.raises(InvalidOption, match=sentence):
        scanned_rows(url)


@pytest.mark.parametrize("url", ["s3://bucket/a", Path("s3://bucket/a"), "nosuch::file:///a"])
def test_url_is_refused_where_a_local_path_is_required(url: str | Path) -> None:
    """
    A ``Path`` made of a URL has lost a slash and is still recognised.
    """
    with pytest.raises(InvalidOption, match=f"{url} is a URL"):
        local_path(url)


def test_url_without_fsspec_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)

    with pytest.raises(InvalidOption, match=r"memory://logs cannot be read: .*fsspec"):
        scanned_rows("memory://logs")


@pytest.mark.parametrize("path", ["a:b", "a/b://c", "c:/logs", "s3", "./s3://bucket", "-x://y"])
def test_path_with_a_colon_is_not_a_url(path: str) -> None:
    assert Path(path) == local_path(path) == locate(path).path


def test_missing_directory_or_segment_is_named(bucket: Any) -> None:
    with pytest.raises(FileNotFoundError, match="There is no directory memory://nowhere"):
        scanned_rows("memory://nowhere")
    options = parse_options({"path": "memory://bucket", "failOnDataLoss": "false"})
    works = plan(options)
    for name in bucket.glob("/bucket/events-0/00000000000000000000.*"):
        bucket.rm(name)
    rows = [row for work in works for row in plain_rows(read(work, schema(options).names, options))]
    assert list(range(20, 65)) == [row[4] for row in rows]


def test_file_system_wrapper_refuses_writes(bucket: Any) -> None:
    files, path = locate("memory://bucket")

    with pytest.raises(OSError, match="is only read"):
        files.open(path / "new")
    with pytest.raises(OSError, match="is only read"):
        files.remove(path / "meta.properties")


class _Refusing:
    """
    A pyarrow file system whose store raises an error without a class of its own.
    """

    def _refuse(self, _: object) -> NoReturn:
        raise pa.ArrowException("no token for DefaultAzureCredential\nSee the logger")

    get_file_info = open_input_file = _refuse


@pytest.mark.parametrize(
    "look",
    [
        lambda files: files.names(Path("logs")),
        lambda files: files.exists(Path("logs")),
        lambda files: files.read_bytes(Path("logs/a")),
        lambda files: files.open(Path("logs/a"), read_only=True),
    ],
    ids=["list", "exists", "read", "open"],
)
def test_arrow_error_without_a_class_is_an_os_error(
    look: Callable[[RemoteFiles], object],
) -> None:
    """
    Commands print an ``OSError`` as a sentence, without a traceback.
    """
    with pytest.raises(OSError, match=r"^no token for DefaultAzureCredential$"):
        look(RemoteFiles(_Refusing()))


@pytest.mark.parametrize(
    ("url", "seconds"),
    [
        ("gs://bucket/logs", 60),
        ("gs://bucket/logs?scheme=https", 60),
        ("gs://bucket/logs?retry_limit_seconds=5", 5),
    ],
)
def test_google_credentials_are_not_searched_for_15_minutes(url: str, seconds: int) -> None:
    system, path = file_system_of(url)

    assert "bucket/logs" == path
    assert timedelta(seconds=seconds) == system.__reduce__()[1][0]["retry_time_limit"]


@pytest.mark.parametrize("path", ["logs//a", "logs/./a", "logs/a/."])
def test_path_that_would_become_another_key_is_refused(path: str) -> None:
    """
    Keys of an object store are names, and not paths that can be shortened.
    """
    with pytest.raises(InvalidOption, match="its path has an empty part"):
        locate(f"s3://bucket/{path}", StorageOptions(region="eu-central-1"))
