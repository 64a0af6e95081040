"""
A dump as text, equal to that of Apache Kafka's tool to the character.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.storage.dump.batch_view import BatchView
from barnabas.storage.dump.decoders import Decoder, DumpedRecord, text_of
from barnabas.storage.dump.findings import TITLES, Findings
from barnabas.storage.dump.java_text import bool_text, optional_long
from barnabas.storage.dump.legacy import LegacyRecord, outer_record
from barnabas.storage.dump.log_slice import FileBatch
from barnabas.storage.dump.output import Output
from barnabas.storage.dump.record_lines import (
    Contents,
    OffsetGaps,
    append_lines,
    plain_contents,
)
from barnabas.storage.dump.record_reader import RecordReader
from barnabas.storage.dump.snapshots import Producer

_END: Final = "\n"


class TextReport:
    """
    Writes what Kafka's DumpLogSegments prints.

    Args:
        print_contents: whether to show keys and values.
        skip_record_metadata: whether to show nothing else of records.
    """

    def __init__(
        self,
        output: Output,
        *,
        print_contents: bool,
        skip_record_metadata: bool,
    ) -> None:
        self._output = output
        self._decoder: Decoder | None = None
        self._metadata = not skip_record_metadata
        self._contents: Contents | None = plain_contents if print_contents else None

    def decode_with(self, decoder: Decoder | None) -> None:
        self._decoder = decoder
        if self._contents is not None:
            self._contents = plain_contents if decoder is None else self._decoded

    def file(self, path: str) -> None:
        self._output.print("Dumping ", path, _END)

    def unknown_file(self, path: str) -> None:
        self._output.remark(f"Ignoring unknown file {path}")

    def log(self, start_offset: int) -> None:
        self._output.print(f"Log starting offset: {start_offset}\n")

    def bootstrap_snapshot(self) -> None:
        self._output.print("KRaft bootstrap snapshot\n")

    def snapshot(self, end_offset: int, epoch: int) -> None:
        self._output.print(f"Snapshot end offset: {end_offset}, epoch: {epoch}\n")

    def batch(self, view: BatchView) -> None:
        self._output.print(
            f"baseOffset: {view.base_offset} lastOffset: {view.last_offset}"
            f" count: {view.record_count} baseSequence: {view.base_sequence}"
            f" lastSequence: {view.last_sequence} producerId: {view.producer_id}"
            f" producerEpoch: {view.producer_epoch}"
            f" partitionLeaderEpoch: {view.partition_leader_epoch}"
            f" isTransactional: {bool_text(view.is_transactional)}"
            f" isControl: {bool_text(view.is_control)}"
            f" deleteHorizonMs: {optional_long(view.delete_horizon_ms)}"
        )
        # Printed apart: Kafka fails on an unknown codec when the above is out.
        batch = view.batch
        self._output.print(
            f" position: {batch.position} {view.timestamp_name}: {view.max_timestamp}"
            f" size: {batch.size} magic: {batch.magic} compresscodec: {view.codec_name}"
            f" crc: {view.crc} isvalid: {bool_text(view.is_valid())}\n"
        )

    def records(self, view: BatchView, gaps: OffsetGaps) -> None:
        reader = view.records()
        contents = self._contents
        if view.is_control:
            contents = _control_text if self._metadata else None
        more = True
        while more:
            lines: list[str] = []
            try:
                more = append_lines(
                    reader,
                    lines,
                    gaps,
                    view.timestamp_name,
                    metadata=self._metadata,
                    contents=contents,
                )
            finally:
                self._output.print_all(lines)

    def legacy_batch(self, batch: FileBatch) -> None:
        self._output.print(f"offset: {batch.offset}")
        record = outer_record(batch)
        self._output.print(
            f" position: {batch.position} {record.timestamp_name}: {record.timestamp}"
            f" size: {batch.size} magic: {batch.magic} compresscodec: {record.codec_name}"
            f" crc: {record.crc} isvalid: {bool_text(record.is_valid())}\n"
        )

    def legacy_records(self, records: Iterator[LegacyRecord], gaps: OffsetGaps) -> None:
        for record in records:
            gaps.see(record.offset)
            if self._metadata:
                self._output.print(
                    f"| offset: {record.offset} {record.timestamp_name}: {record.timestamp}"
                    f" keySize: {record.key_size} valueSize: {record.value_size}"
                    f" isValid: {bool_text(record.is_valid())} crc: {record.crc}"
                )
            text = ""
            if self._contents is not None:
                text = _plain(record) if self._decoder is None else self._decoded(record)
            self._output.print("|" if text and not self._metadata else "", text, _END)

    def invalid_bytes(self, count: int, name: str) -> None:
        self._output.print(f"Found {count} invalid bytes at the end of {name}\n")

    def empty_index(self, path: str) -> None:
        self._output.print(path, " is empty.\n")

    def sane_index(self, path: str) -> None:
        self._output.print(path, " passed sanity check.\n")

    def offset_entry(self, offset: int, position: int) -> None:
        self._output.print(f"offset: {offset} position: {position}\n")

    def time_entry(self, timestamp: int, offset: int) -> None:
        self._output.print(f"timestamp: {timestamp} offset: {offset}\n")

    def aborted_txn(
        self,
        version: int,
        producer_id: int,
        first_offset: int,
        last_offset: int,
        last_stable_offset: int,
    ) -> None:
        self._output.print(
            f"version: {version} producerId: {producer_id} firstOffset: {first_offset}"
            f" lastOffset: {last_offset} lastStableOffset: {last_stable_offset}\n"
        )

    def producer(self, producer: Producer) -> None:
        self._output.print(
            f"producerId: {producer.producer_id} producerEpoch: {producer.producer_epoch}"
            f" coordinatorEpoch: {producer.coordinator_epoch}"
            f" currentTxnFirstOffset: {optional_long(producer.current_txn_first_offset)}"
            f" lastTimestamp: {producer.timestamp}"
        )
        if producer.has_batch:
            self._output.print(
                f" firstSequence: {producer.first_sequence}"
                f" lastSequence: {producer.last_sequence} lastOffset: {producer.last_offset}"
                f" offsetDelta: {producer.offset_delta} timestamp: {producer.timestamp}"
            )
        self._output.print(_END)

    def corrupt_snapshot(self, reason: str) -> None:
        self._output.remark(reason)

    def findings(self, findings: Findings) -> None:
        told = None
        for finding in findings.all():
            title, line = TITLES[finding.kind]
            if told != (finding.kind, finding.path):
                self._output.remark(title + finding.path)
                told = finding.kind, finding.path
            self._output.remark(line.format(finding.first, finding.second))

    def _decoded(self, record: DumpedRecord) -> str:
        assert self._decoder is not None
        decoded = self._decoder.decode(record)
        key = "" if decoded.key is None else f" key: {text_of(decoded.key)}"
        return key if decoded.value is None else f"{key} payload: {text_of(decoded.value)}"


def _control_text(reader: RecordReader) -> str:
    from barnabas.storage.dump.control import control_record  # noqa: PLC0415  # seldom there

    return control_record(reader.key(), reader.value()).text()


def _plain(record: LegacyRecord) -> str:
    key, value = record.key(), record.value()
    text = "" if key is None else f" key: {text_of(key)}"
    return text if value is None else f"{text} payload: {text_of(value)}"
