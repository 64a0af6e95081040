"""
Log directories as tables: for Spark, for Arrow, and as jobs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["register"]


def register(spark: Any) -> None:
    """
    Let ``spark.read.format("barnabas")`` and ``spark.readStream`` find the source.

    Args:
        spark: a ``SparkSession``.
    """
    # What reads files in this process does not need Spark, nor does what compiles this package.
    import_module("barnabas.pipeline.spark.source").register(spark)
