from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pyspark.sql import SparkSession

from barnabas.pipeline import report as make
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.output import InUse, locked
from barnabas.pipeline.jobs.report.facts import Report
from barnabas.pipeline.jobs.report.figures import SCHEMA, Figures
from barnabas.pipeline.jobs.report.frames import history_frame
from barnabas.pipeline.jobs.report.history import History, HistoryError
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.fs.disk import DiskFiles
from tests.pipeline.report.conftest import CHECK_MS, HOUR, NOW, RETENTION_MS
from tests.support.clock import StillClock
from tests.support.log_directory import WrittenDirectory, append
from tests.support.segments import FIRST_TIMESTAMP

pytestmark = [pytest.mark.spark, pytest.mark.prove]

DAY = 24 * HOUR
SETTINGS = "log.retention.ms=172800000\n"
"""
Of the broker: two days.
"""


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history")


def test_history_figures_equal_those_of_the_report(report: Report, history: History) -> None:
    """
    The first segment of ``times-0`` is due after hour 9, and the second one with it.
    """
    history.add(report)

    (snapshot,) = history.snapshots()
    assert NOW == snapshot.at_ms
    assert [Figures.of(facts) for facts in report.partitions] == list(snapshot.partitions)
    times = next(each for each in snapshot.partitions if str(each.partition) == "times-0")
    assert (3, 7, FIRST_TIMESTAMP) == (times.segments, times.records, times.first_ms)
    assert (RETENTION_MS, 8 * HOUR) == (times.retention_ms, times.age_ms(NOW))
    goes = FIRST_TIMESTAMP + 9 * HOUR + 1
    first, second, _ = times.deletions
    assert [(0, 2, goes, goes + CHECK_MS), (2, 6, goes, goes + CHECK_MS)] == [
        (each.base_offset, each.next_offset, each.earliest_ms, each.latest_ms)
        for each in (first, second)
    ]
    keys = next(each for each in snapshot.partitions if str(each.partition) == "keys-0")
    assert (1, keys.size) == (keys.due_segments, keys.due_bytes)
    assert (NOW, NOW + CHECK_MS) == (keys.deletions[0].earliest_ms, keys.deletions[0].latest_ms)


def test_comparisons_exclude_deletions(report: Report, history: History) -> None:
    history.add(report)

    (whole,) = history.snapshots()
    (short,) = history.snapshots(with_deletions=False)

    assert any(each.deletions for each in whole.partitions)
    assert short.partitions == tuple(
        dataclasses.replace(each, deletions=()) for each in whole.partitions
    )


def at(report: Report, ms: int, *names: str) -> Report:
    kept = tuple(each for each in report.partitions if not names or str(each.partition) in names)
    return dataclasses.replace(report, now_ms=ms, partitions=kept)


def test_each_run_adds_a_snapshot_in_time_order(report: Report, history: History) -> None:
    for day in (1, 0, 2):
        history.add(at(report, NOW + day * DAY))

    assert [NOW, NOW + DAY, NOW + 2 * DAY] == history.runs()
    assert history.runs() == [snapshot.at_ms for snapshot in history.snapshots()]


def test_second_run_at_the_same_time_changes_nothing(report: Report, history: History) -> None:
    history.add(report)
    (path,) = history.path.glob("*.parquet")
    before = path.read_bytes()

    history.add(report)

    assert [path] == sorted(history.path.glob("*.parquet"))
    assert before == path.read_bytes()


def test_second_run_at_the_same_time_may_add_partitions(report: Report, history: History) -> None:
    history.add(at(report, NOW, "keys-0", "times-0"))
    changed = at(report, NOW, "times-0", "times-1")
    facts = changed.partitions[0]
    fewer = dataclasses.replace(facts, segments=facts.segments[1:])

    history.add(dataclasses.replace(changed, partitions=(fewer, changed.partitions[1])))

    (snapshot,) = history.snapshots()
    assert {"keys-0": 1, "times-0": 2, "times-1": 2} == {
        str(each.partition): each.segments for each in snapshot.partitions
    }


