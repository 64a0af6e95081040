"""
What Spark sends to a worker.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from barnabas.pipeline.planning import Work


@dataclass
class Task(InputPartition):
    """
    The work of one task.
    """

    work: Work
