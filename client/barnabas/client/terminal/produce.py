"""
``barnabas produce``: writes lines or JSON objects to a topic.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from barnabas.client.producer import Producer
from barnabas.client.terminal.connecting import (
    Interruptible,
    UsageError,
    add_connection_options,
    connect,
)
from barnabas.client.terminal.output import note
from barnabas.client.terminal.places import existing_partitions
from barnabas.protocol.compression import CompressionType
from barnabas.storage.config.paths import local_path
from barnabas.storage.units import MiB, counted

RecordHeaders = list[tuple[str, bytes | None]]

_COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_MOST_BYTES = 100 * MiB
"""The most bytes of a line: brokers read no larger requests by default, and a line without an end
would fill the memory."""
_MEMBERS = frozenset(
    {
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "key",
        "key_base64",
        "value",
        "value_base64",
        "headers",
    }
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write each line of standard input, or of files, to a topic of any Kafka cluster. Writes"
        " are idempotent and wait for all in-sync replicas."
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "files", nargs="*", type=local_path, metavar="FILE", help="instead of standard input"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="each line is an object with key, value, headers, partition and timestamp, all of"
        " them optional, as consume --json prints them",
    )
    parser.add_argument(
        "--key-separator", metavar="TEXT", help="a line is a key, this text and a value"
    )
    parser.add_argument("--key", help="the key of every record")
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a header of every record; may be repeated",
    )
    parser.add_argument("--partition", type=int, metavar="N", help="without it, chosen by the key")
    parser.add_argument("--compression", choices=_COMPRESSIONS, default="none")
    add_connection_options(parser, _produce)


@dataclass
class _Line:
    """
    A record that a line describes.
    """

    key: bytes | None
    value: bytes | None
    headers: RecordHeaders
    partition: int | None
    timestamp: int | None = None


def _produce(options: argparse.Namespace) -> None:
    if options.json and options.key_separator is not None:
        raise UsageError("--key-separator is for lines without --json")
    if options.key_separator == "":
        raise UsageError("--key-separator is empty")
    fixed = _headers_of(options.header)
    is_terminal = not options.files and sys.stdin.isatty()
    with connect(options) as cluster:
        existing_partitions(cluster, options.topic)
        producer = Producer(
            cluster, options.topic, compression=CompressionType[options.compression.upper()]
        )
        if is_terminal:
            note("each line is a record; end with Ctrl-D")
        try:
            for where, text in Interruptible().each(_lines(options.files)):
                line = _line(text, where, options)
                producer.send(
                    line.key,
                    line.value,
                    [*fixed, *line.headers],
                    partition=line.partition,
                    timestamp=line.timestamp,
                )
                if is_terminal:
                    producer.flush()
            producer.flush()
        except UsageError as error:
            producer.flush()
            raise UsageError(f"{error}; {_what_is_written(producer)}") from error
        except OSError:
            # The input ends early. A refused batch would be retried in vain.
            producer.flush()
            raise
        except KeyboardInterrupt:
            producer.flush()
            note(f"an interruption ended the input; {_what_is_written(producer)}")
            raise
        finally:
            written = producer.written
            for partition in sorted(written):
                each = written[partition]
                offsets = (
                    f"offset {each.first_offset}"
                    if each.records == 1
                    else f"offsets {each.first_offset} to {each.last_offset}"
                )
                print(f"{options.topic}-{partition}: {counted(each.records, 'record')}, {offsets}")


def _what_is_written(producer: Producer) -> str:
    count = sum(each.records for each in producer.written.values())
    if not count:
        return "nothing is written"
    verb = "is" if count == 1 else "are"
    return f"{counted(count, 'record')} before it {verb} written, and nothing after it"


def _lines(files: list[Path]) -> Iterator[tuple[str, bytes]]:
    """
    Each line without its end, after its place for messages.
    """
    if not files:
        yield from _lines_of(sys.stdin.buffer, "line")
    for file in files:
        with file.open("rb") as opened:
            yield from _lines_of(opened, f"{file}, line")


def _lines_of(opened: IO[bytes], place: str) -> Iterator[tuple[str, bytes]]:
    for number, line in enumerate(iter(lambda: opened.readline(_MOST_BYTES + 1), b""), 1):
        if len(line) > _MOST_BYTES:
            raise UsageError(f"{place} {number} is longer than 100 MiB, the most of a request")
        yield f"{place} {number}", line.removesuffix(b"\n").removesuffix(b"\r")


def _line(text: bytes, where: str, options: argparse.Namespace) -> _Line:
    key = None if options.key is None else options.key.encode()
    if options.json:
        return _object(text, where, key, options.partition)
    if options.key_separator is None:
        return _Line(key, text, [], options.partition)
    before, separator, after = text.partition(options.key_separator.encode())
    if not separator:
        raise UsageError(f"{where} has no {options.key_separator!r} between a key and a value")
    return _Line(before, after, [], options.partition)


def _object(text: bytes, where: str, key: bytes | None, partition: int | None) -> _Line:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{where} is not a JSON object")
    unknown = found.keys() - _MEMBERS
    if unknown:
        raise UsageError(
            f"{where} has the unknown member {min(unknown)!r}; write key, value, headers, partition"
            " or timestamp"
        )
    number = found.get("partition", partition)
    timestamp = found.get("timestamp")
    for name, value in (("partition", number), ("timestamp", timestamp)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise UsageError(f"{where}: {name} is a whole number, not {value!r}")
    if timestamp is not None and not 0 <= timestamp < 1 << 63:
        raise UsageError(f"{where}: timestamp is in ms since 1970, not {timestamp}")
    has_key = "key" in found or "key_base64" in found
    return _Line(
        _bytes(found, "key", where) if has_key else key,
        _bytes(found, "value", where),
        _object_headers(found.get("headers") or [], where),
        number if partition is None else partition,
        timestamp,
    )


def _bytes(found: dict[str, Any], name: str, where: str) -> bytes | None:
    """
    The bytes of ``name`` or ``name_base64``. Numbers and objects become JSON text.
    """
    encoded = found.get(f"{name}_base64")
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise UsageError(f"{where}: {name}_base64 is not base64") from None
    value = found.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode(errors="surrogatepass")


def _object_headers(headers: Any, where: str) -> RecordHeaders:
    """
    Headers from ``{"name": "value"}``, or from a list of objects for names that repeat.
    """
    if isinstance(headers, dict):
        return [(name, _bytes({"value": headers[name]}, "value", where)) for name in headers]
    if isinstance(headers, list) and all(
        isinstance(each, dict) and isinstance(each.get("name"), str) for each in headers
    ):
        return [(each["name"], _bytes(each, "value", where)) for each in headers]
    raise UsageError(f"{where}: headers are an object, or a list of objects with name and value")


def _headers_of(assignments: list[str]) -> RecordHeaders:
    found: RecordHeaders = []
    for each in assignments:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"--header {each}: write NAME=VALUE")
        found.append((name, value.encode()))
    return found
