"""
What is known of the records of many batches: where in a buffer their fields are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from barnabas.pipeline.decoding.varint_columns import Bytes, Ints

SHORT_BYTES: Final = 12
"""A piece of at most so many bytes is in its view itself."""


class Spans(NamedTuple):
    """
    Pieces of a buffer, of which some may be null.
    """

    views: Ints
    """
    Two numbers of each, which are what Arrow calls a view: the length, and in the upper half of the
    second one where it begins. A short piece has its bytes behind the length instead. Where Arrow
    has the first bytes of a long one too, there is 0: who copies does not look at them. As Arrow
    has it, a buffer ends before 2 GiB.
    """
    valid: npt.NDArray[np.bool_]
    """False where there is null; those have no bytes."""

    @classmethod
    def of(cls, data: Bytes, starts: Ints, lengths: Ints) -> Spans:
        """
        Those that begin at *starts* in *data*; one whose length is negative is null.
        """
        views = np.zeros((len(starts), 2), np.int64)
        views[:, 0] = np.maximum(lengths, 0)
        views[:, 1] = starts << 32
        short = np.flatnonzero(lengths <= SHORT_BYTES)
        if len(short):
            within = np.arange(SHORT_BYTES)
            content = data.take(starts[short, None] + within, mode="clip")
            content[within >= lengths[short, None]] = 0
            views.view(np.uint8)[short, 4:] = content
        return cls(views.reshape(-1), lengths >= 0)

    def take(self, rows: Ints) -> Spans:
        return Spans(self.views.reshape(-1, 2)[rows].reshape(-1), self.valid[rows])


class Fields(NamedTuple):
    """
    Which fields of records are wanted, beside the numbers that all have.
    """

    keys: bool
    values: bool
    headers: bool


class HeaderSpans(NamedTuple):
    """
    The headers of all records one after the other, and how many each record has.
    """

    counts: Ints
    names: Spans
    values: Spans


_NONE: Final = np.empty(0, np.int64)
NO_SPANS: Final = Spans(_NONE, np.empty(0, np.bool_))


class RecordSpans(NamedTuple):
    """
    The fields of records. What was not asked for may be empty.

    The arrays may be used again for what is found next in the same thread.
    """

    ends: Ints
    """Where each record ends."""
    timestamps: Ints
    """In ms, as the producer has set them."""
    offsets: Ints
    keys: Spans
    values: Spans
    header_counts: Ints
    headers_at: Ints
    """Where the first header of each record begins, if it has one."""

    def take(self, rows: Ints) -> RecordSpans:
        """
        Those of the records number *rows*.
        """
        has_headers = len(self.header_counts) > 0
        return RecordSpans(
            self.ends[rows],
            self.timestamps[rows],
            self.offsets[rows],
            self.keys.take(rows) if len(self.keys.valid) else NO_SPANS,
            self.values.take(rows) if len(self.values.valid) else NO_SPANS,
            self.header_counts[rows] if has_headers else self.header_counts,
            self.headers_at[rows] if has_headers else self.headers_at,
        )


NO_RECORDS: Final = RecordSpans(_NONE, _NONE, _NONE, NO_SPANS, NO_SPANS, _NONE, _NONE)
