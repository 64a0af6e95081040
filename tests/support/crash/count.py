"""
How many crash points a run of the tests has gone through.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

CRASH_POINTS: Final[Counter[str]] = Counter()
"""By what was crashed, or failed."""
