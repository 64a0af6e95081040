from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.state_files.checkpoints import format_checkpoint
from barnabas.storage.state_files.partition_metadata import (
    PARTITION_METADATA,
    format_partition_metadata,
)
from barnabas.storage.state_files.quorum_state import QuorumState
from barnabas.storage.verify.cluster import KnownTopic, KnownTopics
from barnabas.storage.verify.context import DirectoryState
from barnabas.storage.verify.report import Violation
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.sound_directory import (
    DIRECTORY_ID,
    NODE_ID,
    ROOT,
    TOPIC_IDS,
    TOPICS,
    sound_directory,
)
from tests.support.verifying import verified

OTHER = Path("/more")


@pytest.fixture
def files() -> MemoryFiles:
    return sound_directory()


def put(files: MemoryFiles, path: Path, data: bytes = b"") -> None:
    files.make_directory(path.parent)
    files.write_atomically(path, data)


def rules(
    files: MemoryFiles, *paths: Path, topics: KnownTopics | None = None
) -> set[tuple[str, str, str]]:
    """
    Severity, rule and file of what is found.
    """
    return in_short(verified(paths or (ROOT,), lambda _: topics, files=files)[0])


def in_short(violations: list[Violation]) -> set[tuple[str, str, str]]:
    return {(each.severity.value, each.rule, str(each.path)) for each in violations}


def meta_properties(**changed: str) -> bytes:
    lines = {
        "version": "1",
        "cluster.id": "4L6g3nShT-eMCtK",
        "node.id": str(NODE_ID),
        "directory.id": "AAAAAAAAAAAAAAAAAAAnEQ",
        **{name.replace("_", "."): value for name, value in changed.items()},
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items()).encode()


# All log directories of a node.


def test_two_directories_of_one_node_are_accepted(files: MemoryFiles) -> None:
    put(files, OTHER / "meta.properties", meta_properties())

    assert set() == rules(files, ROOT, OTHER)


@pytest.mark.parametrize(
    "changed",
    [{"cluster_id": "another"}, {"node_id": "2"}, {"directory_id": "AAAAAAAAAAAAAAAAAAATiQ"}],
)
def test_directories_of_different_nodes_are_reported(
    files: MemoryFiles, changed: Mapping[str, str]
) -> None:
    assert DIRECTORY_ID == UUID(int=5001)
    put(files, OTHER / "meta.properties", meta_properties(**changed))

    assert {("error", "meta-properties-same", str(OTHER / "meta.properties"))} == rules(
        files, ROOT, OTHER
    )


@pytest.mark.parametrize(
    "data", [b"", b"version=1\nnode.id=1\n", b"version=7\n", meta_properties(node_id="x"), None]
)
def test_directory_without_meta_properties_is_reported(
    files: MemoryFiles, data: bytes | None
) -> None:
    path = ROOT / "meta.properties"
    if data is None:
        files.remove(path)
    else:
        put(files, path, data)

    assert {("error", "meta-properties", str(path))} == rules(files)


def test_partition_in_two_directories_is_reported(files: MemoryFiles) -> None:
    """
    Except a future copy or a log marked for deletion.
    """
    put(files, OTHER / "meta.properties", meta_properties())
    for name in (f"compacted-0.{'a' * 32}-future", "empty-0", f"plain-0.{'a' * 32}-future"):
        put(files, OTHER / name / f"{0:020d}.log")
        put(files, OTHER / name / f"{0:020d}.index")
        put(files, OTHER / name / f"{0:020d}.timeindex")
        put(files, OTHER / name / PARTITION_METADATA, format_partition_metadata(UUID(int=9)))

    assert {("error", "duplicate-log", str(OTHER / "empty-0"))} == rules(files, ROOT, OTHER)


# One log directory.


def test_directory_that_is_not_a_log_is_reported(files: MemoryFiles) -> None:
    """
    A broker would not start with it. Files and the cache of tiered storage are ignored.
    """
    files.make_directory(ROOT / "lost+found")
    files.make_directory(ROOT / "remote-log-index-cache")
    put(files, ROOT / "notes.txt")

    assert {("error", "directory-name", str(ROOT / "lost+found"))} == rules(files)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["plain 0 1", "plain 0 2"], "checkpoint-format"),
        (["plain 0 -1"], "checkpoint-format"),
        (["plain 0"], "checkpoint-format"),
        (["gone 0 5"], "checkpoint-partition"),
    ],
)
@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_malformed_checkpoint_is_reported(
    files: MemoryFiles, name: str, lines: list[str], expected: str
) -> None:
    put(files, ROOT / name, format_checkpoint(lines))

    severity = "warning" if expected == "checkpoint-partition" else "error"
    assert {(severity, expected, str(ROOT / name))} == rules(files)


