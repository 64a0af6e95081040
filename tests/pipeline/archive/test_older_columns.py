from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.pipeline.jobs.archive.table import ArchiveError
from barnabas.pipeline.jobs.archive.text import explain_plans
from barnabas.pipeline.jobs.parquet_files import COLUMNS
from barnabas.pipeline.schemas import ARCHIVED, FAR_TIMESTAMP, RECORDS, project
from tests.pipeline.archive.archived import closed_rows, fill
from tests.pipeline.archive.engines import rows_of
from tests.pipeline.archive.kinds import Kind
from tests.support.log_directory import WrittenDirectory

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")


from pyiceberg.partitioning import PartitionField, PartitionSpec  # noqa: E402  # not all have it
from pyiceberg.schema import Schema, assign_fresh_schema_ids  # noqa: E402  # not all have it
from pyiceberg.types import IntegerType, NestedField, StringType  # noqa: E402  # not all have it

from barnabas.pipeline.jobs.archive import delta, iceberg  # noqa: E402  # not all have it

MISSING = ["timestampType", "headers", FAR_TIMESTAMP]


@contextmanager
def with_columns(kind: Kind, names: list[str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if kind.format == "delta":
            there = project(ARCHIVED, names)
            patch.setattr(delta, "ARCHIVED", there)
            in_files = [name for name in COLUMNS if name in names]
            patch.setattr(delta, "COLUMNS", tuple(in_files))
        else:
            patch.setattr(iceberg, "ARCHIVED", project(ARCHIVED, names))
            fields = [field for field in iceberg.SCHEMA.fields if field.name in names]
            use_schema(patch, assign_fresh_schema_ids(Schema(*fields)))
        yield


def use_schema(patch: pytest.MonkeyPatch, schema: Schema) -> None:
    patch.setattr(iceberg, "SCHEMA", schema)
    mapping = schema.name_mapping.model_dump_json()
    changed = {**iceberg._PROPERTIES, "schema.name-mapping.default": mapping}
    patch.setattr(iceberg, "_PROPERTIES", changed)


@pytest.fixture(params=["delta", "iceberg"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    return Kind(request.param, tmp_path / "archive")


def without(names: list[str]) -> list[str]:
    return [name for name in ARCHIVED.names if name not in names]


def continued(kind: Kind, directory: WrittenDirectory, missing: list[str]) -> list[tuple[Any, ...]]:
    """
    Continue an archive that lacks columns, and return the rows that it should have.
    """
    with with_columns(kind, without(missing)):
        older = kind.run(directory.path)
    assert set(missing).isdisjoint(kind.columns())
    fill(directory.events, 200)
    directory.stop()

    newer = kind.run(directory.path)

    assert older.commits
    assert older.commits[-1].end_offset == newer.commits[0].start_offset
    end = older.commits[-1].end_offset
    return [
        tuple(
            None if row[4] < end and name in missing else value
            for name, value in zip(RECORDS.names, row, strict=True)
        )
        for row in closed_rows(directory.path)
    ]


@pytest.mark.parametrize("missing", [["headers"], [FAR_TIMESTAMP], MISSING])
def test_older_archive_gets_the_missing_columns(
    kind: Kind, directory: WrittenDirectory, missing: list[str]
) -> None:
    """
    Old rows have nulls in new columns, and the last one is still compared with the log.
    """
    expected = continued(kind, directory, missing)

    assert sorted(ARCHIVED.names) == sorted(kind.columns())
    assert expected == kind.rows()
    assert [] == kind.run(directory.path).commits


def test_files_of_older_and_newer_columns_are_merged(
    kind: Kind, directory: WrittenDirectory
) -> None:
    expected = continued(kind, directory, MISSING)

    merged = kind.open().merge_small_files(1 << 20)

    assert 1 == merged.into
    assert expected == kind.rows()
    assert [] == kind.run(directory.path).commits


def test_merge_adds_the_missing_columns(kind: Kind, directory: WrittenDirectory) -> None:
    with with_columns(kind, without(MISSING)):
        kind.run(directory.path)

    kind.open().merge_small_files(1 << 20)

    assert sorted(ARCHIVED.names) == sorted(kind.columns())


def test_older_archive_may_be_merged_before_it_is_continued(
    kind: Kind, directory: WrittenDirectory
) -> None:
    with with_columns(kind, without(MISSING)):
        kind.run(directory.path)
    kind.run(directory.path)
    assert 1 == kind.open().merge_small_files(1 << 20).into
    fill(directory.events, 200)
    directory.stop()

    kind.run(directory.path)

    assert closed_rows(directory.path)[-1] == kind.rows()[-1]


def test_dry_run_does_not_change_an_older_archive(kind: Kind, directory: WrittenDirectory) -> None:
    assert [] == list(kind.open().missing_columns)
    with with_columns(kind, without(MISSING)):
        kind.run(directory.path)

    table = kind.open()
    with table.locked():
        table.leftovers()

    assert set(MISSING).isdisjoint(kind.columns())
    assert MISSING == list(table.missing_columns)
    said = explain_plans([], table.name, "here", table.missing_columns)
    gets = "it gets the columns timestampType, headers, farTimestamp, in which its rows have nulls."
    assert gets in said
    kind.run(directory.path)
    assert [] == list(kind.open().missing_columns)


def test_two_runs_that_add_columns_both_continue(kind: Kind, directory: WrittenDirectory) -> None:
    """
    An object store has no lock: the second run finds the columns that the first one added.
    """
    with with_columns(kind, without(MISSING)):
        kind.run(directory.path)
    one, other = kind.open(), kind.open()

    one.prepare([])
    other.prepare([])

    assert sorted(ARCHIVED.names) == sorted(kind.columns())


def test_column_that_records_always_had_is_not_added(
    kind: Kind, directory: WrittenDirectory
) -> None:
    def begun_without_times() -> None:
        with with_columns(kind, without(["timestamp"])):
            kind.open().prepare([])
        kind.run(directory.path)

    with pytest.raises(ArchiveError, match=r"no archive of records"):
        begun_without_times()


def delta_table(kind: Kind, schema: pa.Schema, **more: Any) -> None:
    by = ["topic", "partition"]
    about = "Records of Kafka topics, archived by Barnabas."
    made = {"partition_by": by, "description": about, **more}
    deltalake.DeltaTable.create(str(kind.path), schema, **made)


def changed(name: str, kind: pa.DataType, *, nullable: bool = True) -> pa.Schema:
    """
    The schema of records with a column of another type, or with an additional column.
    """
    field = pa.field(name, kind, nullable=nullable)
    index = ARCHIVED.get_field_index(name)
    return ARCHIVED.append(field) if index < 0 else ARCHIVED.set(index, field)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (changed("partition", pa.int64()), "its column partition is int64, and that of records is"),
        (changed("offset", pa.int32()), "its column offset is int32, and that of records is int64"),
        (changed("timestamp", pa.timestamp("us")), "its column timestamp is timestamp"),
        (changed("value", pa.string()), "its column value is string, and that of records is bin"),
        (changed("headers", pa.map_(pa.string(), pa.binary())), "its column headers is map<"),
        (changed("value", pa.binary(), nullable=False), "its column value must not be null, and r"),
        (changed("owner", pa.string(), nullable=False), "its column owner must not be null, and r"),
    ],
)
def test_columns_of_another_type_are_refused(
    tmp_path: Path, directory: WrittenDirectory, schema: pa.Schema, sentence: str
) -> None:
    kind = Kind("delta", tmp_path / "archive")
    delta_table(kind, schema)

    with pytest.raises(ArchiveError, match=f"^{kind.path} cannot be continued: {sentence}"):
        kind.run(directory.path)


def test_column_that_differs_only_in_case_is_refused(
    tmp_path: Path, directory: WrittenDirectory
) -> None:
    """
    Delta and Spark ignore case, and would take the two for the same column.
    """
    kind = Kind("delta", tmp_path / "archive")
    there = project(ARCHIVED, without(["headers"]))
    delta_table(kind, there.append(pa.field("Headers", pa.string())))

    with pytest.raises(ArchiveError, match="it has a column Headers, and that of records is call"):
        kind.run(directory.path)


def test_columns_are_added_only_to_our_tables(tmp_path: Path, directory: WrittenDirectory) -> None:
    kind = Kind("delta", tmp_path / "archive")
    delta_table(kind, project(ARCHIVED, without(MISSING)), description="Of the team next door.")

    with pytest.raises(
        ArchiveError, match=r"timestampType, headers, farTimestamp, and was not made by Barn"
    ):
        kind.run(directory.path)


def test_additional_nullable_columns_are_null_in_archived_records(
    kind: Kind, directory: WrittenDirectory
) -> None:
    kind.run(directory.path)
    if kind.format == "delta":
        kind.delta().alter.add_columns(
            deltalake.Field("owner", deltalake.schema.PrimitiveType("string"))
        )
    else:
        with kind.loaded().update_schema() as update:
            update.add_column("owner", StringType())
    fill(directory.events, 200)
    directory.stop()

    kind.run(directory.path)

    assert closed_rows(directory.path) == kind.rows()


def iceberg_column_type(table: Any) -> None:
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("timestampType")
    with table.update_schema() as update:
        update.add_column("timestampType", StringType())


def iceberg_renamed(table: Any) -> None:
    with table.update_schema() as update:
        update.rename_column("headers", "meta")


def iceberg_removed(table: Any) -> None:
    with table.update_schema() as update:
        update.delete_column("timestampType")


def iceberg_required(table: Any) -> None:
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("owner", StringType(), required=True)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (iceberg_column_type, "its column timestampType is .*string, and that of records is int32"),
        (iceberg_renamed, "its column headers was removed or renamed, after records were arch"),
        (iceberg_removed, "its column timestampType was removed or renamed"),
        (iceberg_required, "its column owner must not be null, and records have"),
    ],
)
def test_incompatible_changes_of_a_table_are_refused(
    tmp_path: Path, directory: WrittenDirectory, change: Callable[[Any], None], sentence: str
) -> None:
    kind = Kind("iceberg", tmp_path / "archive")
    kind.run(directory.path)

    change(kind.loaded())

    with pytest.raises(
        ArchiveError, match=rf"^lake\.records in catalog lake cannot be continued: {sentence}"
    ):
        kind.run(directory.path)


