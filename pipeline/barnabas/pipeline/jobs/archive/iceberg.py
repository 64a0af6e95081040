"""
An archive as an Iceberg table, by pyiceberg.

A range is one snapshot of the table: its file, and the property
``barnabas.archived.TOPIC-PARTITION`` of the table, which has the next offset. Both are committed in
one step. A rollback changes the snapshot and leaves the property, so it counts only if the files of
the current snapshot end where they did when it was written.

The catalog takes a commit only if the table's snapshot is the one that it was made from. The
retries of pyiceberg are off (``commit.retry.num-retries``), since they would add a range that
another run has added meanwhile; here a commit is tried again only if the offset is still the one
that it begins with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.columns import has_first_columns, missing_columns
from barnabas.pipeline.jobs.archive.commit import ArchiveCommit
from barnabas.pipeline.jobs.archive.iceberg_files import (
    Extent,
    extents,
    files_of,
    merged_file,
    offset_column,
    offsets_of,
    small_files,
)
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
from barnabas.pipeline.jobs.parquet_files import STATISTICS
from barnabas.pipeline.logs.filesystems import local_path
from barnabas.pipeline.schemas import ARCHIVED, FAR_TIMESTAMP
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.state_files.file_names import parse_topic_partition_name
from barnabas.storage.topic_partition import TopicPartition

_HEADER: Final = StructType(
    NestedField(11, "key", StringType(), required=False),
    NestedField(12, "value", BinaryType(), required=False),
)
SCHEMA: Final = Schema(
    NestedField(1, "key", BinaryType(), required=False),
    NestedField(2, "value", BinaryType(), required=False),
    NestedField(3, "topic", StringType(), required=False),
    NestedField(4, "partition", IntegerType(), required=False),
    NestedField(5, "offset", LongType(), required=False),
    NestedField(6, "timestamp", TimestamptzType(), required=False),
    NestedField(7, "timestampType", IntegerType(), required=False),
    NestedField(8, "headers", ListType(10, _HEADER, element_required=False), required=False),
    NestedField(9, FAR_TIMESTAMP, LongType(), required=False),
)
PARTITIONS: Final = PartitionSpec(
    PartitionField(3, 1000, IdentityTransform(), "topic"),
    PartitionField(4, 1001, IdentityTransform(), "partition"),
)

_PROPERTIES: Final = {
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",  # Or planning reads a manifest for each range.
    "schema.name-mapping.default": SCHEMA.name_mapping.model_dump_json(),
    "write.metadata.metrics.default": "none",
    **{f"write.metadata.metrics.column.{name}": "full" for name in STATISTICS},
    # Every commit writes the table's metadata, which would otherwise stay for ever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_STATE: Final = "barnabas.archived."
_TRIES: Final = 5
"""Of a commit, while another writer that is no archiver is faster each time."""


class IcebergArchive(ArchiveTable):
    """
    An Iceberg table with the columns of records.
    """

    def __init__(
        self, name: str, catalog: str, properties: Mapping[str, str], storage: StorageOptions
    ) -> None:
        """
        Args:
            name: of the table, with its namespace.
            catalog: its name in the configuration of pyiceberg.
            properties: of the catalog, beside those of the configuration.

        Raises:
            ArchiveError: there is a table of another kind.
            InvalidOption: the catalog is not configured, or *name* has no namespace.
        """
        namespace, _, plain = name.rpartition(".")
        if not namespace or not plain or "/" in name:
            raise InvalidOption(f"An Iceberg table has a name like lake.records, and not {name}.")
        self._identifier = (*namespace.split("."), plain)
        try:
            self._catalog: Catalog = load_catalog(
                catalog, **{**storage.for_iceberg(), **properties}
            )
        except ValueError as error:
            raise InvalidOption(
                f"The catalog {catalog} cannot be opened: {str(error).splitlines()[0]}"
            ) from error
        self._name = f"{name} in catalog {catalog}"
        self.storage = storage
        self._table = self._open()

    @property
    def name(self) -> str:
        return self._name

    @property
    def missing_columns(self) -> list[str]:
        return [] if self._table is None else self._missing(self._table)

    @property
    def store(self) -> DataStore:  # type: ignore[override]  # There is a table by then.
        table = self._there
        storage = StorageOptions.of({}, dict(table.io.properties))
        return DataStore(table.location(), "data", tuple(ARCHIVED.names), storage)

    def refresh(self) -> None:
        self._table = self._open()
        self.__dict__.pop("_extents", None)

    @contextmanager
    def locked(self) -> Iterator[None]:
        # The table says where the lock is.
        self._create()
        with super().locked():
            yield

    def archived(self, partition: TopicPartition) -> ArchivedPartition | None:
        if self._table is None:
            return None
        noted, extent = self._noted(partition), self._extents.get(partition)
        there = [] if noted is None else [noted.note]
        state = resumed(there, None if extent is None else extent.offsets)
        if state is None:
            return None
        starts = [] if extent is None else [extent.offsets.start]
        if noted is not None and state in there:
            starts.append(noted.start_offset)
        snapshot = self._table.current_snapshot()
        return ArchivedPartition(
            OffsetRange(min(starts), state.end_offset),
            state.isolation_level,
            f"snapshot {None if snapshot is None else snapshot.snapshot_id} of {self._name}",
            None if extent is None else extent.last_file,
        )

    def noted_end(self, partition: TopicPartition) -> int:
        noted = None if self._table is None else self._noted(partition)
        return max(super().noted_end(partition), 0 if noted is None else noted.end_offset)

    def files_of_versions(self) -> frozenset[str]:
        paths = self._there.inspect.all_data_files().column("file_path").to_pylist()
        return frozenset(str(local_path(path)) for path in paths)

    @cached_property
    def _extents(self) -> dict[TopicPartition, Extent]:
        """
        Of the records in the current snapshot, and in what was added to it since.
        """
        return extents(self._there)

    @property
    def exists(self) -> bool:
        return self._table is not None

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        keys = [key for key in self._there.properties if key.startswith(_STATE)]
        noted = {parse_topic_partition_name(Path(key.removeprefix(_STATE))) for key in keys}
        return sorted(noted | self._extents.keys())

    def files_of(self, partition: TopicPartition) -> Sequence[ArchivedFile]:
        column = offset_column(self._there)
        return [
            ArchivedFile(
                partition,
                file.file_path,
                file.file_path,
                offsets_of(file, column),
                file.file_size_in_bytes,
                file.file_size_in_bytes,
            )
            for file in files_of(self._there, partition)
        ]

    def identity_of(self, partition: TopicPartition) -> str:
        return f"iceberg {self._there.metadata.table_uuid} {partition}"

    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        self._create()
        self._add_columns()
        self.store.make_directories(partitions)

    def add(self, commit: ArchiveCommit) -> None:
        for _ in range(_TRIES):
            before = self.archived(commit.topic_partition)
            if before is not None and before.offsets.end != commit.start_offset:
                break
            try:
                self._commit(commit, before)
            except CommitFailedException:
                self.refresh()
            else:
                return
        raise other_run(commit, self._name)

    def _commit(self, commit: ArchiveCommit, before: ArchivedPartition | None) -> None:
        table, partition = self._there, commit.topic_partition
        file = None if commit.file is None else f"{table.location()}/{commit.file}"
        extent = self._extents.get(partition)
        if file is not None and commit.first_offset is not None and commit.last_offset is not None:
            added = OffsetRange(commit.first_offset, commit.last_offset + 1)
            start = added.start if extent is None else extent.offsets.start
            extent = Extent(OffsetRange(start, added.end), file)
        state = _State(
            commit.start_offset if before is None else before.offsets.start,
            commit.end_offset,
            commit.isolation_level,
            0 if extent is None else extent.offsets.end,
        )
        about = {f"barnabas.{commit.topic_partition}": commit.name}
        with table.transaction() as transaction:
            key = f"{_STATE}{commit.topic_partition}"
            transaction.set_properties({key: json.dumps(state._asdict())})
            if file is None:
                # The next offset moves all the same, and only on top of the snapshot before.
                with transaction.update_snapshot(about).fast_append():
                    pass
            else:
                transaction.add_files([file], about, check_duplicate_files=False)
        if extent is not None:
            self._extents[partition] = extent

    def merge_small_files(self, below_bytes: int) -> Merged:
        self._add_columns()
        table = self._there
        groups = small_files(table, below_bytes)
        new_files = [(group, merged_file(table, self.store, group)) for group in groups]
        if not new_files:
            return Merged(0, 0)
        try:
            with (
                table.transaction() as transaction,
                transaction.update_snapshot().overwrite() as snapshot,
            ):
                for group, new in new_files:
                    for old in group:
                        snapshot.delete_data_file(old)
                    snapshot.append_data_file(new)
        except CommitFailedException as error:
            raise InUse(f"Another writer has changed {self._name} meanwhile.") from error
        return Merged(sum(map(len, groups)), len(groups))

    @property
    def _there(self) -> Table:
        if self._table is None:
            raise ArchiveError(f"There is no table {self._name}.")
        return self._table

    def _noted(self, partition: TopicPartition) -> _State | None:
        key = f"{_STATE}{partition}"
        text = self._there.properties.get(key)
        if text is None:
            return None
        try:
            values = json.loads(text)
            # An older version has noted a file, too, and not where the records end.
            values.pop("last_file", None)
            return _State(**{"records_end": None, **values})
        except (AttributeError, TypeError, ValueError) as error:
            raise ArchiveError(
                f"The property {key} of {self._name} does not say what is archived: {error}."
            ) from error

    def _create(self) -> None:
        if self._table is not None:
            return
        with suppress(NamespaceAlreadyExistsError):
            self._catalog.create_namespace(self._identifier[:-1])
        with suppress(TableAlreadyExistsError):
            self._catalog.create_table(
                self._identifier, SCHEMA, partition_spec=PARTITIONS, properties=_PROPERTIES
            )
        self.refresh()

    def _open(self) -> Table | None:
        try:
            table = self._catalog.load_table(self._identifier)
        except (NoSuchNamespaceError, NoSuchTableError):
            return None
        columns = [field.name for field in table.schema().fields]
        fields = [field.name for field in table.spec().fields]
        if not has_first_columns(columns) or fields != ["topic", "partition"]:
            raise ArchiveError(f"{self._name} is no archive of records.")
        self._missing(table)
        if table.properties.get("commit.retry.num-retries") != "0":
            raise ArchiveError(
                f"{self._name} lets commits be tried again (commit.retry.num-retries is not 0):"
                f" two runs at once could add a range twice."
            )
        return table

    def _missing(self, table: Table) -> list[str]:
        """
        What records have now and the table has not: an older version has made it.
        """
        there, wanted = (
            schema_to_pyarrow(schema, include_field_ids=False)
            for schema in (table.schema(), SCHEMA)
        )
        missing = missing_columns(self._name, there, wanted)
        for earlier in table.schemas().values():
            for name in missing:
                if name in {field.name for field in earlier.fields}:
                    raise ArchiveError(
                        f"{self._name} cannot be continued: its column {name} was removed or"
                        " renamed, after records were archived with it."
                    )
        return missing

    def _add_columns(self) -> None:
        """
        Each with a number of its own; the mapping of names has them, too.
        """
        for _ in range(_TRIES):
            table = self._there
            missing = self._missing(table)
            if not missing:
                return
            try:
                with table.update_schema() as update:
                    for name in missing:
                        update.add_column(name, SCHEMA.find_field(name).field_type)
            except CommitFailedException:
                # Another writer was faster, perhaps with the same columns.
                pass
            self.refresh()
        raise InUse(f"Another writer has changed {self._name} meanwhile.")


class _State(NamedTuple):
    """
    What a property of the table says of a partition.
    """

    start_offset: int
    end_offset: int
    isolation_level: str
    records_end: int | None

    @property
    def note(self) -> Noted:
        return Noted(*self[1:])
