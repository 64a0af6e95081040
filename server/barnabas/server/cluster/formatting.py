"""
The preparation of log directories: new ones are formatted as by ``kafka-storage format``, and the
others are checked.

Every log directory has its owner (``meta.properties``) and the first records of the metadata log
(``bootstrap.checkpoint``, which is read in the directory of that log only). ``meta.properties`` is
written last: a directory that has it is complete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from barnabas.coordination.cluster import features
from barnabas.coordination.cluster.errors import UnknownMetadataRecord
from barnabas.coordination.cluster.image import Versioned
from barnabas.coordination.cluster.record_frames import decode_record
from barnabas.protocol.errors import CorruptMessage, DecodeError, KafkaError
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.records.batch import batches
from barnabas.server.cluster.snapshots import snapshot_batches
from barnabas.storage.errors import InvalidLogDirectory, KafkaStorageError
from barnabas.storage.fs.interface import Files
from barnabas.storage.state_files.file_names import (
    REMOTE_LOG_INDEX_CACHE,
    parse_topic_partition_name,
)
from barnabas.storage.state_files.meta_properties import META_PROPERTIES, MetaPropertiesEnsemble
from barnabas.storage.uuids import random_uuid, uuid_text

logger = logging.getLogger(__name__)

BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
NO_TIMESTAMP: Final = 0


def prepare_directories(
    log_dirs: Sequence[Path],
    *,
    metadata_dir: Path,
    node_id: int,
    cluster_id: str | None,
    files: Files,
    now_ms: int,
    users: Sequence[records.UserScramCredentialRecord] = (),
) -> str:
    """
    Format the new log directories, check that all belong to one cluster, and return its id.

    A directory that cannot be read is left to the log manager, which has it offline, unless it is
    that of the metadata log.

    Args:
        metadata_dir: the one of *log_dirs* that has the metadata log.
        cluster_id: the expected id; None accepts that of the directories, or generates one if all
            are new.
        users: the first users of a new cluster.

    Returns:
        The id of the cluster.

    Raises:
        InvalidLogDirectory: a directory belongs to another node or cluster, two have the same id,
            or one has logs but no ``meta.properties``.
        CorruptCheckpoint: the ``meta.properties`` of *metadata_dir* cannot be parsed.
        KafkaStorageError: it cannot be read, or no directory can be used.
    """
    ensemble = MetaPropertiesEnsemble(files, _made(log_dirs, files))
    if (error := ensemble.failed.get(metadata_dir)) is not None:
        raise error
    ensemble.verify(cluster_id, node_id)
    for log_dir in ensemble.empty:
        _check_fresh(log_dir, files)
    cluster_id = cluster_id or ensemble.cluster_id or uuid_text(random_uuid())
    for log_dir in ensemble.empty:
        # It has the credentials of the first users.
        files.write_atomically(
            log_dir / BOOTSTRAP_CHECKPOINT, _bootstrap(now_ms, users), restricted=True
        )
        logger.info("Formatted %s for cluster %s", log_dir, cluster_id)
    ensemble.complete(cluster_id, node_id, now_ms)
    return cluster_id


def _made(log_dirs: Sequence[Path], files: Files) -> list[Path]:
    made, failures = [], []
    for log_dir in dict.fromkeys(log_dirs):
        try:
            files.make_directory(log_dir)
            made.append(log_dir)
        except KafkaStorageError as error:
            logger.error("Log directory %s cannot be used: %s", log_dir, error)
            failures.append(error)
    if not made:
        raise failures[0]
    return made


def check_places(log_dirs: Iterable[Path], files: Files) -> None:
    """
    Check, before anything is written, that each directory is new or has ``meta.properties``.

    Raises:
        InvalidLogDirectory: a directory without the file has a log, or another directory.
    """
    for log_dir in dict.fromkeys(log_dirs):
        if files.is_directory(log_dir) and not files.exists(log_dir / META_PROPERTIES):
            _check_fresh(log_dir, files)


def _check_fresh(log_dir: Path, files: Files) -> None:
    """
    Check that a directory without ``meta.properties`` is new. If it has only lost the file, its
    logs would be taken for strays; and no file is written into a directory in which no broker would
    start, such as the root of a file system.

    Raises:
        InvalidLogDirectory: the directory has a log, or another directory.
    """
    for name in files.names(log_dir):
        if name == REMOTE_LOG_INDEX_CACHE or not files.is_directory(log_dir / name):
            continue
        parse_topic_partition_name(log_dir / name)
        raise InvalidLogDirectory(
            f"{log_dir} has no meta.properties, but it holds {name}: restore the file, or use an"
            " empty directory",
            path=log_dir,
        )


def _bootstrap(now_ms: int, users: Sequence[records.UserScramCredentialRecord]) -> bytes:
    return b"".join(
        snapshot_batches(
            [*default_bootstrap(), *((user, 0) for user in users)],
            epoch=0,
            now_ms=now_ms,
            last_contained_ms=NO_TIMESTAMP,
            quorum={},
        )
    )


def default_bootstrap() -> list[Versioned]:
    """
    The first records of a cluster that was not formatted with others.
    """
    return [
        (records.FeatureLevelRecord(name=name, feature_level=level), 0)
        for name, level in features.BOOTSTRAP_LEVELS.items()
    ]


def read_bootstrap(metadata_dir: Path, files: Files) -> list[Versioned]:
    """
    The records in ``bootstrap.checkpoint``, or the default ones if there is no such file.

    A wrong checksum is logged, and the records are used: Kafka's ``BatchFileReader`` verifies none.

    Raises:
        CorruptMessage: the file is so damaged that its records cannot be read.
        UnknownMetadataRecord: a later release wrote it.
    """
    path = metadata_dir / BOOTSTRAP_CHECKPOINT
    if not files.exists(path):
        return default_bootstrap()
    try:
        return list(_records(path, files))
    except UnknownMetadataRecord as error:
        raise UnknownMetadataRecord(f"{path}: {error}") from error
    except (KafkaError, DecodeError) as error:
        raise CorruptMessage(
            f"{path} is damaged, and the metadata log begins with its records: {error}. Format the"
            " directory again"
        ) from error


def _records(path: Path, files: Files) -> Iterator[Versioned]:
    for batch in batches(files.read_bytes(path)):
        if not batch.is_valid():
            logger.warning(
                "%s: the batch at %d does not match its checksum. Its records are used as they are",
                path,
                batch.position,
            )
        if not batch.is_control:
            for record in batch.records():
                yield decode_record(record.value or b"")
