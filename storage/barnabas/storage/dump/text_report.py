"""
A dump as text, equal to that of Apache Kafka's tool to the character.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas.protocol.records.batch.legacy import LegacyRecord
from barnabas.protocol.records.record import RecordReader
from barnabas.storage.dump.batches import DumpedBatch, codec_name, read_message, timestamp_name
from barnabas.storage.dump.decoders import DumpedRecord, text_of
from barnabas.storage.dump.files import FileBatch
from barnabas.storage.dump.findings import KINDS, Findings
from barnabas.storage.dump.java_text import bool_text, optional_long
from barnabas.storage.dump.record_lines import (
    Contents,
    OffsetGaps,
    append_lines,
    plain_contents,
)
from barnabas.storage.dump.report import DumpReport

_LINES: Final[Mapping[str, str]] = {
    "log": "Log starting offset: {startOffset}\n",
    "bootstrapSnapshot": "KRaft bootstrap snapshot\n",
    "snapshot": "Snapshot end offset: {endOffset}, epoch: {epoch}\n",
    "invalidBytes": "Found {count} invalid bytes at the end of {name}\n",
    "emptyIndex": "{path} is empty.\n",
    "saneIndex": "{path} passed sanity check.\n",
}
"""The lines that are not a list of names and values."""

_OPTIONAL: Final = "currentTxnFirstOffset"


class TextReport(DumpReport):
    """
    Writes the lines of Kafka's DumpLogSegments.
    """

    def file(self, path: str) -> None:
        super().file(path)
        self._output.print("Dumping ", path, "\n")

    def unknown_file(self) -> None:
        self._output.remark(f"Ignoring unknown file {self._path}")

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        if kind in _LINES:
            path = self._path
            line = _LINES[kind].format(path=path, name=path.rpartition("/")[2], **facts)
        else:
            texts = (
                f"{name}: {optional_long(value) if name == _OPTIONAL else value}"
                for name, value in facts.items()
            )
            line = " ".join(texts) + "\n"
        self._output.print(line)

    def batch(self, found: FileBatch, batch: DumpedBatch) -> None:
        self._output.print(
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset}"
            f" count: {batch.record_count} baseSequence: {batch.base_sequence}"
            f" lastSequence: {batch.last_sequence} producerId: {batch.producer_id}"
            f" producerEpoch: {batch.producer_epoch}"
            f" partitionLeaderEpoch: {batch.partition_leader_epoch}"
            f" isTransactional: {bool_text(batch.is_transactional)}"
            f" isControl: {bool_text(batch.is_control)}"
            f" deleteHorizonMs: {optional_long(batch.delete_horizon_ms)}"
        )
        # Kafka has printed the above when it fails on an unknown codec.
        self._batch_end(found, batch, batch.max_timestamp)

    def _batch_end(
        self, found: FileBatch, batch: DumpedBatch | LegacyRecord, timestamp: int
    ) -> None:
        self._output.print(
            f" position: {found.position} {timestamp_name(batch)}: {timestamp}"
            f" size: {found.size} magic: {found.magic} compresscodec: {codec_name(batch)}"
            f" crc: {batch.crc} isvalid: {bool_text(batch.is_valid())}\n"
        )

    def records(self, batch: DumpedBatch, gaps: OffsetGaps) -> None:
        reader = batch.reader()
        contents: Contents | None = None
        if batch.is_control:
            contents = _control_text if self._metadata else None
        elif self._print_contents:
            contents = plain_contents if self._decoder is None else self._decoded
        name = timestamp_name(batch)
        more = True
        while more:
            lines: list[str] = []
            try:
                more = append_lines(
                    reader, lines, gaps, name, metadata=self._metadata, contents=contents
                )
            finally:
                self._output.print(*lines)

    def legacy_batch(self, found: FileBatch) -> None:
        self._output.print(f"offset: {found.offset}")
        message = read_message(found)
        self._batch_end(found, message, message.timestamp)

    def legacy_records(self, records: Iterable[LegacyRecord], gaps: OffsetGaps) -> None:
        for record in records:
            record.ensure_not_compressed()
            gaps.see(record.offset)
            if self._metadata:
                self._output.print(
                    f"| offset: {record.offset} {timestamp_name(record)}: {record.timestamp}"
                    f" keySize: {record.key_size} valueSize: {record.value_size}"
                    f" isValid: {bool_text(record.is_valid())} crc: {record.crc}"
                )
            text = ""
            if self._print_contents:
                decode = _plain if self._decoder is None else self._decoded
                text = decode(record)
            self._output.print("|" if text and not self._metadata else "", text, "\n")

    def corrupt_snapshot(self, reason: str) -> None:
        self._output.remark(reason)

    def findings(self, findings: Findings) -> None:
        titled = None
        for finding in findings.all():
            kind = KINDS[finding.kind]
            if titled != (finding.kind, finding.path):
                self._output.remark(kind.title + finding.path)
                titled = finding.kind, finding.path
            self._output.remark(kind.line.format(finding.first, finding.second))

    def _decoded(self, record: DumpedRecord) -> str:
        assert self._decoder is not None
        decoded = self._decoder.decode(record)
        return _contents_text(decoded.key, decoded.value)


def _plain(record: LegacyRecord) -> str:
    return _contents_text(record.key(), record.value())


def _contents_text(key: Any, value: Any) -> str:
    text = "" if key is None else f" key: {text_of(key)}"
    return text if value is None else f"{text} payload: {text_of(value)}"


def _control_text(reader: RecordReader) -> str:
    from barnabas.storage.dump.control import control_record  # noqa: PLC0415  # seldom there

    return control_record(reader.key(), reader.value()).text()
