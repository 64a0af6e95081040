"""
Differences that are known and stay, by the name that they have in ``docs/differences.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tests.interop.differential.answers import Difference
from tests.interop.differential.sides import SILENT


class Place(NamedTuple):
    """
    Where a difference was seen.
    """

    kind: str
    step: str
    difference: Difference


class Known(NamedTuple):
    """
    A class of differences.

    Args:
        holds: whether a difference belongs to it.
        ends: whether nothing that follows in the workload can be compared any more.
    """

    holds: Callable[[Place], bool]
    ends: bool


def _is_zstd_corruption(place: Place) -> bool:
    where = place.difference.where
    if place.kind != "damaged-codecs":
        return False
    # Taken by both, and stored anew: each has read something else.
    if where.endswith((".crc", ".payload")):
        return True
    return "zstd, records[" in place.step and where.endswith(("error_code", "base_offset"))


def _has_timed_out(place: Place) -> bool:
    kafka = place.difference.kafka
    return place.kind == "requests" and (kafka == 7 or (isinstance(kafka, list) and 7 in kafka))


def _is_unanswered(place: Place) -> bool:
    return place.difference.kafka == SILENT and place.difference.barnabas != SILENT


KNOWN: Final[Mapping[str, Known]] = {
    "corrupt-zstd": Known(_is_zstd_corruption, ends=True),
    "timed-out": Known(_has_timed_out, ends=True),
    "unanswered": Known(_is_unanswered, ends=True),
}
"""
Classes that are found by comparing. Others are never seen, since no workload goes there or both
sides are read in a way that leaves them out.
"""

LEFT_OUT: Final = frozenset(
    {
        "cleaner-checkpoint-early",
        "config-operation",
        "full-index-after-crash",
        "gap-after-power-loss",
        "lz4-low-levels",
        "snappy-bytes",
        "records-null",
        "index-larger-than-limit",
        "pattern-classes",
    }
)
"""Classes that workloads keep clear of, or that are compared by what the bytes mean."""


def class_of(place: Place) -> tuple[str, Known] | None:
    """
    The known class to which a difference belongs, by name.
    """
    for name, known in KNOWN.items():
        if known.holds(place):
            return name, known
    return None
