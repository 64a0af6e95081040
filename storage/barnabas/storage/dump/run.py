"""
One run of the tool: each file is dumped by the kind that its suffix says.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast

from barnabas.storage.dump.batches import read_batch, read_message
from barnabas.storage.dump.decoders import Decoder
from barnabas.storage.dump.failure import ILLEGAL_ARGUMENT, DumpFailure
from barnabas.storage.dump.files import DumpedFile, FileBatch, open_log
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.indexes import IndexDump, dump_txn_index
from barnabas.storage.dump.java_text import parse_long
from barnabas.storage.dump.options import STRING_DECODER, DumpOptions
from barnabas.storage.dump.output import Output
from barnabas.storage.dump.record_lines import OffsetGaps
from barnabas.storage.dump.report import DumpReport
from barnabas.storage.dump.streams import decompressed
from barnabas.storage.errors import CorruptSnapshot
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.producers.snapshots import decode_snapshot
from barnabas.storage.segment.records import LARGEST_FILE
from barnabas.storage.state_files.file_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)

_METADATA_SNAPSHOT_SUFFIX: Final = ".checkpoint"
_BOOTSTRAP_SNAPSHOT: Final = "bootstrap.checkpoint"
_OFFSET_DIGITS: Final = 20
_EPOCH_END: Final = _OFFSET_DIGITS + 1 + 10

_REPORTS: Final = {"text": ("text_report", "TextReport"), "json": ("json_report", "JsonReport")}
_DECODERS: Final = {
    "offsets-decoder": ("coordinator", "OffsetsDecoder"),
    "transaction-log-decoder": ("coordinator", "TransactionLogDecoder"),
    "cluster-metadata-decoder": ("cluster_metadata", "ClusterMetadataDecoder"),
    "remote-log-metadata-decoder": ("remote_log", "RemoteLogDecoder"),
    "share-group-state-decoder": ("coordinator", "ShareStateDecoder"),
}
"""
Module and class of each decoder. The first one counts if several are asked for. Only the one that
is used is imported, and so is the report.
"""


def dump(options: DumpOptions, output: Output) -> None:
    """
    Dump all files, then print the findings.

    Raises:
        DumpFailure, KafkaError: a file cannot be dumped to its end. The files after it are not
            dumped, and nothing is printed about findings.
    """
    names = options.files
    findings = Findings()
    report = _report(options, output)
    files = DiskFiles()
    for name in names:
        file = DumpedFile(name, files)
        report.file(file.path)
        suffix = file.name[file.name.rfind(".") :] if "." in file.name else ""
        if suffix in {LOG_SUFFIX, _METADATA_SNAPSHOT_SUFFIX}:
            report.decode_with(_decoder(options))
            _dump_log(file, options, report, findings)
        elif suffix == INDEX_SUFFIX:
            IndexDump(report, findings, options).dump_offset_index(file)
        elif suffix == TIME_INDEX_SUFFIX:
            IndexDump(report, findings, options).dump_time_index(file)
        elif suffix == PRODUCER_SNAPSHOT_SUFFIX:
            _dump_snapshot(file, report)
        elif suffix == TXN_INDEX_SUFFIX:
            dump_txn_index(file, report)
        else:
            report.unknown_file()
    report.findings(findings)


def _report(options: DumpOptions, output: Output) -> DumpReport:
    chosen = options.text("format")
    if chosen not in _REPORTS:
        raise DumpFailure(ILLEGAL_ARGUMENT, f"{chosen} is no format: there are text and json")
    module, name = _REPORTS[chosen]
    found = import_module(f"barnabas.storage.dump.{module}")
    return cast(DumpReport, getattr(found, name)(output, options))


def _decoder(options: DumpOptions) -> Decoder | None:
    """
    The decoder that the user asks for; None for plain text.
    """
    for option, (module, name) in _DECODERS.items():
        if options.has(option):
            found = import_module(f"barnabas.storage.dump.decoders.{module}")
            return cast(Decoder, getattr(found, name)())
    value_class = options.text("value-decoder-class")
    key_class = options.text("key-decoder-class")
    if value_class == key_class == STRING_DECODER:
        return None
    from barnabas.storage.dump.decoders.classes import ClassDecoder  # noqa: PLC0415  # seldom used

    return ClassDecoder(key_class, value_class)


def _dump_log(
    file: DumpedFile, options: DumpOptions, report: DumpReport, findings: Findings
) -> None:
    """
    Dump a log or a snapshot of the metadata log, which are both sequences of batches.
    """
    max_bytes = options.integer("max-bytes")
    if file.name.endswith(LOG_SUFFIX):
        report.tell("log", {"startOffset": file.base_offset})
    elif file.name == _BOOTSTRAP_SNAPSHOT:
        report.tell("bootstrapSnapshot", {})
    else:
        end_offset, epoch = _snapshot_id(file.name)
        report.tell("snapshot", {"endOffset": end_offset, "epoch": epoch})
    gaps = OffsetGaps()
    try:
        with open_log(file.files, file.path) as log:
            part = log.slice(0, max_bytes)
            valid_bytes = 0
            for batch in part.batches():
                _dump_batch(batch, report, gaps, deep=options.deep)
                valid_bytes = batch.position + batch.size
            invalid_bytes = part.size - valid_bytes
            if invalid_bytes > 0 and max_bytes == LARGEST_FILE:
                report.tell("invalidBytes", {"count": invalid_bytes})
    finally:
        findings.gaps(file.absolute_path, gaps.pairs)


def _dump_batch(found: FileBatch, report: DumpReport, gaps: OffsetGaps, *, deep: bool) -> None:
    if found.magic >= 2:
        batch = read_batch(found)
        report.batch(found, batch)
        if deep:
            report.records(batch, gaps)
    else:
        report.legacy_batch(found)
        if deep:
            report.legacy_records(read_message(found).unwrapped(decompressed), gaps)


def _snapshot_id(name: str) -> tuple[int, int]:
    """
    End offset and epoch in the name of a snapshot (Kafka's Snapshots.parse).

    Raises:
        DumpFailure: the name has another form.
    """
    for end in (_OFFSET_DIGITS, _EPOCH_END):
        if len(name) < end:
            begin = 0 if end == _OFFSET_DIGITS else _OFFSET_DIGITS + 1
            raise DumpFailure(
                "java.lang.StringIndexOutOfBoundsException",
                f"begin {begin}, end {end}, length {len(name)}",
            )
    end_offset = parse_long(name[:_OFFSET_DIGITS])
    return end_offset, parse_long(name[_OFFSET_DIGITS + 1 : _EPOCH_END], LARGEST_FILE)


def _dump_snapshot(file: DumpedFile, report: DumpReport) -> None:
    try:
        entries = decode_snapshot(file.read())
    except CorruptSnapshot as error:
        report.corrupt_snapshot(str(error))
        return
    for entry in entries:
        facts: dict[str, int | None] = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.current_txn_first_offset,
            "lastTimestamp": entry.last_timestamp,
        }
        if not entry.is_empty:
            facts |= {
                "firstSequence": entry.first_seq,
                "lastSequence": entry.last_seq,
                "lastOffset": entry.last_data_offset,
                "offsetDelta": entry.last_offset_delta,
                "timestamp": entry.last_timestamp,
            }
        report.tell("producer", facts)
