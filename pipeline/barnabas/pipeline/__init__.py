"""
Log directories as tables: for Spark, for Arrow, and as jobs.

The functions here are loaded when they are first used. Those that read files in this process do not
need Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.archive.job import archive
    from barnabas.pipeline.jobs.archive.opening import open_table, storage_options
    from barnabas.pipeline.jobs.archive.reading import read_archive
    from barnabas.pipeline.jobs.compact.job import compact
    from barnabas.pipeline.jobs.replay.job import replay
    from barnabas.pipeline.jobs.report.job import report
    from barnabas.pipeline.rows import scan
    from barnabas.pipeline.spark.source import register
    from barnabas.pipeline.values.from_registry import from_registry
    from barnabas.pipeline.values.to_registry import to_registry

__all__ = [
    "archive",
    "compact",
    "from_registry",
    "open_table",
    "read_archive",
    "register",
    "replay",
    "report",
    "scan",
    "storage_options",
    "to_registry",
]

_MODULES: Final = {
    "archive": "jobs.archive.job",
    "compact": "jobs.compact.job",
    "from_registry": "values.from_registry",
    "open_table": "jobs.archive.opening",
    "read_archive": "jobs.archive.reading",
    "register": "spark.source",
    "replay": "jobs.replay.job",
    "report": "jobs.report.job",
    "scan": "rows",
    "to_registry": "values.to_registry",
    "storage_options": "jobs.archive.opening",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