@pytest.mark.parametrize(
    ("name", "rule", "severity"),
    [
        ("recovery-point-offset-checkpoint", "recovery-point", "error"),
        ("replication-offset-checkpoint", "high-watermark", "error"),
        ("log-start-offset-checkpoint", "log-start-offset", "error"),
        ("cleaner-offset-checkpoint", "cleaner-offset", "warning"),
    ],
)
def test_checkpoint_beyond_the_log_end_offset_is_reported(
    files: MemoryFiles, name: str, rule: str, severity: str
) -> None:
    put(files, ROOT / name, format_checkpoint(["plain 0 21", "compacted 0 40"]))

    assert {(severity, rule, str(ROOT / "plain-0"))} == rules(files)


def test_unreadable_checkpoint_is_reported(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = ROOT / "recovery-point-offset-checkpoint"
    read = files.read_bytes

    def fail(path: Path) -> bytes:
        if path == checkpoint:
            raise KafkaStorageError(f"{path}: Input/output error")
        return read(path)

    monkeypatch.setattr(files, "read_bytes", fail)

    assert {("error", "unreadable", str(checkpoint))} == rules(files)


@pytest.mark.parametrize(
    ("data", "is_fine"),
    [
        (b"", True),
        (b'{"version":0,"brokerEpoch":5}', True),
        (b'{"version":0}', False),
        (b"[]", False),
        (b"yes", False),
    ],
)
def test_malformed_clean_shutdown_file_is_reported(
    files: MemoryFiles, data: bytes, is_fine: bool
) -> None:
    path = ROOT / ".kafka_cleanshutdown"
    put(files, path, data)

    violations, verification = verified([ROOT], files=files)

    assert ([] if is_fine else ["clean-shutdown"]) == [each.rule for each in violations]
    assert {ROOT: DirectoryState.CLEAN} == verification.states


def test_log_waiting_for_deletion_is_reported_only_after_a_crash(files: MemoryFiles) -> None:
    put(files, ROOT / f"gone-0.{'0' * 32}-delete" / f"{0:020d}.log", b"anything")
    put(files, ROOT / "plain-0" / f"{0:020d}.log.deleted")
    put(files, ROOT / "plain-0" / f"{6:020d}.log.cleaned")
    assert set() == rules(files)

    files.remove(ROOT / ".kafka_cleanshutdown")
    expected = {("warning", "leftover", str(path)) for path in (ROOT, ROOT / "plain-0")}
    assert expected == rules(files)

    put(files, ROOT / ".kafka_cleanshutdown")
    put(files, ROOT / "empty-0" / f"{0:020d}.log.swap")
    put(files, ROOT / "cleaner-offset-checkpoint.tmp")
    expected = {("warning", "leftover", str(path)) for path in (ROOT, ROOT / "empty-0")}
    assert expected == rules(files)


# The metadata of the cluster.


def known(
    topic: str, *, topic_id: UUID | None = None, node: int = NODE_ID, partitions: int = 1
) -> KnownTopics:
    """
    What is known of all topics, with something else of one of them.
    """
    replicas = {number: {node: DIRECTORY_ID} for number in range(partitions)}
    return {**TOPICS, topic: KnownTopic(topic_id or TOPIC_IDS[topic], {}, replicas)}


def test_logs_known_to_the_metadata_are_accepted(files: MemoryFiles) -> None:
    assert set() == rules(files, topics=TOPICS)


def test_log_with_another_topic_id_is_reported(files: MemoryFiles) -> None:
    topics = known("plain", topic_id=UUID(int=9))

    path = ROOT / "plain-0" / PARTITION_METADATA
    assert {("error", "topic-id", str(path))} == rules(files, topics=topics)


@pytest.mark.parametrize("reason", ["topic", "partition", "node"])
def test_log_not_assigned_to_this_directory_is_reported(files: MemoryFiles, reason: str) -> None:
    topics: KnownTopics = {
        "topic": {name: topic for name, topic in TOPICS.items() if name != "plain"},
        "partition": known("plain", partitions=0),
        "node": known("plain", node=NODE_ID + 1),
    }[reason]

    assert {("warning", "stray-log", str(ROOT / "plain-0"))} == rules(files, topics=topics)


def test_stray_log_is_reported(files: MemoryFiles) -> None:
    files.rename(ROOT / "plain-0", ROOT / f"plain-0.{'a' * 32}-stray")
    put(files, ROOT / "recovery-point-offset-checkpoint")
    put(files, ROOT / "replication-offset-checkpoint")
    topics = {name: topic for name, topic in TOPICS.items() if name != "plain"}

    path = ROOT / f"plain-0.{'a' * 32}-stray"
    assert {("warning", "stray-log", str(path))} == rules(files, topics=topics)


def test_missing_log_of_an_assigned_partition_is_reported(files: MemoryFiles) -> None:
    """
    After a crash it may not have been created yet; the next start creates it.
    """
    path = str(ROOT / "plain-1")
    topics = known("plain", partitions=2)
    assert {("error", "log-missing", path)} == rules(files, topics=topics)

    files.remove(ROOT / ".kafka_cleanshutdown")
    assert {("warning", "log-missing", path)} == rules(files, topics=topics)


def test_log_in_an_unexamined_directory_is_not_reported_as_missing(files: MemoryFiles) -> None:
    replicas = {0: {NODE_ID: DIRECTORY_ID}, 1: {NODE_ID: UUID(int=5002)}, 2: {2: UUID(int=1)}}
    topics = {**TOPICS, "plain": KnownTopic(TOPIC_IDS["plain"], {}, replicas)}

    assert set() == rules(files, topics=topics)


# One log alone.


def test_single_log_is_checked_against_the_state_files_beside_it(files: MemoryFiles) -> None:
    put(files, ROOT / "recovery-point-offset-checkpoint", format_checkpoint(["plain 0 21"]))
    log = ROOT / "plain-0"

    assert {("error", "recovery-point", str(log))} == rules(files, log)


def test_copied_log_is_checked_without_state_files(files: MemoryFiles) -> None:
    """
    It may come from a broker that was running or was killed.
    """
    files.rename(ROOT / "compacted-0", Path("/copies/compacted-0"))

    violations, verification = verified([Path("/copies/compacted-0")], files=files)

    assert [] == violations
    assert {} == verification.states


def test_log_directory_may_be_named_like_a_log(files: MemoryFiles) -> None:
    files.rename(ROOT, Path("/kafka-0"))

    _, verification = verified([Path("/kafka-0")], lambda _: TOPICS, files=files)

    assert [Path("/kafka-0")] == list(verification.states)


def test_verified_path_must_be_a_directory(files: MemoryFiles) -> None:
    for path in (ROOT / "meta.properties", Path("/nowhere")):
        with pytest.raises(NotADirectoryError):
            verified([ROOT, path], files=files)


def test_topics_are_read_from_whichever_directory_has_the_metadata_log(files: MemoryFiles) -> None:
    put(files, OTHER / "meta.properties", meta_properties())
    asked = []

    def read_topics(root: LogRoot) -> KnownTopics | None:
        asked.append(root.path)
        return TOPICS if root.path == OTHER else None

    assert [] == verified([ROOT, OTHER], read_topics, files=files)[0]
    assert {ROOT, OTHER} == set(asked)


@pytest.mark.parametrize("damaged", [b"", b'{"leaderId":1}', b"[" * 100_000, b"\xff{}"])
def test_unreadable_quorum_state_is_reported(files: MemoryFiles, damaged: bytes) -> None:
    """
    No broker starts with it, neither ours nor Kafka's. A missing one is accepted: an unused
    directory counts as new.
    """
    path = ROOT / "__cluster_metadata-0" / "quorum-state"
    telling = ("error", "quorum-state", str(path))
    put(files, path, QuorumState(leader_id=NODE_ID, leader_epoch=4).to_json().encode())
    assert telling not in rules(files)

    put(files, path, damaged)

    assert telling in rules(files)
