"""
A dump as JSON: one object a line, each with its ``type`` and the ``file`` that it belongs to.

``docs/dump-log.md`` lists the objects and their fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.protocol.records.batch.legacy import LegacyRecord
from barnabas.protocol.records.record import RecordReader
from barnabas.storage.dump.batches import DumpedBatch, codec_name, read_message, timestamp_name
from barnabas.storage.dump.control import control_record
from barnabas.storage.dump.decoders import Decoded, DumpedRecord, Raw
from barnabas.storage.dump.decoders.coordinator import DELETED
from barnabas.storage.dump.files import FileBatch
from barnabas.storage.dump.findings import KINDS, Findings
from barnabas.storage.dump.java_text import json_text, utf8_text
from barnabas.storage.dump.record_lines import OffsetGaps
from barnabas.storage.dump.report import DumpReport


class JsonReport(DumpReport):
    """
    Writes the objects.
    """

    def unknown_file(self) -> None:
        self.tell("unknownFile", {})

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        self._output.print(json_text({"type": kind, "file": self._path, **facts}), "\n")

    def batch(self, found: FileBatch, batch: DumpedBatch) -> None:
        self.tell(
            "batch",
            {
                "baseOffset": batch.base_offset,
                "lastOffset": batch.last_offset,
                "count": batch.record_count,
                "baseSequence": batch.base_sequence,
                "lastSequence": batch.last_sequence,
                "producerId": batch.producer_id,
                "producerEpoch": batch.producer_epoch,
                "partitionLeaderEpoch": batch.partition_leader_epoch,
                "isTransactional": batch.is_transactional,
                "isControl": batch.is_control,
                "deleteHorizonMs": batch.delete_horizon_ms,
                "position": found.position,
                "timestampType": timestamp_name(batch),
                "baseTimestamp": batch.base_timestamp,
                "maxTimestamp": batch.max_timestamp,
                **_batch_end(found, batch),
            },
        )

    def records(self, batch: DumpedBatch, gaps: OffsetGaps) -> None:
        reader = batch.reader()
        while reader.advance():
            gaps.see(reader.offset)
            facts: dict[str, Any] = {}
            if self._metadata:
                facts = {
                    "offset": reader.offset,
                    "timestampType": timestamp_name(batch),
                    "timestamp": reader.timestamp,
                    "keySize": reader.key_size,
                    "valueSize": reader.value_size,
                    "sequence": reader.sequence,
                    "headerKeys": [utf8_text(name) for name, _ in reader.headers()],
                }
            if not batch.is_control:
                self.tell("record", facts | self._headers(reader) | self._contents(reader))
            elif self._metadata:
                self.tell("controlRecord", facts | _control(reader))

    def legacy_batch(self, found: FileBatch) -> None:
        message = read_message(found)
        self.tell(
            "batch",
            {
                "lastOffset": found.offset,
                "position": found.position,
                "timestampType": timestamp_name(message),
                "maxTimestamp": message.timestamp,
                **_batch_end(found, message),
            },
        )

    def legacy_records(self, records: Iterable[LegacyRecord], gaps: OffsetGaps) -> None:
        for record in records:
            record.ensure_not_compressed()
            gaps.see(record.offset)
            facts: dict[str, Any] = {}
            if self._metadata:
                facts = {
                    "offset": record.offset,
                    "timestampType": timestamp_name(record),
                    "timestamp": record.timestamp,
                    "keySize": record.key_size,
                    "valueSize": record.value_size,
                    "isValid": record.is_valid(),
                    "crc": record.crc,
                }
            self.tell("record", facts | self._contents(record))

    def corrupt_snapshot(self, reason: str) -> None:
        self.tell("corruptSnapshot", {"reason": reason})

    def findings(self, findings: Findings) -> None:
        for finding in findings.all():
            first, second = KINDS[finding.kind].fields
            self._path = finding.path
            self.tell(finding.kind, {first: finding.first, second: finding.second})

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


def _batch_end(found: FileBatch, batch: DumpedBatch | LegacyRecord) -> dict[str, Any]:
    return {
        "size": found.size,
        "magic": found.magic,
        "attributes": batch.attributes & 0xFF,
        "compresscodec": codec_name(batch),
        "crc": batch.crc,
        "isvalid": batch.is_valid(),
    }


def _control(reader: RecordReader) -> dict[str, Any]:
    record = control_record(reader.key(), reader.value())
    return {"controlType": record.type.name, "controlTypeId": record.number, **record.message}


def _json_value(value: Any) -> Any:
    if isinstance(value, Raw):
        return None if value is DELETED else value.text
    return _plain(value) if isinstance(value, bytes) else value


def _plain(data: bytes) -> Any:
    """
    *data* as a string, or an object with *data* in base64 if they are not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": data}
