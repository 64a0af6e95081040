from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.explain.known import ExplainError, FilesChanged
from barnabas.storage.explain.logs import ATTEMPTS, Condition, ReadOnlyLogs
from barnabas.storage.fs.interface import File
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.explaining import Explainer, look_at
from tests.support.logs import LogHome, log_of, offsets


class VanishingFiles(MemoryFiles):
    missing = 0

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> File:  # type: ignore[override]  # narrower than it has to be
        if self.missing and read_only and path.suffix == ".log":
            self.missing -= 1
            raise FileNotFoundError(2, "gone", str(path))
        return super().open(path, create=create, read_only=read_only)


def test_explain_retries_a_log_that_changes_and_gives_up_after_some_attempts() -> None:
    home, log = log_of(3, files=VanishingFiles())
    home.stop(log)
    files = home.files
    assert isinstance(files, VanishingFiles)
    explain = Explainer(Path("/data"), files=files)

    files.missing = 5
    found = explain.facts("t-0")
    files.missing = 10_000

    assert 3 == found["log_end_offset"]
    assert 0 < 10_000 - 3 * ATTEMPTS
    with pytest.raises(FilesChanged, match=r"The log in /data/t-0 cannot be read: Cannot open"):
        explain.facts("t-0")
    assert 10_000 - 3 * ATTEMPTS == files.missing


def test_torn_log_is_shown_as_the_next_start_recovers_it() -> None:
    home, _ = log_of(3)
    home.file(0, ".log").extend(b"\xff" * 100)

    looked_at = look_at(home).opened

    assert looked_at.was_recovered
    assert Condition.KILLED is looked_at.condition
    assert [0, 1, 2] == offsets(looked_at.log)
    assert 550 == len(home.file(0, ".log"))


@pytest.mark.parametrize(
    "name",
    [
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ],
)
def test_a_corrupt_checkpoint_counts_as_none(name: str) -> None:
    home, log = log_of(3)
    home.stop(log)
    home.files.write_atomically(Path("/data") / name, b"no checkpoint")

    looked_at = look_at(home).opened

    assert [0, 1, 2] == offsets(looked_at.log)
    assert 0 == looked_at.log.log_start_offset


def test_unreadable_log_is_reported() -> None:
    """
    A directory takes the place of a segment file.
    """
    home = LogHome()
    home.open()
    home.remove(0, ".log")
    home.files.make_directory(Path("/data/t-0/00000000000000000000.log"))

    with pytest.raises(ExplainError, match="cannot be read"):
        look_at(home)


def test_log_whose_files_go_while_they_are_listed_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, _ = log_of(3)

    def gone(*_: object) -> None:
        raise FileNotFoundError(2, "gone", "x")

    monkeypatch.setattr(ReadOnlyLogs, "_waiting_files", gone)

    with pytest.raises(FilesChanged, match="The log in /data/t-0 cannot be read"):
        look_at(home)
