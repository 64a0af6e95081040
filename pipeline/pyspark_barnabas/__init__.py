"""
The data source ``barnabas``, where Spark finds it by itself.

Spark imports every installed package whose name begins with ``pyspark_``, in any session whose
query names a format that is no format of its own, and takes its ``DefaultSource`` (PySpark's
``lookup_data_sources.py``). So the import is quick, and succeeds without the extra ``spark``: an
error would take all other sources in Python from the session.
"""

from __future__ import annotations

import sys
from importlib import import_module

from pyspark.sql.datasource import DataSource

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """
    The data source; what Spark makes of it is a ``BarnabasSource``.
    """

    def __new__(cls, options: dict[str, str]) -> DataSource:  # type: ignore[misc]  # see above
        """
        Raises:
            ModuleNotFoundError: the extra ``spark`` is not installed.
        """
        try:
            module = import_module("barnabas.pipeline.spark.source")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"The data source barnabas needs {error.name}, which {sys.executable} does not"
                " have: pip install 'barnabas[spark]'.",
                name=error.name,
            ) from error
        source: DataSource = module.BarnabasSource(options)
        return source

    @classmethod
    def name(cls) -> str:
        return "barnabas"
