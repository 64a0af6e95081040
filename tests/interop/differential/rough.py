"""
What can be compared of an answer that may tell of everything there is.
"""

from __future__ import annotations

import re
from typing import Any, Final

OWNED: Final = re.compile(r"[a-z-]+-(\d+)")
"""Names that a workload uses end with its seed."""


def rough(plain: Any, seed: int) -> Any:
    """
    A plain answer without what other workloads have made, its arrays in an order of their own, and
    of messages only whether there are any.
    """
    if isinstance(plain, dict):
        return {name: _rough_field(name, value, seed) for name, value in plain.items()}
    if isinstance(plain, list):
        kept = (rough(element, seed) for element in plain if not _is_of_other(element, seed))
        return sorted(kept, key=repr)
    return plain


def _rough_field(name: str, value: Any, seed: int) -> Any:
    return bool(value) if name.endswith("error_message") else rough(value, seed)


def _is_of_other(element: Any, seed: int) -> bool:
    if isinstance(element, dict):
        return _has_own_size(element) or any(
            _is_of_other(value, seed) for value in element.values() if isinstance(value, str)
        )
    owned = OWNED.fullmatch(element) if isinstance(element, str) else None
    return owned is not None and int(owned[1]) != seed


def _has_own_size(topic: dict[str, Any]) -> bool:
    """
    Whether it tells the size of a topic that all workloads add to.
    """
    partitions = topic.get("partitions")
    return (
        str(topic.get("name")).startswith("__")
        and isinstance(partitions, list)
        and any("partition_size" in each for each in partitions if isinstance(each, dict))
    )
