"""
Records in and out on the console, their offsets, and their deletion.
"""

from __future__ import annotations

import json

from tests.interop.tools.guide import Guide

CONSUMER = "kafka-console-consumer"
PRODUCER = "kafka-console-producer"
OFFSETS = "kafka-get-offsets"

_FORMATTERS = "org.apache.kafka.tools.consumer."


def _printing(*shown: str) -> tuple[str, ...]:
    return tuple(part for name in shown for part in ("--formatter-property", f"print.{name}=true"))


def records_with_keys_and_headers(guide: Guide) -> None:
    """
    Written in every way and read in every form.
    """
    guide("kafka-topics", "--create", "--topic", "letters")
    write = (PRODUCER, "--topic", "letters", "--sync", "--timeout", "0")
    guide(*write, given="plain\nlines\n\nwith an empty one\n")
    headers = ("--reader-property", "parse.headers=true", "--reader-property", "parse.key=true")
    guide(*write, *headers, given="one:1,two:2\tkey\tvalue\nonly:one\tanother\tvalue of it\n")
    separated = ("parse.key=true", "key.separator=|", "null.marker=NULL")
    reading = tuple(part for one in separated for part in ("--reader-property", one))
    guide(*write, *reading, given="k|v\nk|NULL\nNULL|v\nno separator\n")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd", "rar"):
        guide(*write, "--compression-codec", codec, given=f"compressed by {codec}\n" * 20)
    guide(*write, "--request-required-acks", "0", given="asked for no answer\n")
    guide(*write, "--command-property", "acks=1", given="asked the leader\n")
    guide(*write, "--command-property", "max.request.size=20", given="too long for the client\n")

    read = (CONSUMER, "--topic", "letters", "--partition", "0")
    idle = ("--timeout-ms", "500")
    every = (*read, "--offset", "earliest", *idle)
    guide(*every)
    guide(*every, *_printing("key", "headers", "partition", "offset", "epoch"))
    guide(*every, *_printing("key"), "--formatter-property", "null.literal=nothing")
    guide(*read, "--offset", "2", "--max-messages", "1")
    guide(*read, "--offset", "latest", "--timeout-ms", "1")
    guide(*read, "--offset", "999999", *idle)
    guide(*read, "--offset", "-7")
    guide(CONSUMER, "--topic", "letters", "--partition", "5", "--offset", "0", *idle)
    beginning = ("--from-beginning", "--timeout-ms", "1500")
    guide(CONSUMER, "--include", "lett.*", "--group", "all", *beginning, "--max-messages", "5")
    systest = ("--enable-systest-events", "--group", "events", "--max-messages", "2")
    guide(CONSUMER, "--topic", "letters", *beginning, *systest)
    numbers = ("--value-deserializer", "org.apache.kafka.common.serialization.LongDeserializer")
    guide(*read, "--offset", "0", *idle, *numbers)
    guide(*read, "--offset", "0", *idle, *numbers, "--skip-message-on-error")
    for formatter in ("NoOpMessageFormatter", "LoggingMessageFormatter", "NoSuchFormatter"):
        named = ("--formatter", f"{_FORMATTERS}{formatter}")
        guide(*read, "--offset", "0", "--max-messages", "1", *named)


def records_of_the_coordinators(guide: Guide) -> None:
    """
    What groups leave in their topic, as the formatters for it print it.
    """
    guide("kafka-topics", "--create", "--topic", "kept")
    guide(PRODUCER, "--topic", "kept", given="one\ntwo\n")
    reading = ("--topic", "kept", "--group", "keepers", "--from-beginning")
    guide(CONSUMER, *reading, "--max-messages", "2")
    guide("kafka-consumer-groups", "--delete", "--group", "keepers")
    # The hash of its name puts the group there.
    internal = (CONSUMER, "--topic", "__consumer_offsets", "--partition", "1", "--offset", "0")
    for formatter in ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter"):
        guide(*internal, "--formatter", f"{_FORMATTERS}{formatter}", "--timeout-ms", "500")


