from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.server.cli import main
from barnabas.storage.backup import backups
from barnabas.storage.backup.backups import PARTIAL, back_up, complete, order
from barnabas.storage.backup.log_copy import BackupFailed, versions
from barnabas.storage.fs.disk_lock import DiskLock
from barnabas.storage.state_files.file_names import log_file
from barnabas.testing.manual_clock import ManualClock

NOW_MS = 1_795_680_000_000
NAME = "2026-11-26T08-00-00Z"


def log_directory(path: Path, *logs: str) -> Path:
    path.mkdir(parents=True)
    (path / "meta.properties").write_text("version=1")
    (path / "recovery-point-offset-checkpoint").touch()
    for name in logs:
        log = path / name
        log.mkdir()
        for base in (0, 10):
            log_file(log, base).write_text(f"{name} {base}")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return log_directory(tmp_path / "data", "t-0", "t-1")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


def names(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_backup_copies_the_whole_log_directory_except_process_files_and_deleted_logs(
    data: Path, tmp_path: Path, clock: ManualClock
) -> None:
    for name in (".lock", "t-1/x.tmp", "recovery-point-offset-checkpoint.tmp"):
        (data / name).touch()
    log_directory(data / "t-3.0123456789abcdef0123456789abcdef-delete")
    (data / "lost+found").mkdir()
    (data / ".kafka_cleanshutdown").write_text("{}")

    backup = back_up([data], tmp_path / "to", clock)

    assert (tmp_path / "to" / NAME, None) == (backup.path, backup.previous)
    assert names(backup.path / "data") == {
        ".kafka_cleanshutdown",
        "meta.properties",
        "recovery-point-offset-checkpoint",
        *(f"t-{log}/{base:020}.log" for log in (0, 1) for base in (0, 10)),
    }
    assert "t-1 10" == log_file(backup.path / "data" / "t-1", 10).read_text()


@pytest.mark.parametrize("mask", [0o077, 0o027, 0o022, 0o000])
def test_backup_grants_nobody_more_than_the_log_directories(
    data: Path, tmp_path: Path, clock: ManualClock, mask: int
) -> None:
    other = log_directory(tmp_path / "other", "t-2")
    for path in (data, *data.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)

    backup = back_up([data, other], tmp_path / "to", clock)

    for path in (data, *data.rglob("*")):
        copy = backup.path / "data" / path.relative_to(data)
        assert f"{path.stat().st_mode:o}" == f"{copy.stat().st_mode:o}", copy
    both = data.stat().st_mode & other.stat().st_mode
    assert f"{both:o}" == f"{backup.path.stat().st_mode:o}"


def test_backup_of_a_running_broker_has_no_clean_shutdown_file(
    data: Path, tmp_path: Path, clock: ManualClock
) -> None:
    (data / ".kafka_cleanshutdown").touch()
    lock = DiskLock.acquire(data / ".lock")
    assert lock is not None
    try:
        backup = back_up([data], tmp_path / "to", clock)
    finally:
        lock.release()

    assert ".kafka_cleanshutdown" not in names(backup.path / "data")


def test_backup_gives_log_directories_of_the_same_name_distinct_names(
    tmp_path: Path, clock: ManualClock
) -> None:
    directories = [log_directory(tmp_path / disk / "kafka", f"{disk}-0") for disk in "ab"]

    backup = back_up(directories, tmp_path / "to", clock)

    assert {"kafka", "kafka-2"} == {path.name for path in backup.path.iterdir()}
    assert (backup.path / "kafka-2" / "b-0").is_dir()


def test_backup_reads_offsets_and_transaction_logs_first_and_the_metadata_log_last(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = log_directory(tmp_path / "1", "__cluster_metadata-0", "a-0")
    second = log_directory(tmp_path / "2", "z-0", "__transaction_state-3", "__consumer_offsets-0")
    seen: list[str] = []

    def noting(directory: Path) -> object:
        seen.append(directory.name)
        return versions(directory)

    monkeypatch.setattr(backups, "versions", noting)

    back_up([first, second], tmp_path / "to", clock)

    assert ["1", "2"] == seen[:2]  # the checkpoints
    assert [0, 0, 1, 1, 2] == [order(name.rpartition("-")[0]) for name in seen[2:]]


def test_second_backup_hard_links_unchanged_files_also_after_the_first_is_removed(
    data: Path, tmp_path: Path, clock: ManualClock
) -> None:
    target = tmp_path / "to"
    first = back_up([data], target, clock)
    second = back_up([data], target, clock)
    third = back_up([data], target, clock)

    assert [first.path, second.path, third.path] == complete(target)
    assert second.path == third.previous
    assert f"{NAME}-002" == second.path.name
    places = [log_file(each.path / "data" / "t-0", 0) for each in (first, second, third)]
    assert 1 == len({place.stat().st_ino for place in places})
    assert second.copied.linked_bytes == len("t-0 0t-1 0")


def test_failed_backup_leaves_no_files(
    data: Path, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "to"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backups, "copy_log", full)
    with pytest.raises(OSError, match="No space"):
        back_up([data], target, clock)

    assert {target / ".lock"} == {*target.iterdir()}


def test_leftovers_of_an_interrupted_backup_are_removed(
    data: Path, tmp_path: Path, clock: ManualClock
) -> None:
    left = tmp_path / "to" / PARTIAL / "data"
    left.mkdir(parents=True)
    (left / "file").touch()

    backup = back_up([data], tmp_path / "to", clock)

    assert "file" not in names(backup.path / "data")


def test_only_one_backup_runs_at_a_time(data: Path, tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "to").mkdir()
    lock = DiskLock.acquire(tmp_path / "to" / ".lock")
    assert lock is not None
    try:
        with pytest.raises(BackupFailed, match="another backup"):
            back_up([data], tmp_path / "to", clock)
    finally:
        lock.release()


def test_backup_command_keeps_the_configured_number_of_backups(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "to")
    for _ in range(4):
        assert 0 == main(["backup", str(data), "--to", target, "--keep", "2"])

    said = capsys.readouterr().out.splitlines()
    assert 2 == len(complete(Path(target)))
    assert ": 2 logs with 4 segments, 31 bytes copied" in said[0]
    assert "10 bytes shared with" in said[-2]
    assert said[-1].endswith("removed")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["{tmp}", "--to", "{tmp}/to"], "is no log directory: it has no meta.properties"),
        (["{tmp}/none", "--to", "{tmp}/to"], "is no log directory"),
        (["{tmp}/data", "--to", "{tmp}/data/to"], "lies in the log directory"),
        (["{tmp}/data", "--to", "{tmp}/data/meta.properties"], "lies in the log directory"),
        (["{tmp}/data", "--to", "{tmp}/file"], "File exists"),
    ],
)
def test_backup_command_reports_a_failure_in_one_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], error: str
) -> None:
    (tmp_path / "file").touch()

    assert 1 == main(["backup", *(each.format(tmp=tmp_path) for each in arguments)])

    (said,) = capsys.readouterr().err.splitlines()
    assert error in said


@pytest.mark.parametrize(
    "arguments", [["s3://bucket/data", "--to", "to"], ["data", "--to", "s3://b"]]
)
def test_backup_target_url_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["backup", *arguments])

    assert "is a URL; name a path of this machine" in capsys.readouterr().err
