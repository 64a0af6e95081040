"""
A directory that a later version has written is refused, or served without what is unknown in it.
"""

from __future__ import annotations

import hashlib
import re
import struct
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from barnabas.coordination.cluster.record_frames import FRAME_VERSION, encode_record
from barnabas.protocol.codec.primitives import uvarint
from barnabas.protocol.internal_topics import metadata_records
from barnabas.protocol.records.batch import batches, build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.interop.clients.base import CODECS
from tests.interop.pinned.directory import (
    ARCHIVES,
    COMMITTED,
    SETTINGS,
    TRANSACTIONS,
    committed,
    fill,
    read,
    values,
)
from tests.support.broker_process import Barnabas, wait_for

pytestmark = pytest.mark.prove

METADATA: Final = "__cluster_metadata-0"
OFFSETS: Final = "__consumer_offsets-0"
STATE: Final = "__transaction_state-0"
ADVICE: Final = (
    "A later version of Barnabas or of Apache Kafka has written it. Start that version on this"
    " directory again, or restore a backup from before the upgrade."
)
LOWER: Final = "or lower it there with kafka-features.sh downgrade before the downgrade"
NOW_MS: Final = 1_800_000_000_000
REBUILT: Final = (".index", ".timeindex", ".snapshot")
"""What a start on a metadata log may write before it has read it: copies of what is in the log."""

Change = Callable[[Path], None]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Barnabas]:
    newest = max(ARCHIVES.glob("*.tar.xz"))
    with tarfile.open(newest) as archive:
        archive.extractall(tmp_path, filter="data")
    found = Barnabas(tmp_path, settings=SETTINGS)
    yield found
    found.close()


def metadata(value: bytes) -> Change:
    return lambda data: append(data / METADATA, None, value)


def feature(name: str, level: int) -> Change:
    record = metadata_records.FeatureLevelRecord(name=name, feature_level=level)
    return metadata(encode_record(record, 0))


def replaced(path: str, old: bytes, new: bytes) -> Change:
    def change(data: Path) -> None:
        content = (data / path).read_bytes()
        assert content.startswith(old) or b"\n" + old in content or b"," + old in content
        (data / path).write_bytes(content.replace(old, new, 1))

    return change


def append(log: Path, key: bytes | None, value: bytes) -> None:
    """
    A batch of one record at the end of the last segment.
    """
    segment = max(log.glob("*.log"))
    *_, last = batches(segment.read_bytes())
    added = build_batch(
        [SimpleRecord(NOW_MS, key, value)],
        base_offset=last.next_offset,
        partition_leader_epoch=last.partition_leader_epoch,
    )
    with segment.open("ab") as file:
        file.write(added)


def text(content: str) -> bytes:
    return struct.pack(">h", len(content)) + content.encode()


def frame(record_type: int, version: int, frame_version: int = FRAME_VERSION) -> bytes:
    return uvarint(frame_version) + uvarint(record_type) + uvarint(version)


REFUSED: Final[dict[str, tuple[Change, str]]] = {
    "record-type": (metadata(frame(99, 0)), f"of type 99, version 0, .* does not know. {ADVICE}"),
    "record-version": (metadata(frame(2, 7)), f"of type 2, version 7, .* does not know. {ADVICE}"),
    "frame": (metadata(frame(2, 0, 2)), f"frame version 2, .* does not know. {ADVICE}"),
    "metadata-version": (
        feature("metadata.version", 31),
        f"metadata.version at level 31, but only levels 7 to 30 are supported. {ADVICE}$",
    ),
    "feature-level": (
        feature("share.version", 2),
        f"share.version at level 2, but only levels 0 to 1 are supported. {ADVICE[:-1]}, {LOWER}",
    ),
    "feature": (
        feature("castle.version", 1),
        f"castle.version at level 1, which this version does not know. {ADVICE[:-1]}, {LOWER}",
    ),
    "quorum-state": (
        replaced(f"{METADATA}/quorum-state", b'"data_version":0', b'"data_version":2'),
        f"quorum-state: data_version 2 is neither 0 nor 1. {ADVICE}",
    ),
    "meta-properties": (
        replaced("meta.properties", b"version=1", b"version=2"),
        f"meta.properties: Unknown meta.properties version number 2. {ADVICE}",
    ),
    "epochs-of-metadata": (
        replaced(f"{METADATA}/leader-epoch-checkpoint", b"0", b"1"),
        f"Unrecognised version:1, .*leader-epoch-checkpoint. {ADVICE}",
    ),
    "checkpoint": (
        replaced("log-start-offset-checkpoint", b"0", b"1"),
        f"Unrecognised version:1, .*log-start-offset-checkpoint. {ADVICE}",
    ),
    "epochs": (
        replaced(f"{TRANSACTIONS}-0/leader-epoch-checkpoint", b"0", b"1"),
        f"Unrecognised version:1, .*leader-epoch-checkpoint. {ADVICE}",
    ),
}
CHANGED_BEFORE_IT_IS_READ: Final = {"checkpoint", "epochs"}
"""Files of logs are read once the metadata are, and an epoch of this broker has begun."""


@pytest.mark.parametrize("name", REFUSED)
def test_data_of_a_later_version_is_refused(broker: Barnabas, name: str) -> None:
    """
    In one sentence that says what to do; no record and no state is changed.
    """
    change, sentence = REFUSED[name]
    change(broker.data)
    before = digests(broker.data)

    broker.launch()
    wait_for(lambda: not broker.is_running, "the end of the broker", 60)

    log = broker.log_text()
    errors = [line for line in log.splitlines() if " ERROR " in line or " CRITICAL " in line]
    (said,) = [line for line in errors if "A later version" in line]
    assert re.search(sentence, said), said
    assert "Traceback" not in log
    assert "remove the file" not in log
    if name not in CHANGED_BEFORE_IT_IS_READ:
        assert before == digests(broker.data)


