from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.opening import open_table
from tests.pipeline.archive.archived import closed_rows
from tests.pipeline.archive.engines import rows_of
from tests.pipeline.killed_at import TABLE, catalog_properties


def test_duckdb_reads_a_delta_archive(connection: Any, logs: Path, tmp_path: Path) -> None:
    archive(None, str(logs), open_table(tmp_path, "delta"), bytes_per_file=5_000)

    found = connection.execute(f"SELECT * FROM delta_scan('{tmp_path}')")

    assert closed_rows(logs) == rows_of(found.to_arrow_table())


def test_duckdb_reads_an_iceberg_archive(connection: Any, logs: Path, tmp_path: Path) -> None:
    properties = catalog_properties(f"file://{tmp_path}", str(tmp_path / "catalog.db"))
    table = open_table(TABLE, "iceberg", catalog="lake", catalog_properties=properties)
    archive(None, str(logs), table, bytes_per_file=5_000)

    newest = max(tmp_path.rglob("*.metadata.json"))
    found = connection.execute(f"SELECT * FROM iceberg_scan('{newest}')")

    assert closed_rows(logs) == rows_of(found.to_arrow_table())
