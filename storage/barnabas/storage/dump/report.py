"""
What there is to tell about files, apart from how it looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from barnabas.storage.dump.batch_view import BatchView
from barnabas.storage.dump.decoders import Decoder
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.legacy import LegacyRecord
from barnabas.storage.dump.log_slice import FileBatch
from barnabas.storage.dump.record_lines import OffsetGaps
from barnabas.storage.dump.snapshots import Producer


class Report(Protocol):
    """
    Is told what the files hold, in order. Methods about records raise ``DumpFailure``, as the
    readers do that they are given, when they have shown what comes before.
    """

    def decode_with(self, decoder: Decoder | None) -> None:
        """
        Give keys and values a meaning from now on; with None, show them as they are.
        """

    def file(self, path: str) -> None:
        """
        A file begins; *path* is as the user gave it.
        """

    def unknown_file(self, path: str) -> None:
        """
        The file is of no kind that can be dumped.
        """

    def log(self, start_offset: int) -> None: ...

    def bootstrap_snapshot(self) -> None: ...

    def snapshot(self, end_offset: int, epoch: int) -> None: ...

    def batch(self, view: BatchView) -> None: ...

    def records(self, view: BatchView, gaps: OffsetGaps) -> None: ...

    def legacy_batch(self, batch: FileBatch) -> None:
        """
        A message of version 0 or 1, with or without others inside.
        """

    def legacy_records(self, records: Iterator[LegacyRecord], gaps: OffsetGaps) -> None: ...

    def invalid_bytes(self, count: int, name: str) -> None:
        """
        So many bytes at the end of the file *name* are no whole batch.
        """

    def empty_index(self, path: str) -> None: ...

    def sane_index(self, path: str) -> None: ...

    def offset_entry(self, offset: int, position: int) -> None: ...

    def time_entry(self, timestamp: int, offset: int) -> None: ...

    def aborted_txn(
        self,
        version: int,
        producer_id: int,
        first_offset: int,
        last_offset: int,
        last_stable_offset: int,
    ) -> None: ...

    def producer(self, producer: Producer) -> None: ...

    def corrupt_snapshot(self, reason: str) -> None: ...

    def findings(self, findings: Findings) -> None:
        """
        All files were told.
        """
