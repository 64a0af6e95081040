"""
An archive of any format, in a directory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.pipeline.jobs.archive.job import Archived, archive
from barnabas.pipeline.jobs.archive.opening import open_table
from barnabas.pipeline.jobs.archive.table import ArchiveTable
from tests.pipeline.archive.archived import archived_rows
from tests.pipeline.archive.engines import delta_rows, iceberg_rows

TABLE = "lake.records"


@dataclass
class Kind:
    format: str
    path: Path

    @property
    def properties(self) -> dict[str, str]:
        return {
            "type": "sql",
            "uri": f"sqlite:///{self.path}/catalog.db",
            "warehouse": f"file://{self.path}/warehouse",
        }

    @property
    def name(self) -> str:
        return TABLE if self.format == "iceberg" else str(self.path)

    def open(self) -> ArchiveTable:
        if self.format != "iceberg":
            return open_table(self.path, self.format)
        self.path.mkdir(exist_ok=True)
        return open_table(TABLE, "iceberg", catalog="lake", catalog_properties=self.properties)

    def run(self, logs: Path, table: ArchiveTable | None = None, **more: Any) -> Archived:
        return archive(None, str(logs), table or self.open(), bytes_per_file=5_000, **more)

    def rows(self) -> list[tuple[Any, ...]]:
        if self.format == "parquet":
            return archived_rows(self.path)
        if self.format == "delta":
            return delta_rows(self.path)
        return iceberg_rows(TABLE, self.properties)

    def columns(self) -> list[str]:
        schema = self.delta().schema() if self.format == "delta" else self.loaded().schema()
        return [field.name for field in schema.fields]

    def files(self) -> list[Path]:
        """
        The files of the first partition of ``events``, those of killed runs included.
        """
        (directory,) = self.path.rglob("topic=events/partition=0")
        return sorted(directory.iterdir())

    def delta(self, version: int | None = None) -> Any:
        from deltalake import DeltaTable  # noqa: PLC0415  # not all have it

        return DeltaTable(str(self.path), version=version)

    def loaded(self) -> Any:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415  # not all have it

        return load_catalog("lake", **self.properties).load_table(TABLE)
