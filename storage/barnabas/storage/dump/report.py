"""
The interface between the readers of files and the two forms of output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from barnabas.protocol.records.batch.legacy import LegacyRecord
from barnabas.storage.dump.batches import DumpedBatch
from barnabas.storage.dump.decoders import Decoder
from barnabas.storage.dump.files import FileBatch
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.record_lines import OffsetGaps


class Report(Protocol):
    """
    Prints the contents of files, in their order. The methods for batches and records raise
    ``DumpFailure`` and ``KafkaError`` after they have printed everything in front of the flaw.
    """

    def decode_with(self, decoder: Decoder | None) -> None:
        """
        Decode keys and values with *decoder* from now on; with None, print them as text.
        """

    def file(self, path: str) -> None:
        """
        Begin a file. *path* is as the user wrote it.
        """

    def unknown_file(self) -> None:
        """
        Print that the suffix of the file is unknown.
        """

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        """
        Print an object that is neither a batch nor a record; *kind* is its type in JSON.
        """

    def batch(self, found: FileBatch, batch: DumpedBatch) -> None: ...

    def records(self, batch: DumpedBatch, gaps: OffsetGaps) -> None: ...

    def legacy_batch(self, found: FileBatch) -> None:
        """
        Print a message of version 0 or 1, wrapper or not, as the batch that it is.
        """

    def legacy_records(self, records: Iterable[LegacyRecord], gaps: OffsetGaps) -> None: ...

    def corrupt_snapshot(self, reason: str) -> None: ...

    def findings(self, findings: Findings) -> None:
        """
        Print the findings, after all files.
        """
