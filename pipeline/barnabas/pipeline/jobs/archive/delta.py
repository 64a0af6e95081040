"""
An archive as a Delta table, by delta-rs.

A range is one version of the table: its file and a transaction identifier, which are added in one
step. The identifier is ``barnabas/TOPIC-PARTITION/LEVEL`` and its number is the next offset, so the
table itself says where a run goes on; a log of a Delta table keeps the last number for ever. Two
writers that add the same identifier conflict, so the second of two runs is refused; other writers,
like a compaction of small files, do not conflict. RESTORE and DELETE change the files and leave the
identifiers, and a shallow clone has none. So ``barnabas/TOPIC-PARTITION/LEVEL/records`` has the
offset behind the last record by then, and the numbers count only if the files end there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.columns import has_first_columns, missing_columns
from barnabas.pipeline.jobs.archive.commit import ArchiveCommit
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import (
    ArchivedFile,
    ArchivedPartition,
    ArchiveError,
    ArchiveTable,
    Merged,
    Noted,
    other_run,
    resumed,
)
from barnabas.pipeline.jobs.output import InUse
from barnabas.pipeline.jobs.parquet_files import COLUMNS
from barnabas.pipeline.logs.filesystems import is_local, local_path
from barnabas.pipeline.options import IsolationLevel
from barnabas.pipeline.schemas import ARCHIVED, project
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.clock import SystemClock
from barnabas.storage.topic_partition import TopicPartition

PARTITIONED_BY: Final = ["topic", "partition"]
DESCRIPTION: Final = "Records of Kafka topics, archived by Barnabas."
"""Of tables that were made here. Columns are added to no others."""

_SCHEMES: Final = ("s3", "s3a", "gs", "abfs", "abfss", "az")
"""Those for which delta-rs makes a version in one step by itself."""
_MISREAD: Final = re.compile(r"%[0-9A-Fa-f]{2}|[\\\[\]^|\x00-\x1f\x7f]")
"""Characters that delta-rs 1.6 decodes or refuses in a path: it writes to another directory."""
_OTHER_READERS: Final = frozenset({"deletionVectors", "columnMapping"})
"""Features of a table with which a row of a file may be none of the table."""
_OF_A_FILE: Final = [
    "path",
    "size_bytes",
    "num_records",
    "min.offset",
    "max.offset",
    "partition.topic",
    "partition.partition",
]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class DeltaArchive(ArchiveTable):
    """
    A Delta table with the columns of records.
    """

    def __init__(self, url: str, storage: StorageOptions) -> None:
        """
        Raises:
            ArchiveError: there is a table of another kind.
            InvalidOption: delta-rs has no tables in file systems of this kind.
        """
        if is_local(url):
            url = str(local_path(url).absolute())
            misread = _MISREAD.search(url)
            if misread is not None:
                raise InvalidOption(
                    f"{url} cannot have a Delta table: delta-rs does not take {misread[0]!r} in a"
                    " path for what it is."
                )
        elif url.partition(":")[0].lower() not in _SCHEMES:
            raise InvalidOption(
                f"{url} cannot have a Delta table: URLs begin with {', '.join(_SCHEMES)}."
            )
        self._url = url.rstrip("/")
        self.storage = storage
        self._options = storage.for_delta(self._url)
        self.store = DataStore(self._url, "", COLUMNS, storage)
        self._table = self._open()

    @property
    def name(self) -> str:
        return self._url

    @property
    def missing_columns(self) -> list[str]:
        return [] if self._table is None else self._missing(self._table)

    def refresh(self) -> None:
        self._table = self._open()
        self.__dict__.pop("_files", None)

    def archived(self, partition: TopicPartition) -> ArchivedPartition | None:
        if self._table is None:
            return None
        files = self._files.get(partition, [])
        last = max(files, key=lambda file: file.offsets.end, default=None)
        records = None if last is None else OffsetRange(files[0].offsets.start, last.offsets.end)
        state = resumed(self._noted(partition), records)
        if state is None:
            return None
        return ArchivedPartition(
            OffsetRange(state.end_offset if records is None else records.start, state.end_offset),
            state.isolation_level,
            f"version {self._table.version()} of {self._url}",
            None if last is None else last.path,
        )

    def _noted(self, partition: TopicPartition) -> list[Noted]:
        assert self._table is not None
        numbers = self._table.transaction_version
        return [
            Noted(end, level.value, numbers(_records_id(partition, level.value)))
            for level in IsolationLevel
            if (end := numbers(_app_id(partition, level.value))) is not None
        ]

    def noted_end(self, partition: TopicPartition) -> int:
        noted = [] if self._table is None else self._noted(partition)
        return max([super().noted_end(partition), *(each.end_offset for each in noted)])

    def files_of_versions(self) -> frozenset[str]:
        if self._table is None:
            return frozenset()
        # The log has removed these, and may still restore them.
        removed = self._table.vacuum(0, dry_run=True, enforce_retention_duration=False)
        return frozenset(str(local_path(self._url) / path) for path in removed)

    @property
    def exists(self) -> bool:
        return self._table is not None

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        return sorted(self._files)

    def files_of(self, partition: TopicPartition) -> Sequence[ArchivedFile]:
        assert self._table is not None
        features = set(self._table.protocol().reader_features or ()) & _OTHER_READERS
        if features:
            raise ArchiveError(
                f"{self._url} has {', '.join(sorted(features))}: its files alone do not say what"
                " is in it. Read it as a Delta table."
            )
        return self._files.get(partition, ())

    def identity_of(self, partition: TopicPartition) -> str:
        assert self._table is not None
        return f"delta {self._table.metadata().id} {partition}"

    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        if self._table is None:
            if self.store.is_local:
                local_path(self._url).mkdir(parents=True, exist_ok=True)
            try:
                self._table = DeltaTable.create(
                    self._url,
                    ARCHIVED,
                    partition_by=PARTITIONED_BY,
                    description=DESCRIPTION,
                    storage_options=self._options,
                )
            except DeltaError:
                # Another run has made it in the same moment.
                self._table = self._open()
                if self._table is None:
                    raise
        self._add_columns(self._table)
        self.store.make_directories(partitions)

    def add(self, commit: ArchiveCommit) -> None:
        assert self._table is not None
        partition, level = commit.topic_partition, commit.isolation_level
        archived = self.archived(partition)
        if archived is not None and archived.offsets.end != commit.start_offset:
            raise other_run(commit, self._url)
        records_end = max((file.offsets.end for file in self._files.get(partition, ())), default=0)
        if commit.last_offset is not None:
            records_end = commit.last_offset + 1
        try:
            self._table.create_write_transaction(
                [] if commit.file is None else [_add_action(commit, commit.file)],
                mode="append",
                schema=ARCHIVED,
                partition_by=PARTITIONED_BY,
                commit_properties=CommitProperties(
                    custom_metadata={"barnabas": commit.name},
                    app_transactions=[
                        Transaction(_app_id(partition, level), commit.end_offset),
                        Transaction(_records_id(partition, level), records_end),
                    ],
                ),
            )
        except CommitFailedError as error:
            raise other_run(commit, self._url) from error
        # What others have added by now comes too, and is compared above before the next range.
        self._table.update_incremental()
        self.__dict__.pop("_files", None)

    def merge_small_files(self, below_bytes: int) -> Merged:
        if self._table is None:
            return Merged(0, 0)
        self._add_columns(self._table)
        try:
            metrics = self._table.optimize.compact(target_size=below_bytes)
        except CommitFailedError as error:
            raise InUse(f"Another writer has changed files of {self._url} meanwhile.") from error
        return Merged(metrics["numFilesRemoved"], metrics["numFilesAdded"])

    def _open(self) -> DeltaTable | None:
        try:
            if not DeltaTable.is_deltatable(self._url, self._options):
                return None
            table = DeltaTable(self._url, storage_options=self._options)
        except DeltaError as error:
            raise ArchiveError(f"{self._url} cannot be read: {error}") from error
        names = [field.name for field in table.schema().fields]
        if not has_first_columns(names) or table.metadata().partition_columns != PARTITIONED_BY:
            raise ArchiveError(f"{self._url} is a Delta table, and no archive of records.")
        missing = self._missing(table)
        if missing and table.metadata().description != DESCRIPTION:
            raise ArchiveError(
                f"{self._url} lacks the columns {', '.join(missing)}, and was not made by Barnabas:"
                " add them to it, and it is continued."
            )
        return table

    def _missing(self, table: DeltaTable) -> list[str]:
        wanted = pa.schema(Schema.from_arrow(ARCHIVED).to_arrow())
        return missing_columns(self._url, pa.schema(table.schema().to_arrow()), wanted)

    def _add_columns(self, table: DeltaTable) -> None:
        """
        What records have now and the table has not: an older version has made it.
        """
        missing = self._missing(table)
        if not missing:
            return
        fields = Schema.from_arrow(project(ARCHIVED, missing)).fields
        about = CommitProperties(custom_metadata={"barnabas": f"columns {', '.join(missing)}"})
        try:
            table.alter.add_columns(fields, commit_properties=about)
        except CommitFailedError as error:
            # Another run has added them in the same moment.
            table.update_incremental()
            if self._missing(table):
                raise InUse(f"Another writer has changed {self._url} meanwhile.") from error

    @cached_property
    def _files(self) -> dict[TopicPartition, list[ArchivedFile]]:
        """
        The files of each partition by their first offsets, as they were when this was first asked
        for.

        Raises:
            ArchiveError: a file has no statistics, and its offsets are not known.
        """
        assert self._table is not None
        actions = pa.table(self._table.get_add_actions(flatten=True))
        found: dict[TopicPartition, list[ArchivedFile]] = {}
        if not actions.num_rows:
            return found
        known = [name for name in _OF_A_FILE if name in actions.column_names]
        rows = actions.select(known).to_pylist()
        for row in rows:
            if row.get("max.offset") is None and row["num_records"] != 0:
                raise ArchiveError(
                    f"{self._url}/{row['path']} has no statistics of its offsets, which another"
                    " writer has left out: the table does not say what is archived. Write it again"
                    " with statistics."
                )
        rows = [row for row in rows if row["num_records"] != 0]
        for row in sorted(rows, key=lambda row: row["min.offset"]):
            partition = TopicPartition(row["partition.topic"], row["partition.partition"])
            path, size = row["path"], row["size_bytes"]
            offsets = OffsetRange(row["min.offset"], row["max.offset"] + 1)
            file = ArchivedFile(partition, path, f"{self._url}/{path}", offsets, size, size)
            found.setdefault(partition, []).append(file)
        return found


def _app_id(partition: TopicPartition, isolation_level: str) -> str:
    return f"barnabas/{partition}/{isolation_level}"


def _records_id(partition: TopicPartition, isolation_level: str) -> str:
    return f"{_app_id(partition, isolation_level)}/records"


def _add_action(commit: ArchiveCommit, file: str) -> AddAction:
    return AddAction(
        path=file,
        size=commit.file_bytes,
        partition_values={"topic": commit.topic, "partition": str(commit.partition)},
        modification_time=SystemClock().now_ms(),
        data_change=True,
        stats=json.dumps(_statistics(commit)),
    )


def _statistics(commit: ArchiveCommit) -> dict[str, Any]:
    """
    Per-file statistics for data skipping. Times beyond the range of ``datetime`` are omitted.
    """
    nulls = {"offset": 0}
    low: dict[str, Any] = {"offset": commit.first_offset}
    high: dict[str, Any] = {"offset": commit.last_offset}
    times = [_iso(time) for time in (commit.min_timestamp_ms, commit.max_timestamp_ms)]
    if None not in times:
        low["timestamp"], high["timestamp"] = times
        nulls["timestamp"] = 0
    return {
        "numRecords": commit.records,
        "minValues": low,
        "maxValues": high,
        "nullCount": nulls,
    }


def _iso(timestamp_ms: int | None) -> str | None:
    if timestamp_ms is None:
        return None
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp_ms % 1000:03d}Z"