def digests(data: Path) -> dict[str, str]:
    return {
        str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in data.rglob("*")
        if path.is_file() and path.suffix not in REBUILT and path.name != ".lock"
    }


@pytest.mark.parametrize(
    "name", ["meta.properties", "log-start-offset-checkpoint", "cleaner-offset-checkpoint"]
)
def test_directory_of_a_later_version_is_offline_beside_others(tmp_path: Path, name: str) -> None:
    """
    As in Apache Kafka; the others are served, and the log says why once.
    """
    one, other = tmp_path / "one", tmp_path / "other"
    with Barnabas(tmp_path, settings={**SETTINGS, "log.dirs": f"{one},{other}"}) as broker:
        fill(broker.bootstrap)
        broker.stop()
        (other / "cleaner-offset-checkpoint").write_text("0\n0\n")
        old, new = (b"version=1", b"version=2") if name == "meta.properties" else (b"0", b"1")
        replaced(name, old, new)(other)
        broker.start()

        here = [topic for topic in CODECS if (one / f"{topic}-0").exists()]
        assert here
        for topic in here:
            assert values(topic) == read(broker.bootstrap, topic)
        broker.stop()
    said = [line for line in broker.log_since_start().splitlines() if ADVICE in line]
    assert 1 == len(said), said
    assert str(other / name) in said[0]
    assert "Traceback" not in broker.log_text()


KEY_OF_OFFSET: Final = struct.pack(">h", 1) + text("readers") + text("none") + bytes(4)
NO_COORDINATOR: Final[dict[str, tuple[Change, str]]] = {
    "offset": (
        lambda data: append(data / OFFSETS, KEY_OF_OFFSET, struct.pack(">h", 9) + bytes(30)),
        "OffsetCommitValue",
    ),
    "group": (
        lambda data: append(
            data / OFFSETS, struct.pack(">h", 2) + text("g"), struct.pack(">h", 9) + bytes(30)
        ),
        "GroupMetadataValue",
    ),
    "consumer-group": (
        lambda data: append(
            data / OFFSETS, struct.pack(">h", 3) + text("g"), struct.pack(">h", 9) + bytes(30)
        ),
        "ConsumerGroupMetadataValue",
    ),
}


@pytest.mark.parametrize("name", NO_COORDINATOR)
def test_partition_with_group_records_of_a_later_version_has_no_coordinator(
    broker: Barnabas, name: str
) -> None:
    """
    As in Apache Kafka; a sentence says why, and records are served.
    """
    change, what = NO_COORDINATOR[name]
    change(broker.data)

    broker.start()
    wait_for(lambda: "cannot be loaded" in broker.log_text(), "the replay", 60)

    (said,) = [line for line in broker.log_text().splitlines() if "cannot be loaded" in line]
    assert f"{OFFSETS} cannot be loaded" in said
    assert f"{what} v9 is not known. {ADVICE} (record at offset 1" in said
    assert "Traceback" not in broker.log_text()
    assert values(TRANSACTIONS) == read(broker.bootstrap, TRANSACTIONS)


LEFT_BEHIND: Final[dict[str, tuple[Change, str]]] = {
    "type-of-group": (
        lambda data: append(data / OFFSETS, struct.pack(">h", 99) + b"k", b"anything"),
        "is of no known type",
    ),
    "key-of-transaction": (
        lambda data: append(data / STATE, struct.pack(">h", 5) + b"k", struct.pack(">h", 0)),
        "A key of __transaction_state is of version 5: passed over",
    ),
    "value-of-transaction": (
        lambda data: append(
            data / STATE, struct.pack(">h", 0) + text("other"), struct.pack(">h", 9) + bytes(30)
        ),
        "A value of __transaction_state is of version 9: passed over",
    ),
}


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_unknown_records_of_a_disabled_feature_are_ignored(broker: Barnabas, name: str) -> None:
    """
    As in Apache Kafka: its feature was switched off, or the start would be refused.
    """
    change, sentence = LEFT_BEHIND[name]
    change(broker.data)

    broker.start()
    for topic in (*CODECS, TRANSACTIONS):
        assert values(topic) == read(broker.bootstrap, topic)
    assert COMMITTED == committed(broker.bootstrap)
    broker.stop()

    log = broker.log_text()
    assert sentence in log
    assert "cannot be loaded" not in log
    assert " ERROR " not in log


def test_later_version_of_partition_metadata_is_read(broker: Barnabas) -> None:
    """
    As Apache Kafka reads it.
    """
    replaced(f"{TRANSACTIONS}-0/partition.metadata", b"version: 0", b"version: 1")(broker.data)

    broker.start()

    assert values(TRANSACTIONS) == read(broker.bootstrap, TRANSACTIONS)


def test_producer_snapshot_of_a_later_version_is_rebuilt_from_the_log(broker: Barnabas) -> None:
    path = max((broker.data / f"{TRANSACTIONS}-0").glob("*.snapshot"))
    content = path.read_bytes()
    path.write_bytes(struct.pack(">h", 2) + content[2:])

    broker.start()

    assert values(TRANSACTIONS) == read(broker.bootstrap, TRANSACTIONS)
    broker.stop()
    assert struct.pack(">h", 1) == max(path.parent.glob("*.snapshot")).read_bytes()[:2]
