"""
An archive of any format, in a directory.
"""

from __future__ import annotations

import shutil
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

    def versions(self) -> list[int]:
        """
        The versions or snapshots of the table that can be restored, the oldest first.
        """
        if self.format == "delta":
            return list(range(self.delta().version()))
        return [snapshot.snapshot_id for snapshot in self.loaded().snapshots()]

    def restore(self, version: int) -> None:
        """
        Make *version* the current one, as RESTORE of Delta and set_current_snapshot of Iceberg.
        """
        if self.format == "delta":
            self.delta().restore(version)
        else:
            self.loaded().manage_snapshots().set_current_snapshot(version).commit()

    def delete(self, predicate: str) -> None:
        table = self.delta() if self.format == "delta" else self.loaded()
        table.delete(predicate)

    def forget(self) -> None:
        """
        Make the table one with the same rows and no notes, as a clone or a copy by an engine is.
        """
        if self.format == "delta":
            for path in (self.path / "_delta_log").glob("*.json"):
                lines = path.read_text().splitlines(keepends=True)
                path.write_text("".join(line for line in lines if '"txn"' not in line[:8]))
            return
        with self.loaded().transaction() as transaction:
            names = [name for name in self.loaded().properties if name.startswith("barnabas.")]
            transaction.remove_properties(*names)

    def drop_statistics(self) -> int:
        """
        Write all rows again, into files without statistics; return how many there are.
        """
        rows = len(self.rows())
        if self.format == "delta":
            from deltalake import write_deltalake  # noqa: PLC0415  # not all have it

            none = {"delta.dataSkippingNumIndexedCols": "0"}
            self.delta().alter.set_table_properties(none)
            data = self.delta().to_pyarrow_table()
            write_deltalake(str(self.path), data, mode="overwrite")
        else:
            with self.loaded().transaction() as transaction:
                none = {name: "none" for name in self.loaded().properties if ".metrics." in name}
                transaction.set_properties(none)
            self.loaded().overwrite(self.loaded().scan().to_arrow())
        return rows

    def drop(self) -> None:
        if self.format == "delta":
            shutil.rmtree(self.path)
        else:
            from pyiceberg.catalog import load_catalog  # noqa: PLC0415  # not all have it

            load_catalog("lake", **self.properties).drop_table(TABLE)
