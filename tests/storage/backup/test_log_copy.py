"""
A log is copied whole, whatever is done to it meanwhile.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.storage.backup import log_copy
from barnabas.storage.backup.log_copy import BackupFailed, Copied, copy_log, versions
from barnabas.storage.state_files.file_names import log_file, offset_index_file
from barnabas.testing.manual_clock import ManualClock

BASES = (0, 10, 20)
During = Callable[[str, Callable[[], object]], None]


class Waiting(ManualClock):
    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(0)
        self.meanwhile = meanwhile

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.meanwhile()
        return False


class LogFiles:
    """
    The files of a log with three segments, and its copies.
    """

    def __init__(self, tmp_path: Path) -> None:
        self.source = tmp_path / "t-0"
        self.target = tmp_path / "copy"
        self.previous = tmp_path / "previous"
        self.source.mkdir()
        (self.source / "partition.metadata").write_text("version: 0")
        (self.source / f"{20:020}.snapshot").write_text("producers")
        for base in BASES:
            log_file(self.source, base).write_text(f"records {base}")
            offset_index_file(self.source, base).write_text(f"entries {base}")

    def replace(self, base: int, text: str) -> None:
        """
        As compaction does, without its ``.swap``.
        """
        other = self.source / "other"
        other.write_text(text)
        other.replace(log_file(self.source, base))

    def copy(
        self, meanwhile: Callable[[], object] = lambda: None, *, is_served: bool = True
    ) -> Copied | None:
        return copy_log(
            self.source,
            self.target,
            self.previous,
            versions(self.source),
            is_served=is_served,
            clock=Waiting(meanwhile),
        )

    @property
    def texts(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.target.iterdir()}


@pytest.fixture
def log(tmp_path: Path) -> LogFiles:
    return LogFiles(tmp_path)


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> During:
    """
    Does something once, before a file is copied.
    """
    actions: dict[str, Callable[[], object]] = {}
    copy = log_copy.copy_file

    def copy_file(source: Path, target: Path, previous: Path | None, size: int | None) -> Copied:
        actions.pop(source.name, lambda: None)()
        return copy(source, target, previous, size)

    monkeypatch.setattr(log_copy, "copy_file", copy_file)

    def register(name: str, action: Callable[[], object]) -> None:
        actions[name] = action

    return register


def test_log_copy_leaves_out_the_indexes_of_the_active_segment(log: LogFiles) -> None:
    (log.source / "leader-epoch-checkpoint.tmp").touch()
    (log.source / f"{0:020}.log.deleted").touch()

    copied = log.copy()

    assert copied is not None
    assert (1, 3, 0) == (copied.logs, copied.segments, copied.linked_bytes)
    assert copied.copied_bytes == sum(map(len, log.texts.values()))
    names = {path.name for path in log.source.iterdir()}
    left_out = {f"{20:020}.index", f"{0:020}.log.deleted", "leader-epoch-checkpoint.tmp"}
    assert left_out == names - log.texts.keys()
    assert "records 20" == log.texts[f"{20:020}.log"]


def test_log_copy_of_a_stopped_broker_includes_all_indexes(log: LogFiles) -> None:
    log.copy(is_served=False)

    assert "entries 20" == log.texts[f"{20:020}.index"]


def test_unchanged_segment_is_hard_linked_to_the_last_backup(log: LogFiles) -> None:
    log.copy()
    log.target.rename(log.previous)
    log_file(log.source, 20).write_text("records 20, and more")
    os.utime(log_file(log.source, 10), ns=(5, 5))

    copied = log.copy()

    shared = [path.name for path in log.target.iterdir() if path.samefile(log.previous / path.name)]
    assert [f"{0:020}.index", f"{0:020}.log", f"{10:020}.index"] == sorted(shared)
    assert copied is not None
    assert len("records 0entries 0entries 10") == copied.linked_bytes
    assert "records 20, and more" == log.texts[f"{20:020}.log"]


def test_records_appended_during_the_copy_are_left_out(log: LogFiles, during: During) -> None:
    def append() -> None:
        with log_file(log.source, 20).open("a") as file:
            file.write(" and more")
        log_file(log.source, 30).write_text("records 30")

    during(f"{0:020}.log", append)

    log.copy()

    assert "records 20" == log.texts[f"{20:020}.log"]
    assert f"{30:020}.log" not in log.texts


@pytest.mark.parametrize("at", [0, 10, 20])
def test_log_compacted_during_the_copy_is_copied_again(
    log: LogFiles, during: During, at: int
) -> None:
    """
    The copy starts over up to the same end offset, because compaction may move the records of the
    second segment into the first.
    """

    def compact() -> None:
        log.replace(0, "records 0 and 10")
        log_file(log.source, 10).unlink()
        offset_index_file(log.source, 10).unlink()
        with log_file(log.source, 20).open("a") as file:
            file.write(" and more")
        log_file(log.source, 30).write_text("records 30")

    during(f"{at:020}.log", compact)

    log.copy()

    texts = [text for name, text in sorted(log.texts.items()) if name.endswith(".log")]
    assert ["records 0 and 10", "records 20"] == texts


def test_log_copy_waits_until_a_swap_file_is_renamed(log: LogFiles) -> None:
    swap = log.source / f"{0:020}.log.swap"
    swap.write_text("compacted")

    log.copy(lambda: swap.replace(log_file(log.source, 0)))

    assert "compacted" == log.texts[f"{0:020}.log"]


@pytest.mark.parametrize("at", [0, 10, 20])
def test_segments_deleted_by_retention_during_the_copy_may_be_in_it_or_not(
    log: LogFiles, during: During, at: int
) -> None:
    def delete() -> None:
        for path in log.source.glob(f"{0:020}.*"):
            path.unlink()

    during(f"{at:020}.log", delete)

    log.copy()

    texts = [text for name, text in sorted(log.texts.items()) if name.endswith(".log")]
    assert texts[-2:] == ["records 10", "records 20"]


def test_producer_snapshots_may_be_deleted_during_the_copy(log: LogFiles, during: During) -> None:
    snapshot = log.source / f"{20:020}.snapshot"
    during(snapshot.name, snapshot.unlink)

    log.copy()

    assert snapshot.name not in log.texts


def test_metadata_snapshot_deleted_during_the_copy_restarts_it(
    log: LogFiles, during: During
) -> None:
    """
    The records that the snapshot replaced may be deleted too.
    """
    old, new = (log.source / f"{offset:020}-1.checkpoint" for offset in (0, 10))
    old.touch()

    def replace() -> None:
        old.unlink()
        new.touch()
        for path in log.source.glob(f"{0:020}.*"):
            path.unlink()

    during(f"{10:020}.log", replace)

    log.copy()

    assert new.name in log.texts
    assert old.name not in log.texts
    assert f"{0:020}.log" not in log.texts


def test_log_deleted_during_the_copy_is_left_out(log: LogFiles, during: During) -> None:
    during(f"{10:020}.log", lambda: log.source.rename(log.source.with_name("gone")))

    assert log.copy() is None
    assert not log.target.exists()


def test_copy_of_a_log_that_keeps_changing_fails_after_50_attempts(log: LogFiles) -> None:
    (log.source / f"{0:020}.log.swap").touch()

    with pytest.raises(BackupFailed, match="has changed 50 times"):
        log.copy()

    assert not log.target.exists()