def offsets_of_partitions(guide: Guide) -> None:
    """
    First, last, by time, and those that need tiered storage.
    """
    guide("kafka-topics", "--create", "--topic", "marked.a", "--partitions", "3")
    guide("kafka-topics", "--create", "--topic", "marked.b")
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    for topic in ("marked.a", "marked.b"):
        for line in ("a:one\n", "b:two\n", "c:three\n"):
            # One at a time, so that no two have the same timestamp.
            guide(PRODUCER, "--topic", topic, *keyed, "--timeout", "0", given=line)
    for time in ("-1", "latest", "-2", "earliest", "-3", "max-timestamp"):
        guide(OFFSETS, "--topic", "marked.b", "--time", time)
    for time in ("-4", "earliest-local", "-5", "latest-tiered", "-6", "earliest-pending-upload"):
        guide(OFFSETS, "--topic", "marked.b", "--time", time)
    for time in ("0", "1500000000000", "4000000000000", "-7", "noon"):
        guide(OFFSETS, "--topic", "marked.b", "--time", time)
    empty = ("--topic-partitions", "marked.a:1-2,marked.b:0")
    guide(OFFSETS, *empty, "--time", "-2")
    guide(OFFSETS, "--topic", "marked.*", "--time", "-2")
    guide(OFFSETS, "--topic", "marked.*", "--time", "-3", "--partitions", "0")
    guide(OFFSETS, "--topic", "marked.a", "--partitions", "1,2", "--time", "-2")
    guide(OFFSETS, "--topic-partitions", "marked.*:0,.*:2-3", "--time", "-2")
    guide(OFFSETS, "--exclude-internal-topics", "--time", "-2")
    guide(OFFSETS, "--time", "-2")
    guide(OFFSETS, "--topic", "nothing")
    guide(OFFSETS, "--topic", "marked.a", "--partitions", "9")
    guide(OFFSETS, "--topic-partitions", "marked.a:x")
    guide(OFFSETS, "--topic", "marked.a", "--topic-partitions", "marked.a:1")


def records_are_deleted(guide: Guide) -> None:
    """
    Up to an offset, to the end, beyond it, and of what is not there.
    """
    guide("kafka-topics", "--create", "--topic", "old", "--partitions", "2")
    guide("kafka-topics", "--create", "--topic", "compact", "--config", "cleanup.policy=compact")
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    guide(PRODUCER, "--topic", "old", *keyed, given="a:1\na:2\na:3\na:4\nb:1\nb:2\n")
    tries: list[list[tuple[str, int, int]]] = [
        [("old", 0, 1), ("old", 1, 2)],
        [("old", 0, 1), ("old", 1, 999)],
        [("old", 0, -1), ("old", 1, -1)],
        [("old", 1, 0)],
        [("old", 1, -2)],
        [("old", 9, 1)],
        [("nothing", 0, 1)],
        [("compact", 0, 0)],
        [("old", 0, 1), ("old", 0, 2)],
    ]
    impatient = guide.file("client.properties", "default.api.timeout.ms=2000\n")
    delete = ("kafka-delete-records", "--command-config", impatient, "--offset-json-file")
    for number, deleted in enumerate(tries):
        partitions = [
            {"topic": topic, "partition": partition, "offset": offset}
            for topic, partition, offset in deleted
        ]
        text = json.dumps({"partitions": partitions, "version": 1})
        guide(*delete, guide.file(f"{number}.json", text))
        guide(OFFSETS, "--topic", "old", "--time", "-2")
    guide(*delete, guide.file("broken.json", "{"))
    guide(*delete, guide.file("other.json", '{"version":7}'))


PARTS = (
    records_with_keys_and_headers,
    records_of_the_coordinators,
    offsets_of_partitions,
    records_are_deleted,
)
