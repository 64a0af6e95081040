"""
One run of the tool: each file to what can dump its kind.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final, cast

from barnabas.storage.dump.decoders import Decoder
from barnabas.storage.dump.failure import ILLEGAL_ARGUMENT, NO_SUCH_FILE, DumpFailure
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.indexes import IndexDump, dump_txn_index
from barnabas.storage.dump.log_dump import LOG_SUFFIX, LogDump
from barnabas.storage.dump.opening import DumpedFile, unreadable
from barnabas.storage.dump.options import STRING_DECODER, DumpOptions
from barnabas.storage.dump.output import Output
from barnabas.storage.dump.report import Report
from barnabas.storage.dump.snapshots import CorruptSnapshot, read_producers
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.disk import DiskFiles

_DECODERS: Final = {
    "offsets-decoder": ("coordinator", "OffsetsDecoder"),
    "transaction-log-decoder": ("transactions", "TransactionLogDecoder"),
    "cluster-metadata-decoder": ("cluster_metadata", "ClusterMetadataDecoder"),
    "remote-log-metadata-decoder": ("remote_log", "RemoteLogDecoder"),
    "share-group-state-decoder": ("share_state", "ShareStateDecoder"),
}
"""
Where the decoders are, the first one first if several are asked for. Only the one that is used is
imported.
"""


def dump(options: DumpOptions, output: Output) -> None:
    """
    Dump all files, then tell what is wrong with them.

    Raises:
        DumpFailure: a file cannot be dumped to its end; nothing is said of the files after it.
    """
    names = options.files
    findings = Findings()
    report = _report(options, output)
    files = DiskFiles()
    for name in names:
        file = DumpedFile(name, files)
        report.file(file.path)
        suffix = file.name[file.name.rfind(".") :] if "." in file.name else ""
        if suffix in {LOG_SUFFIX, ".checkpoint"}:
            report.decode_with(_decoder(options))
            max_bytes = options.integer("max-bytes")
            LogDump(report, findings, deep=options.deep, max_bytes=max_bytes).dump(file)
        elif suffix in {".index", ".timeindex"}:
            _dump_index(file, suffix, options, report, findings)
        elif suffix == ".snapshot":
            _dump_snapshot(file, report)
        elif suffix == ".txnindex":
            dump_txn_index(file, report)
        else:
            report.unknown_file(file.path)
    report.findings(findings)


def _report(options: DumpOptions, output: Output) -> Report:
    chosen = options.text("format")
    if chosen not in {"text", "json"}:
        raise DumpFailure(ILLEGAL_ARGUMENT, f"{chosen} is no format: there are text and json")
    module, name = (
        ("text_report", "TextReport") if chosen == "text" else ("json_report", "JsonReport")
    )
    cls = getattr(import_module(f"barnabas.storage.dump.{module}"), name)
    report = cls(
        output,
        print_contents=options.print_contents,
        skip_record_metadata=options.has("skip-record-metadata"),
    )
    return cast(Report, report)


def _decoder(options: DumpOptions) -> Decoder | None:
    """
    The decoder that was asked for; None for plain text.
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


def _dump_index(
    file: DumpedFile, suffix: str, options: DumpOptions, report: Report, findings: Findings
) -> None:
    dumper = IndexDump(
        report,
        findings,
        sanity_only=options.has("index-sanity-check"),
        verify_only=options.has("verify-index-only"),
        max_message_size=options.integer("max-message-size") if suffix == ".index" else 0,
    )
    if suffix == ".index":
        dumper.dump_offset_index(file)
    else:
        dumper.dump_time_index(file)


def _dump_snapshot(file: DumpedFile, report: Report) -> None:
    try:
        data = file.files.read_bytes(Path(file.path))
    except FileNotFoundError as error:
        raise DumpFailure(NO_SUCH_FILE, file.path) from error
    except KafkaStorageError as error:
        raise unreadable(file.path, error) from error
    try:
        for producer in read_producers(data):
            report.producer(producer)
    except CorruptSnapshot as error:
        report.corrupt_snapshot(str(error))
