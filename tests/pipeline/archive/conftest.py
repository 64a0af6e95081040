"""
Logs to archive, and DuckDB with its own readers of Delta and Iceberg.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from tests.pipeline.archive.archived import SEGMENT_BYTES, fill, written_logs
from tests.support.log_directory import WrittenDirectory

EXTENSIONS: Final = ("avro", "delta", "iceberg")


@pytest.fixture(scope="session")
def connection() -> Any:
    """
    A connection with the extensions from packages, which DuckDB would otherwise download.
    """
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    for name in EXTENSIONS:
        pytest.importorskip(f"duckdb_extension_{name}", reason=f"duckdb's {name} is not installed")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in EXTENSIONS:
        package = Path(import_module(f"duckdb_extension_{name}").__path__[0])
        (extension,) = package.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@pytest.fixture
def directory(tmp_path: Path) -> WrittenDirectory:
    directory = WrittenDirectory(tmp_path / "logs")
    fill(directory.log(segment_bytes=SEGMENT_BYTES), 200)
    directory.checkpoint()
    return directory


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_logs(tmp_path_factory.mktemp("logs")).path
