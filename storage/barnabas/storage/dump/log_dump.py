"""
Dumping ``.log`` and ``.checkpoint`` files, which are both sequences of batches.
"""

from __future__ import annotations

from barnabas.storage.dump.batch_view import view
from barnabas.storage.dump.failure import DumpFailure
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.java_text import parse_long
from barnabas.storage.dump.legacy import outer_record
from barnabas.storage.dump.log_slice import LARGEST_INT, FileBatch
from barnabas.storage.dump.opening import DumpedFile, open_log
from barnabas.storage.dump.record_lines import OffsetGaps
from barnabas.storage.dump.report import Report

LOG_SUFFIX = ".log"
BOOTSTRAP_SNAPSHOT = "bootstrap.checkpoint"
_OFFSET_DIGITS = 20
_EPOCH_END = _OFFSET_DIGITS + 1 + 10


class LogDump:
    """
    Dumps logs and snapshots of the metadata log.

    Args:
        deep: whether to look at the records in the batches.
        max_bytes: how much of a file to look at.
    """

    def __init__(self, report: Report, findings: Findings, *, deep: bool, max_bytes: int) -> None:
        self._report = report
        self._findings = findings
        self._deep = deep
        self._max_bytes = max_bytes

    def dump(self, file: DumpedFile) -> None:
        """
        Raises:
            DumpFailure: there is no such file, or what it holds cannot be read on.
        """
        self._head(file)
        gaps = OffsetGaps()
        try:
            with open_log(file.files, file.path) as log:
                part = log.slice(0, self._max_bytes)
                valid_bytes = 0
                for batch in part.batches():
                    self._batch(batch, gaps)
                    valid_bytes = batch.position + batch.size
                invalid_bytes = part.size - valid_bytes
                if invalid_bytes > 0 and self._max_bytes == LARGEST_INT:
                    self._report.invalid_bytes(invalid_bytes, file.name)
        finally:
            self._findings.gaps(file.absolute_path, gaps.pairs)

    def _head(self, file: DumpedFile) -> None:
        if file.name.endswith(LOG_SUFFIX):
            self._report.log(file.base_offset)
        elif file.name == BOOTSTRAP_SNAPSHOT:
            self._report.bootstrap_snapshot()
        else:
            self._report.snapshot(*_snapshot_id(file.name))

    def _batch(self, batch: FileBatch, gaps: OffsetGaps) -> None:
        if batch.magic >= 2:
            shown = view(batch)
            self._report.batch(shown)
            if self._deep:
                self._report.records(shown, gaps)
        else:
            self._report.legacy_batch(batch)
            if self._deep:
                self._report.legacy_records(outer_record(batch).records(), gaps)


def _snapshot_id(name: str) -> tuple[int, int]:
    """
    End offset and epoch in the name of a snapshot (Kafka's Snapshots.parse).

    Raises:
        DumpFailure: they are not there.
    """
    for end in (_OFFSET_DIGITS, _EPOCH_END):
        if len(name) < end:
            begin = 0 if end == _OFFSET_DIGITS else _OFFSET_DIGITS + 1
            raise DumpFailure(
                "java.lang.StringIndexOutOfBoundsException",
                f"begin {begin}, end {end}, length {len(name)}",
            )
    end_offset = parse_long(name[:_OFFSET_DIGITS])
    return end_offset, parse_long(name[_OFFSET_DIGITS + 1 : _EPOCH_END], LARGEST_INT)
