"""
A dump as JSON: one object a line, each with its ``type`` and the ``file`` that it is about.

``docs/dump-log.md`` lists the objects and their fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from barnabas.storage.dump.batch_view import BatchView
from barnabas.storage.dump.control import control_record
from barnabas.storage.dump.decoders import Decoded, Decoder, DumpedRecord, Raw
from barnabas.storage.dump.decoders.coordinator import DELETED
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.jackson import json_text
from barnabas.storage.dump.java_text import utf8_text
from barnabas.storage.dump.legacy import LegacyRecord, outer_record
from barnabas.storage.dump.log_slice import FileBatch
from barnabas.storage.dump.output import Output
from barnabas.storage.dump.record_lines import OffsetGaps
from barnabas.storage.dump.record_reader import RecordReader
from barnabas.storage.dump.snapshots import Producer

_PAIRS: Final[Mapping[str, tuple[str, str]]] = {
    "indexMismatch": ("indexOffset", "logOffset"),
    "timestampMismatch": ("indexTimestamp", "logTimestamp"),
    "outOfOrderTimestamp": ("indexTimestamp", "previousTimestamp"),
    "offsetNotFound": ("indexOffset", "logOffset"),
    "gap": ("offset", "nextOffset"),
}
"""
How the two numbers of each kind of finding are called.
"""


class JsonReport:
    """
    Writes the objects.

    Args:
        print_contents: whether to show keys, values and headers.
        skip_record_metadata: whether to show nothing else of records, and no control records.
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
        self._print_contents = print_contents
        self._metadata = not skip_record_metadata
        self._path = ""

    def decode_with(self, decoder: Decoder | None) -> None:
        self._decoder = decoder

    def file(self, path: str) -> None:
        self._path = path

    def unknown_file(self, path: str) -> None:
        self._tell("unknownFile", {})

    def log(self, start_offset: int) -> None:
        self._tell("log", {"startOffset": start_offset})

    def bootstrap_snapshot(self) -> None:
        self._tell("bootstrapSnapshot", {})

    def snapshot(self, end_offset: int, epoch: int) -> None:
        self._tell("snapshot", {"endOffset": end_offset, "epoch": epoch})

    def batch(self, view: BatchView) -> None:
        batch = view.batch
        self._tell(
            "batch",
            {
                "baseOffset": view.base_offset,
                "lastOffset": view.last_offset,
                "count": view.record_count,
                "baseSequence": view.base_sequence,
                "lastSequence": view.last_sequence,
                "producerId": view.producer_id,
                "producerEpoch": view.producer_epoch,
                "partitionLeaderEpoch": view.partition_leader_epoch,
                "isTransactional": view.is_transactional,
                "isControl": view.is_control,
                "deleteHorizonMs": view.delete_horizon_ms,
                "position": batch.position,
                "timestampType": view.timestamp_name,
                "baseTimestamp": view.base_timestamp,
                "maxTimestamp": view.max_timestamp,
                "size": batch.size,
                "magic": batch.magic,
                "attributes": view.attributes,
                "compresscodec": view.codec_name,
                "crc": view.crc,
                "isvalid": view.is_valid(),
            },
        )

    def records(self, view: BatchView, gaps: OffsetGaps) -> None:
        reader = view.records()
        while reader.advance():
            gaps.see(reader.offset)
            told: dict[str, Any] = {}
            if self._metadata:
                told = {
                    "offset": reader.offset,
                    "timestampType": view.timestamp_name,
                    "timestamp": reader.timestamp,
                    "keySize": reader.key_size,
                    "valueSize": reader.value_size,
                    "sequence": reader.sequence,
                    "headerKeys": [utf8_text(name) for name, _ in reader.headers()],
                }
            if view.is_control:
                if self._metadata:
                    self._tell("controlRecord", told | _control(reader))
            else:
                self._tell("record", told | self._headers(reader) | self._contents(reader))

    def legacy_batch(self, batch: FileBatch) -> None:
        record = outer_record(batch)
        self._tell(
            "batch",
            {
                "lastOffset": batch.offset,
                "position": batch.position,
                "timestampType": record.timestamp_name,
                "maxTimestamp": record.timestamp,
                "size": batch.size,
                "magic": batch.magic,
                "attributes": record.attributes,
                "compresscodec": record.codec_name,
                "crc": record.crc,
                "isvalid": record.is_valid(),
            },
        )

    def legacy_records(self, records: Iterator[LegacyRecord], gaps: OffsetGaps) -> None:
        for record in records:
            gaps.see(record.offset)
            told: dict[str, Any] = {}
            if self._metadata:
                told = {
                    "offset": record.offset,
                    "timestampType": record.timestamp_name,
                    "timestamp": record.timestamp,
                    "keySize": record.key_size,
                    "valueSize": record.value_size,
                    "isValid": record.is_valid(),
                    "crc": record.crc,
                }
            self._tell("record", told | self._contents(record))

    def invalid_bytes(self, count: int, name: str) -> None:
        self._tell("invalidBytes", {"count": count})

    def empty_index(self, path: str) -> None:
        self._tell("emptyIndex", {})

    def sane_index(self, path: str) -> None:
        self._tell("saneIndex", {})

    def offset_entry(self, offset: int, position: int) -> None:
        self._tell("offsetEntry", {"offset": offset, "position": position})

    def time_entry(self, timestamp: int, offset: int) -> None:
        self._tell("timeEntry", {"timestamp": timestamp, "offset": offset})

    def aborted_txn(
        self,
        version: int,
        producer_id: int,
        first_offset: int,
        last_offset: int,
        last_stable_offset: int,
    ) -> None:
        self._tell(
            "abortedTxn",
            {
                "version": version,
                "producerId": producer_id,
                "firstOffset": first_offset,
                "lastOffset": last_offset,
                "lastStableOffset": last_stable_offset,
            },
        )

    def producer(self, producer: Producer) -> None:
        told = {
            "producerId": producer.producer_id,
            "producerEpoch": producer.producer_epoch,
            "coordinatorEpoch": producer.coordinator_epoch,
            "currentTxnFirstOffset": producer.current_txn_first_offset,
            "lastTimestamp": producer.timestamp,
        }
        if producer.has_batch:
            told |= {
                "firstSequence": producer.first_sequence,
                "lastSequence": producer.last_sequence,
                "lastOffset": producer.last_offset,
                "offsetDelta": producer.offset_delta,
                "timestamp": producer.timestamp,
            }
        self._tell("producer", told)

    def corrupt_snapshot(self, reason: str) -> None:
        self._tell("corruptSnapshot", {"reason": reason})

    def findings(self, findings: Findings) -> None:
        for finding in findings.all():
            first, second = _PAIRS[finding.kind]
            self._path = finding.path
            self._tell(finding.kind, {first: finding.first, second: finding.second})

    def _tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        told = {"type": kind, "file": self._path, **facts}
        self._output.print(json_text(told), "\n")

    def _headers(self, reader: RecordReader) -> dict[str, Any]:
        if not self._print_contents or not self._metadata:
            return {}
        return {
            "headers": [
                {"key": utf8_text(name), "value": None if value is None else _plain(value)}
                for name, value in reader.headers()
            ]
        }

    def _contents(self, record: DumpedRecord) -> dict[str, Any]:
        if not self._print_contents:
            return {}
        if self._decoder is None:
            decoded = Decoded(record.key(), record.value())
        else:
            decoded = self._decoder.decode(record)
        return {"key": _json_value(decoded.key), "payload": _json_value(decoded.value)}


def _control(reader: RecordReader) -> dict[str, Any]:
    record = control_record(reader.key(), reader.value())
    return {"controlType": record.type.name, "controlTypeId": record.number, **record.message}


def _json_value(value: Any) -> Any:
    if isinstance(value, Raw):
        return None if value is DELETED else value.text
    return _plain(value) if isinstance(value, bytes) else value


def _plain(data: bytes) -> Any:
    """
    *data* as a string, or an object that says them in base64 if they are no UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": data}