def test_killed_run_leaves_no_snapshot(
    report: Report, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A file gets its name when it is complete; the next run removes an incomplete one.
    """
    history.add(report)

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(DiskFiles, "rename", killed)
        patched.setattr(DiskFiles, "remove", killed)
        with pytest.raises(Killed):
            history.add(at(report, NOW + DAY))
    assert 1 == len(list(history.path.glob("*.tmp")))
    assert [NOW] == history.runs()

    history.add(at(report, NOW + 2 * DAY))

    assert [] == list(history.path.glob("*.tmp"))
    assert [NOW, NOW + 2 * DAY] == history.runs()


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def of_others(path: Path) -> None:
    pq.write_table(pa.table({"at": [1], "size": [2]}), path)


def renamed(path: Path) -> None:
    path.rename(path.with_name("part-00000.parquet"))


def of_another_moment(path: Path) -> None:
    path.rename(path.with_name("report-20310101T000000.000Z.parquet"))


def torn_inside(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)


def made_by_spark(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "_SUCCESS").touch()


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (torn, "cannot be read as Parquet: "),
        (torn_inside, "cannot be read as Parquet: "),
        (made_by_spark, "cannot be read as Parquet: "),
        (emptied, "cannot be read as Parquet: "),
        (of_others, r"is no snapshot of a report: it does not belong there\."),
        (renamed, "is no snapshot of a report"),
        (of_another_moment, "has the figures of another moment"),
    ],
)
def test_malformed_snapshot_is_named(
    report: Report, history: History, harm: Callable[[Path], None], sentence: str
) -> None:
    history.add(report)
    (path,) = history.path.glob("*.parquet")

    harm(path)

    for read in (history.snapshots, history.table):
        with pytest.raises(HistoryError, match=rf"^/.*\.parquet {sentence}"):
            read()


def test_other_files_are_ignored(report: Report, history: History) -> None:
    history.add(report)
    for name in ("README.md", "_SUCCESS", ".lock", "page.html"):
        (history.path / name).write_text("of somebody else")

    assert [NOW] == history.runs()


def test_file_in_place_of_the_directory_is_reported(history: History) -> None:
    history.path.write_text("of somebody else")

    with pytest.raises(HistoryError, match=rf"^{history.path} is no directory"):
        history.runs()


def test_simultaneous_runs_are_refused(report: Report, history: History) -> None:
    with locked(DiskFiles(), history.path), pytest.raises(InUse, match="Another run is writing"):
        history.add(report)

    assert [] == history.runs()


@pytest.mark.parametrize("ms", [-1, 253_402_300_800_000])
def test_time_without_a_date_is_refused(report: Report, history: History, ms: int) -> None:
    with pytest.raises(InvalidOption, match="from 1970 to the year 9999"):
        history.add(at(report, ms))


def test_missing_directory_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="There is no history of reports in /"):
        history_frame(spark, tmp_path / "none")


def test_daily_reports_follow_a_growing_log(spark: SparkSession, tmp_path: Path) -> None:
    """
    The log grows and its records age; on the third day the first segment is due.
    """
    directory = WrittenDirectory(tmp_path / "logs")
    (tmp_path / "server.properties").write_text(SETTINGS)
    clock = directory.clock = StillClock(FIRST_TIMESTAMP + HOUR)
    log = directory.log()
    for _ in range(3):
        append(log, [SimpleRecord(clock.now_ms() + number, b"k", b"v") for number in range(10)])
        log.roll()
        directory.checkpoint()
        make(
            spark,
            str(directory.path),
            ["events"],
            headers_only=True,
            config=tmp_path / "server.properties",
            history=tmp_path / "history",
            clock=clock,
        )
        clock.advance(DAY)
    directory.stop()

    rows = history_frame(spark, tmp_path / "history").orderBy("at").collect()
    frame = history_frame(spark, tmp_path / "history")

    assert SCHEMA.names == frame.columns
    assert [10, 20, 30] == [row.records for row in rows]
    assert [2, 3, 4] == [row.segments for row in rows]
    assert [2 * DAY] * 3 == [row.retentionMs for row in rows]
    ages = frame.orderBy("at").selectExpr("unix_millis(at) - unix_millis(firstTimestamp) as age")
    assert [0, DAY, 2 * DAY] == [row.age for row in ages.collect()]
    earliest = frame.orderBy("at").selectExpr("unix_millis(deletions[0].unreadableEarliest) as ms")
    assert [FIRST_TIMESTAMP + HOUR + 9 + 2 * DAY + 1] * 3 == [row.ms for row in earliest.collect()]
