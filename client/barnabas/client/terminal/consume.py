"""
``barnabas consume``: prints the records of a topic.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Callable
from typing import Any, Final

from barnabas.client.cluster import Cluster
from barnabas.client.consumer import READ_COMMITTED, READ_UNCOMMITTED, ConsumedRecord, Consumer
from barnabas.client.groups import CLASSIC, committed_offsets, find_group
from barnabas.client.terminal.connecting import UsageError, add_connection_options, connect
from barnabas.client.terminal.output import note, printable
from barnabas.client.terminal.places import PLACES, offsets_at, partitions_of
from barnabas.client.terminal.topics import bounds
from barnabas.storage.explain.units import moment
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import counted

_COMMITTED: Final = "committed:"
_PLACE: Final = "PARTITION"
_TIME_WIDTH: Final = 24
_KEY_WIDTH: Final = 12
_PROGRESS_EVERY: Final = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the records of a topic of any Kafka cluster, up to the end that it has now. No group"
        " is joined and nothing is committed."
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--partition",
        action="append",
        type=int,
        metavar="N",
        help="only this partition; may be repeated",
    )
    parser.add_argument(
        "--from",
        dest="begin",
        default="beginning",
        metavar="PLACE",
        help=f"{PLACES}; or {_COMMITTED}GROUP for what a group has committed",
    )
    parser.add_argument("--until", metavar="PLACE", help="stop before this place; default: end")
    parser.add_argument(
        "--follow", "-f", action="store_true", help="continue with new records until Ctrl-C"
    )
    parser.add_argument("--max-records", "-n", type=int, metavar="N", help="stop after N records")
    parser.add_argument(
        "--read-committed",
        action="store_true",
        help="leave out records of transactions that are open or aborted",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON object for each record")
    form.add_argument(
        "--values", action="store_true", help="print values only, a line each, as they are"
    )
    add_connection_options(parser, _consume)


def _consume(options: argparse.Namespace) -> None:
    if options.max_records is not None and options.max_records < 1:
        raise UsageError(f"--max-records {options.max_records}: write a number of at least 1")
    if options.follow and options.until:
        raise UsageError("--follow has no end: leave out --until")
    isolation = READ_COMMITTED if options.read_committed else READ_UNCOMMITTED
    with connect(options) as cluster:
        partitions = partitions_of(cluster, options.topic, options.partition)
        starts, ends = bounds(cluster, partitions, isolation)
        begin = _begin(cluster, options.begin, starts, ends)
        until = offsets_at(cluster, options.until or "end", starts, ends)
        consumer = Consumer(cluster, begin, {} if options.follow else until, isolation)
        total = sum(max(0, until[each] - begin[each]) for each in begin)
        _print_records(consumer, total, options, _printer(options, ends))


def _begin(
    cluster: Cluster,
    place: str,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> dict[TopicPartition, int]:
    if not place.startswith(_COMMITTED):
        return offsets_at(cluster, place, starts, ends)
    group_id = place.removeprefix(_COMMITTED)
    kind = find_group(cluster, group_id).type or CLASSIC
    committed = committed_offsets(cluster, group_id, kind)
    return {each: max(starts[each], committed.get(each, starts[each])) for each in starts}


def _print_records(
    consumer: Consumer,
    total: int,
    options: argparse.Namespace,
    write: Callable[[ConsumedRecord], None],
) -> None:
    shows_progress = sys.stderr.isatty() and not sys.stdout.isatty() and not options.follow
    count = reported = 0
    try:
        for consumed in consumer.records():
            write(consumed)
            count += 1
            while reported < len(consumer.lost):
                partition, first, end = consumer.lost[reported]
                note(f"{partition}: offsets {first} to {end - 1} were deleted before the read")
                reported += 1
            if options.follow:
                sys.stdout.flush()
            if shows_progress and count % _PROGRESS_EVERY == 0:
                print(f"\r{count:,} of {total:,} records", end="", file=sys.stderr, flush=True)
            if count == options.max_records:
                break
    except KeyboardInterrupt:
        if not options.follow:
            note(f"an interruption ended the read after {counted(count, 'record')}")
        raise
    if shows_progress and count >= _PROGRESS_EVERY:
        print(f"\r{count:,} records" + " " * 20, file=sys.stderr)
    if not count and not options.json and not options.values:
        note(f"no records in {options.topic} there")


def _printer(
    options: argparse.Namespace, ends: dict[TopicPartition, int]
) -> Callable[[ConsumedRecord], None]:
    if options.json:
        return _print_object
    if options.values:
        return _print_value
    place_width = max(len(_PLACE), *(len(str(each)) for each in ends))
    offset_width = max(6, *(len(str(end)) for end in ends.values()))
    print(
        f"{_PLACE:<{place_width}}  {'OFFSET':>{offset_width}}  {'TIME':<{_TIME_WIDTH}}"
        f"  {'KEY':<{_KEY_WIDTH}}  VALUE"
    )

    def print_line(consumed: ConsumedRecord) -> None:
        record = consumed.record
        headers = "".join(
            f"  {printable(header.key)}={_shown(header.value)}" for header in record.headers
        )
        print(
            f"{consumed.partition!s:<{place_width}}  {record.offset:>{offset_width}}"
            f"  {moment(record.timestamp):<{_TIME_WIDTH}}  {_shown(record.key):<{_KEY_WIDTH}}"
            f"  {_shown(record.value)}{headers}"
        )

    return print_line


def _shown(data: bytes | None) -> str:
    """
    Text as it is, with control characters escaped; other bytes as escapes, null as ``-``.
    """
    if data is None:
        return "-"
    try:
        return printable(bytes(data).decode())
    except UnicodeDecodeError:
        return bytes(data).decode("ascii", "backslashreplace")


def _print_value(consumed: ConsumedRecord) -> None:
    # At once: a signal between two writes would leave a line without its end.
    sys.stdout.buffer.write(bytes(consumed.record.value or b"") + b"\n")


def _print_object(consumed: ConsumedRecord) -> None:
    record = consumed.record
    found: dict[str, Any] = {
        "topic": consumed.partition.topic,
        "partition": consumed.partition.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "LogAppendTime" if consumed.is_log_append_time else "CreateTime",
        **_member("key", record.key),
        **_member("value", record.value),
    }
    if record.headers:
        found["headers"] = [
            {"name": header.key, **_member("value", header.value)} for header in record.headers
        ]
    print(json.dumps(found, ensure_ascii=False))


def _member(name: str, data: bytes | None) -> dict[str, str | None]:
    """
    Bytes as text, or in base64 under another name if they are no UTF-8.
    """
    if data is None:
        return {name: None}
    try:
        return {name: bytes(data).decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
