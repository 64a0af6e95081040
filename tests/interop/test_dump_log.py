"""
Apache Kafka's dump tool and ours, on files that Barnabas wrote and on broken ones.

Ours goes first: Kafka's makes indexes that are missing, and cuts those that are not as it wants.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

import pytest

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.internal_topics import (
    group_records,
    metadata_records,
    remote_log_records,
    share_state_records,
)
from barnabas.protocol.internal_topics.transaction_records import (
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.protocol.records.batch import build_batch, control_batch
from barnabas.protocol.records.control import ControlRecordType, VotersRecord
from barnabas.protocol.records.record import Header, SimpleRecord
from barnabas.storage.fs.disk import DiskFiles
from tests.interop.clients.base import CODECS, NewRecord
from tests.interop.clients.confluent import Confluent
from tests.support.broker_process import Barnabas
from tests.support.clock import StillClock
from tests.support.dumping import LOG
from tests.support.kafka_dump import kafka_dumps, our_dump
from tests.support.legacy_messages import Legacy, legacy_message, legacy_wrapper
from tests.support.random_logs import RandomLog
from tests.support.random_messages import random_message
from tests.support.some import some

Compare = Callable[[list[list[str]]], None]

DECODERS: Final = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}
LOG_OPTIONS: Final[list[list[str]]] = [
    [],
    ["--deep-iteration"],
    ["--print-data-log"],
    ["--print-data-log", "--skip-record-metadata"],
    ["--deep-iteration", "--max-bytes", "3000"],
]
INDEX_OPTIONS: Final[list[list[str]]] = [[], ["--index-sanity-check"], ["--verify-index-only"]]


@pytest.fixture
def compare(tmp_path_factory: pytest.TempPathFactory) -> Compare:
    """
    Runs both tools with each of a list of commands, and holds what they print against each other.
    """

    def run(commands: list[list[str]]) -> None:
        ours = [our_dump(command) for command in commands]
        kafkas = kafka_dumps(commands, tmp_path_factory.mktemp("kafka"))
        for command, kafka, our in some(zip(commands, kafkas, ours, strict=True)):
            assert kafka == our, " ".join(command)

    return run


def commands_for(directory: Path) -> Iterator[list[str]]:
    """
    Every way of dumping the files of a partition: those of one kind together.
    """
    decoder = DECODERS.get(directory.name.rpartition("-")[0])
    for suffix in (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot"):
        names = ",".join(str(path) for path in sorted(directory.glob(f"*{suffix}")))
        if not names:
            continue
        if suffix in {".log", ".checkpoint"}:
            options = [*LOG_OPTIONS, *([[decoder]] if decoder else [])]
        else:
            options = INDEX_OPTIONS if suffix.endswith("index") else [[]]
        for option in options:
            yield [*option, "--files", names]


def test_dump_of_a_broker_directory_equals_kafkas(compare: Compare, tmp_path: Path) -> None:
    """
    Records in every codec, what a group has committed, the metadata log and snapshots of it.
    """
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "metadata.log.max.record.bytes.between.snapshots": "1",
    }
    client = Confluent()
    with Barnabas(tmp_path, settings=settings) as broker:
        configs = {"segment.bytes": "1048576", "index.interval.bytes": "10"}
        client.create_topic(broker.bootstrap, "t", 2, configs)
        for codec in CODECS:
            headers = (("h", None), ("h", b"\xff"), ("\u20ac", b""))
            records = [
                NewRecord(f"{codec} {number}".encode(), b"key", headers[: number % 4])
                for number in range(50)
            ]
            client.produce(broker.bootstrap, "t", records, codec)
        client.consume_in_group(broker.bootstrap, "t", "g", 50 * len(CODECS))
        broker.stop()
    directories = [path for path in sorted(broker.data.iterdir()) if path.is_dir()]

    assert {"t-0", "__consumer_offsets-0", "__cluster_metadata-0"} <= {
        directory.name for directory in directories
    }
    assert list(broker.data.glob("__cluster_metadata-0/0*.checkpoint"))
    compare([command for directory in directories for command in commands_for(directory)])


def test_dump_of_an_open_index_equals_kafkas(compare: Compare, tmp_path: Path) -> None:
    """
    As a broker leaves it that is killed: full of zeros behind the entries.
    """
    directory = tmp_path / "t-0"
    RandomLog(1, directory, DiskFiles(), StillClock(1_700_000_000_000)).write(80)
    for path in directory.glob("*index"):
        if path.suffix != ".txnindex":
            path.write_bytes(path.read_bytes() + bytes(2400))

    compare(list(commands_for(directory)))


def test_dump_of_old_message_formats_equals_kafkas(compare: Compare, tmp_path: Path) -> None:
    inner = [Legacy(0, b"k", b"v", 5), Legacy(1, None, None, 6), Legacy(2, b"", b"\xff", 7)]
    absolute = [message._replace(offset=message.offset + 40) for message in inner]
    codecs = (CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4)
    data = legacy_message(0, 0, None, b"v") + legacy_message(1, 1, b"k", b"v", timestamp=9)
    for number, codec in enumerate(codecs):
        data += legacy_wrapper(1, codec, inner, offset=10 * number + 12, timestamp=8)
        data += legacy_wrapper(1, codec, inner, offset=10 * number + 15, attributes=8)
        data += legacy_wrapper(0, codec, absolute)
    data += build_batch([SimpleRecord(1, b"k", b"v")], base_offset=43)
    (tmp_path / LOG).write_bytes(data)

    compare([[*option, "--files", str(tmp_path / LOG)] for option in LOG_OPTIONS])


def test_dump_of_raft_control_records_equals_kafkas(compare: Compare, tmp_path: Path) -> None:
    voter = VotersRecord.Voter(
        voter_id=1,
        voter_directory_id=UUID(int=1),
        endpoints=[VotersRecord.Endpoint(name="CONTROLLER", host="\u20ac", port=65535)],
        kraft_version_feature=VotersRecord.KRaftVersionFeature(
            min_supported_version=0, max_supported_version=1
        ),
    )
    voters = encode(VotersRecord(version=0, voters=[voter]), 0)
    (tmp_path / LOG).write_bytes(control_batch(ControlRecordType.KRAFT_VOTERS, voters, 5))

    compare([[*option, "--files", str(tmp_path / LOG)] for option in LOG_OPTIONS])


COORDINATORS: Final[Mapping[str, list[tuple[type[Message], type[Message]]]]] = {
    "--offsets-decoder": list(group_records.RECORDS.values()),
    "--share-group-state-decoder": list(share_state_records.RECORDS.values()),
    "--transaction-log-decoder": [(TransactionLogKey, TransactionLogValue)],
}
FRAMED: Final[Mapping[str, list[type[Message]]]] = {
    "--cluster-metadata-decoder": list(metadata_records.RECORDS.values()),
    "--remote-log-metadata-decoder": list(remote_log_records.RECORDS.values()),
}


@pytest.mark.parametrize("decoder", [*COORDINATORS, *FRAMED])
def test_dump_of_internal_topics_equals_kafkas(
    decoder: str, compare: Compare, tmp_path: Path
) -> None:
    """
    Records of every type and version, with all that they can say; some with a byte changed.
    """
    random = Random(decoder)
    data = bytearray()
    for offset in range(600):
        if decoder in FRAMED:
            value = framed_message(random.choice(FRAMED[decoder]), random)
            record = SimpleRecord(1, None, broken(value, random) if offset % 3 == 0 else value)
        else:
            key_class, value_class = random.choice(COORDINATORS[decoder])
            record = coordinator_record(key_class, value_class, random)
            if offset % 3 == 0:
                record = record._replace(value=broken(record.value or b"?", random))
        data += build_batch([record], base_offset=offset)
    (tmp_path / LOG).write_bytes(data)

    compare([[decoder, "--files", str(tmp_path / LOG)]])


def framed_message(cls: type[Message], random: Random) -> bytes:
    version = random.choice(cls.api.versions)
    frame = bytes((1, cls.api.key, version))
    return frame + encode(random_message(cls, version, random), version)


def coordinator_record(
    key_class: type[Message], value_class: type[Message], random: Random
) -> SimpleRecord:
    version = random.choice(value_class.api.versions)
    key = encode(random_message(key_class, 0, random), 0)
    value = encode(random_message(value_class, version, random), version)
    number = struct.pack(">h", key_class.api.key)
    return SimpleRecord(1, number + key, struct.pack(">h", version) + value)


def broken(data: bytes, random: Random) -> bytes:
    """
    *data* with some bytes changed, taken out or put in.
    """
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(max(len(data), 1))
        how = random.random()
        if how < 0.7:
            byte = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            data = data[:at] + bytes([byte]) + data[at + 1 :]
        elif how < 0.8:
            data = data[: at + 1]
        else:
            new_bytes = random.randbytes(random.randrange(9))
            data = data[:at] + new_bytes + data[at + random.randrange(9) :]
    return data


@pytest.mark.parametrize("seed", range(3))
def test_dump_of_damaged_files_equals_kafkas(seed: int, compare: Compare, tmp_path: Path) -> None:
    """
    Both tools show what can be read, and end with the same words.

    Nothing is compressed: of streams that break off, Kafka tells what its libraries say.
    """
    random = Random(seed)
    commands = []
    for number in range(100):
        directory = tmp_path / str(number)
        shutil.copytree(plain_log(tmp_path), directory)
        victim = random.choice(sorted(path for path in directory.iterdir() if path.stat().st_size))
        victim.write_bytes(broken(victim.read_bytes(), random))
        commands.append(random.choice([["--files"], ["--print-data-log", "--files"]]))
        if victim.suffix == ".log":
            victim = random.choice(list(directory.glob(f"{victim.stem}.*")))
        commands[-1] = [*commands[-1], str(victim)]

    compare(commands)


def plain_log(directory: Path) -> Path:
    """
    A log that is not compressed, made once.
    """
    made = directory / "plain-0"
    if not made.exists():
        clock = StillClock(1_700_000_000_000)
        RandomLog(5, made, DiskFiles(), clock, codec=CompressionType.NONE).write(30)
        headers = (Header("h", b"v"), Header("n", None))
        records = [SimpleRecord(n, b"k%d" % n, b"v" * n, headers[: n % 3]) for n in range(90)]
        with (made / LOG).open("ab") as file:
            file.write(build_batch(records, base_offset=5000))
    return made
