"""
The interface between the readers of files and the two forms of output, and what these share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.protocol.records.batch.legacy import LegacyRecord
from barnabas.storage.dump.batches import DumpedBatch
from barnabas.storage.dump.decoders import Decoder
from barnabas.storage.dump.files import FileBatch
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.options import DumpOptions
from barnabas.storage.dump.output import Output
from barnabas.storage.dump.record_lines import OffsetGaps


class DumpReport(ABC):
    """
    Prints the contents of files, in their order. The methods for batches and records raise
    ``DumpFailure`` and ``KafkaError`` after they have printed everything in front of the flaw.
    """

    def __init__(self, output: Output, options: DumpOptions) -> None:
        self._output = output
        self._decoder: Decoder | None = None
        self._print_contents = options.print_contents
        """Whether to print keys and values; in JSON, headers too."""
        self._metadata = not options.has("skip-record-metadata")
        """Whether to print everything else of records; in JSON, control records too."""
        self._path = ""

    def decode_with(self, decoder: Decoder | None) -> None:
        """
        Decode keys and values with *decoder* from now on; with None, print them as text.
        """
        self._decoder = decoder

    def file(self, path: str) -> None:
        """
        Begin a file. *path* is as the user wrote it.
        """
        self._path = path

    @abstractmethod
    def unknown_file(self) -> None:
        """
        Print that the suffix of the file is unknown.
        """

    @abstractmethod
    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        """
        Print an object that is neither a batch nor a record; *kind* is its type in JSON.
        """

    @abstractmethod
    def batch(self, found: FileBatch, batch: DumpedBatch) -> None: ...

    @abstractmethod
    def records(self, batch: DumpedBatch, gaps: OffsetGaps) -> None: ...

    @abstractmethod
    def legacy_batch(self, found: FileBatch) -> None:
        """
        Print a message of version 0 or 1, wrapper or not, as the batch that it is.
        """

    @abstractmethod
    def legacy_records(self, records: Iterable[LegacyRecord], gaps: OffsetGaps) -> None: ...

    @abstractmethod
    def corrupt_snapshot(self, reason: str) -> None: ...

    @abstractmethod
    def findings(self, findings: Findings) -> None:
        """
        Print the findings, after all files.
        """
