"""
The old name of ``barnabas.pipeline.register``.
"""

from __future__ import annotations

import warnings

from barnabas.pipeline.spark.source import register

__all__ = ["register"]

warnings.warn(
    "barnabas.pipeline.source is the old name: use `from barnabas.pipeline import register`",
    DeprecationWarning,
    stacklevel=2,
)
