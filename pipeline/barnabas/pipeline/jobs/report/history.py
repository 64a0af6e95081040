"""
The figures of many reports, run by run.

A run is one Parquet file, named after its moment: ``report-20260131T120000.000Z.parquet``. It is
whole and durable under a temporary name before it gets its own, so all files with such a name are
whole. A second run at the same moment writes the file again: what it has of a partition counts, and
partitions that it was not asked for stay as they were.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet as pq

from barnabas.pipeline.errors import InvalidOption, PipelineError
from barnabas.pipeline.jobs.output import (
    OutputDirectory,
    locked,
    make_durable_directory,
    paths_in,
)
from barnabas.pipeline.jobs.parquet_files import write_durably
from barnabas.pipeline.jobs.report.facts import Report
from barnabas.pipeline.jobs.report.figures import (
    DELETIONS,
    SCHEMA,
    Figures,
    Snapshot,
    as_table,
    snapshot_of,
)
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX

_SUFFIX: Final = ".parquet"
_NAME: Final = re.compile(r"report-(\d{8}T\d{6}\.\d{3})Z\.parquet")
_FORMAT: Final = "%Y%m%dT%H%M%S"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


class HistoryError(PipelineError):
    """
    A file of a history is none, or there is no history.
    """


class History(OutputDirectory):
    """
    A directory of snapshots. Files that do not end with ``.parquet`` are none of it.
    """

    proof = ""  # The directory itself: there is no other in it.
    nothing_there = (HistoryError, "There is no history of reports")

    def runs(self) -> list[int]:
        """
        The moments of all runs in ms since 1970, the earliest first.

        Raises:
            HistoryError: a file is no snapshot, or stands in the place of the directory.
        """
        return [self._check(path) for path in self._paths()]

    def snapshots(self, *, with_deletions: bool = True) -> list[Snapshot]:
        """
        The figures of all runs, the earliest first.

        Args:
            with_deletions: whether each segment that is going to be deleted is read. Most of a file
                is about them, and comparisons of runs do without.

        Raises:
            HistoryError: as above.
        """
        columns = [name for name in SCHEMA.names if with_deletions or name != DELETIONS]
        return [snapshot_of(self._rows(path, columns)) for path in self._paths()]

    def table(self) -> pa.Table:
        """
        The rows of all snapshots.

        Raises:
            HistoryError: as above.
        """
        return pa.concat_tables([SCHEMA.empty_table(), *map(self._rows, self._paths())])

    def add(self, report: Report) -> None:
        """
        Make the figures of *report* the snapshot of its moment, in one step.

        Raises:
            HistoryError: there is a file for the same moment, and it is no snapshot.
            InUse: another run writes to the directory.
            InvalidOption: as ``check_moment``.
        """
        path = self.path / _name(report.now_ms)
        figures = {facts.partition: Figures.of(facts) for facts in report.partitions}
        make_durable_directory(self.files, self.path.parent, self.path)
        with locked(self.files, self.path):
            for left in paths_in(self.files, self.path):
                if left.name.endswith(_SUFFIX + TEMPORARY_SUFFIX):
                    self.files.remove(left)
            if path in self._paths():
                there = {each.partition: each for each in snapshot_of(self._rows(path)).partitions}
                figures = there | figures
            in_order = sorted(figures.values(), key=lambda each: each.partition)
            table = as_table(Snapshot(report.now_ms, tuple(in_order)))
            write_durably(self.files, path, table.to_batches(), SCHEMA)

    def _paths(self) -> Sequence[Path]:
        if self.files.exists(self.path) and not self.files.is_directory(self.path):
            raise HistoryError(f"{self.path} is no directory; name one, or a new path.")
        return [path for path in paths_in(self.files, self.path) if path.suffix == _SUFFIX]

    def _check(self, path: Path) -> int:
        """
        The moment that *path* is named after; it has the columns of a snapshot.
        """
        at_ms = _parse_name(path.name)
        try:
            schema = pq.read_schema(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise HistoryError(f"{path} cannot be read as Parquet: {_first_line(error)}") from error
        if at_ms is None or not schema.equals(SCHEMA):
            raise HistoryError(f"{path} is no snapshot of a report: it does not belong there.")
        return at_ms

    def _rows(self, path: Path, columns: Sequence[str] = SCHEMA.names) -> pa.Table:
        at_ms = self._check(path)
        try:
            with pq.ParquetFile(path) as file:
                table = file.read(list(columns))
        except (OSError, pa.ArrowInvalid) as error:
            raise HistoryError(f"{path} cannot be read as Parquet: {_first_line(error)}") from error
        if table["at"].cast(pa.int64()).unique().to_pylist() != [at_ms * 1000]:
            raise HistoryError(f"{path} has the figures of another moment than its name says.")
        return table


def check_moment(at_ms: int) -> None:
    """
    Raises:
        InvalidOption: no calendar has that moment, so that no snapshot can be named after it.
    """
    if not 0 <= at_ms <= _LATEST_MS:
        raise InvalidOption(
            f"A history has reports from 1970 to the year 9999, and none of {at_ms} ms since 1970."
        )


def _name(at_ms: int) -> str:
    check_moment(at_ms)
    at = _EPOCH + timedelta(milliseconds=at_ms)
    return f"report-{at.strftime(_FORMAT).rjust(15, '0')}.{at_ms % 1000:03d}Z{_SUFFIX}"


def _parse_name(name: str) -> int | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    text, _, ms = match[1].partition(".")
    try:
        at = datetime.strptime(text, _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return (at - _EPOCH) // timedelta(milliseconds=1) + int(ms)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
