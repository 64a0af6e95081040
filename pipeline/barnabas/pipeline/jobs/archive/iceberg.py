"""
An archive as an Iceberg table, by pyiceberg.

A range is one snapshot of the table: its file, and the property
``barnabas.archived.TOPIC-PARTITION`` of the table, which has the next offset. Both are committed in
one step. The catalog takes a commit only if the table's snapshot is the one that it was made from.
pyiceberg's own retries are off (``commit.retry.num-retries``), since they would add a range that
another run has added meanwhile; here a commit is tried again only if the offset is still the one
that it begins with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from pyiceberg.manifest import DataFile
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
    other_run,
)
from barnabas.pipeline.jobs.output import InUse
from barnabas.pipeline.jobs.parquet_files import STATISTICS
from barnabas.pipeline.schemas import RECORDS
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.state_files.file_names import parse_topic_partition_name
from barnabas.storage.topic_partition import TopicPartition

_HEADER: Final = StructType(
    NestedField(10, "key", StringType(), required=False),
    NestedField(11, "value", BinaryType(), required=False),
)
SCHEMA: Final = Schema(
    NestedField(1, "key", BinaryType(), required=False),
    NestedField(2, "value", BinaryType(), required=False),
    NestedField(3, "topic", StringType(), required=False),
    NestedField(4, "partition", IntegerType(), required=False),
    NestedField(5, "offset", LongType(), required=False),
    NestedField(6, "timestamp", TimestamptzType(), required=False),
    NestedField(7, "timestampType", IntegerType(), required=False),
    NestedField(8, "headers", ListType(9, _HEADER, element_required=False), required=False),
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
        return DataStore(table.location(), "data", tuple(RECORDS.names), storage)

    def refresh(self) -> None:
        self._table = self._open()

    @contextmanager
    def locked(self) -> Iterator[None]:
        # The table says where the lock is.
        self._create()
        with super().locked():
            yield

    def archived(self, partition: TopicPartition) -> ArchivedPartition | None:
        state = self._state_of(partition)
        if state is None:
            return None
        table = self._there
        snapshot = table.current_snapshot()
        return ArchivedPartition(
            OffsetRange(state.start_offset, state.end_offset),
            state.isolation_level,
            f"snapshot {None if snapshot is None else snapshot.snapshot_id} of {self._name}",
            state.last_file,
        )

    @property
    def exists(self) -> bool:
        return self._table is not None

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        names = [key.removeprefix(_STATE) for key in self._there.properties if _is_state(key)]
        return sorted(parse_topic_partition_name(Path(name)) for name in names)

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
            before = self._state_of(commit.topic_partition)
            if before is not None and before.end_offset != commit.start_offset:
                break
            try:
                self._commit(commit, before)
            except CommitFailedException:
                self.refresh()
            else:
                return
        raise other_run(commit, self._name)

    def _commit(self, commit: ArchiveCommit, before: _State | None) -> None:
        table = self._there
        file = None if commit.file is None else f"{table.location()}/{commit.file}"
        state = _State(
            commit.start_offset if before is None else before.start_offset,
            commit.end_offset,
            commit.isolation_level,
            file if file is not None or before is None else before.last_file,
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

    def merge_small_files(self, below_bytes: int) -> Merged:
        self._add_columns()
        table = self._there
        groups = small_files(table, below_bytes)
        new_files = [(group, merged_file(table, self.store, group)) for group in groups]
        if not new_files:
            return Merged(0, 0)
        try:
            with table.transaction() as transaction:
                transaction.set_properties(self._moved(new_files))
                with transaction.update_snapshot().overwrite() as snapshot:
                    for group, new in new_files:
                        for old in group:
                            snapshot.delete_data_file(old)
                        snapshot.append_data_file(new)
        except CommitFailedException as error:
            raise InUse(f"Another writer has changed {self._name} meanwhile.") from error
        return Merged(sum(map(len, groups)), len(groups))

    def _moved(self, new_files: Iterable[tuple[list[DataFile], DataFile]]) -> dict[str, str]:
        """
        The properties of partitions whose last file is another one now.
        """
        moved = {old.file_path: new.file_path for group, new in new_files for old in group}
        properties = {}
        for key in self._there.properties:
            if _is_state(key):
                state = self._parsed(key)
                if state is not None and state.last_file in moved:
                    state = state._replace(last_file=moved[state.last_file])
                    properties[key] = json.dumps(state._asdict())
        return properties

    @property
    def _there(self) -> Table:
        if self._table is None:
            raise ArchiveError(f"There is no table {self._name}.")
        return self._table

    def _state_of(self, partition: TopicPartition) -> _State | None:
        return None if self._table is None else self._parsed(f"{_STATE}{partition}")

    def _parsed(self, key: str) -> _State | None:
        text = self._there.properties.get(key)
        if text is None:
            return None
        try:
            return _State(**json.loads(text))
        except (TypeError, ValueError) as error:
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


def _is_state(key: str) -> bool:
    return key.startswith(_STATE)


class _State(NamedTuple):
    """
    What a property of the table says of a partition.
    """

    start_offset: int
    end_offset: int
    isolation_level: str
    last_file: str | None
    """The URL of the file with the last record."""