def test_column_ids_are_those_of_the_table(tmp_path: Path, directory: WrittenDirectory) -> None:
    """
    Another table may have its columns in another order and with other ids; small files are still
    found by the bounds of their offsets.
    """
    kind = Kind("iceberg", tmp_path / "archive")
    names = ["offset", *without(["offset"])]
    with pytest.MonkeyPatch.context() as patch:
        fields = {field.name: field for field in iceberg.SCHEMA.fields}
        other = assign_fresh_schema_ids(
            Schema(
                NestedField(100, "owner", IntegerType(), required=False),
                *(
                    NestedField(number, name, fields[name].field_type, required=False)
                    for number, name in enumerate(names, 101)
                ),
            )
        )
        use_schema(patch, other)
        numbers = [other.find_field(name).field_id for name in ("topic", "partition")]
        spec = [
            PartitionField(number, field.field_id, field.transform, field.name)
            for number, field in zip(numbers, iceberg.PARTITIONS.fields, strict=True)
        ]
        patch.setattr(iceberg, "PARTITIONS", PartitionSpec(*spec))

        kind.open().prepare([])
    kind.run(directory.path)

    assert 1 == kind.open().merge_small_files(1 << 20).into
    assert closed_rows(directory.path) == kind.rows()


def test_column_ids_are_those_assigned_by_the_catalog() -> None:
    """
    A catalog assigns ids itself, and the name mapping of a new table has to have the same ones.
    """
    assert assign_fresh_schema_ids(iceberg.SCHEMA) == iceberg.SCHEMA
    assert iceberg.SCHEMA.name_mapping == assign_fresh_schema_ids(iceberg.SCHEMA).name_mapping
    assert ARCHIVED.names == [field.name for field in iceberg.SCHEMA.fields]


# DuckDB.


def test_duckdb_reads_a_continued_archive(
    kind: Kind, directory: WrittenDirectory, connection: Any
) -> None:
    expected = continued(kind, directory, MISSING)

    if kind.format == "delta":
        found = connection.execute(f"SELECT * FROM delta_scan('{kind.path}')")
    else:
        newest = max(kind.path.rglob("*.metadata.json"))
        found = connection.execute(f"SELECT * FROM iceberg_scan('{newest}')")

    rows = rows_of(found.to_arrow_table())
    assert expected == [(*row[:-1], row[-1] or None) for row in rows]
