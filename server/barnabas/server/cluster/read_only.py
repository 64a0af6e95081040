"""
The log directories of a broker that only shows them, of whatever node and cluster they are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.protocol.structs import NamedTuple
from barnabas.server.cluster.formatting import BOOTSTRAP_CHECKPOINT
from barnabas.server.cluster.metadata_log import DIRECTORY_NAME
from barnabas.storage.directories.directory import LOCK_FILE
from barnabas.storage.errors import InvalidLogDirectory, KafkaError
from barnabas.storage.state_files.file_names import parse_topic_partition_name
from barnabas.storage.state_files.meta_properties import META_PROPERTIES, MetaPropertiesEnsemble

if TYPE_CHECKING:
    from barnabas.server.config import BrokerConfig
    from barnabas.storage.fs.interface import Files

logger = logging.getLogger(__name__)

_OPTIONS: Final[Mapping[str, str]] = {
    "auto.create.topics.enable": "false",
    # The topic of groups, if there is none, gets as many replicas as there are brokers: one.
    "barnabas.replication.factor.clamp": "true",
}


class Directories(NamedTuple):
    """
    Directories that can be shown.
    """

    config: BrokerConfig
    """With the id of their node, and the place of its metadata log."""
    cluster_id: str


def find_directories(config: BrokerConfig, files: Files) -> Directories:
    """
    Look at the log directories of *config*. Those of one node are expected, of any cluster.

    Raises:
        InvalidLogDirectory: one is no log directory, or they do not belong together, or the
            metadata log is missing.
        CorruptCheckpoint: a ``meta.properties`` cannot be parsed.
        KafkaStorageError: one cannot be read.
    """
    named = [*config.log_directories]
    if config.metadata_log_dir:
        named.append(config.metadata_directory)
    log_dirs = list(dict.fromkeys(named))
    for log_dir in log_dirs:
        _check(log_dir, files)
    ensemble = MetaPropertiesEnsemble(files, log_dirs)
    ensemble.verify(None, None)
    for log_dir, error in ensemble.failed.items():
        raise InvalidLogDirectory(
            f"{log_dir / META_PROPERTIES} cannot be read: {error}", path=log_dir
        )
    metadata_dir = _metadata_directory(log_dirs, files)
    node_id, cluster_id = ensemble.node_id, ensemble.cluster_id
    if node_id is None or cluster_id is None:
        path = log_dirs[0] / META_PROPERTIES
        raise InvalidLogDirectory(
            f"{path} has no node.id or no cluster.id: restore them", path=log_dirs[0]
        )
    for log_dir in log_dirs:
        if files.is_locked(log_dir / LOCK_FILE):
            logger.warning(
                "A broker runs on %s. What it writes from now on is not shown, and segments that it"
                " removes cannot be read any more; a copy made by barnabas backup stays as it is",
                log_dir,
            )
    options = {
        **config.given,
        **_OPTIONS,
        "node.id": str(node_id),
        "broker.id": str(node_id),
        "metadata.log.dir": str(metadata_dir),
    }
    return Directories(config.parse(options), cluster_id)


def _check(log_dir: Path, files: Files) -> None:
    if not files.exists(log_dir):
        raise InvalidLogDirectory(
            f"There is no {log_dir}: name the log directory of a broker", path=log_dir
        )
    if not files.is_directory(log_dir):
        raise InvalidLogDirectory(f"{log_dir} is no directory", path=log_dir)
    if files.exists(log_dir / META_PROPERTIES):
        return
    if _is_log(log_dir):
        raise InvalidLogDirectory(
            f"{log_dir} is the log of one partition: name the directory above it", path=log_dir
        )
    raise InvalidLogDirectory(
        f"{log_dir} has no {META_PROPERTIES}: it is no log directory of a broker, or was never"
        " formatted. Without --read-only, an empty one is formatted",
        path=log_dir,
    )


def _is_log(path: Path) -> bool:
    try:
        parse_topic_partition_name(path)
    except KafkaError:
        return False
    return True


def _metadata_directory(log_dirs: Sequence[Path], files: Files) -> Path:
    """
    The directory that has the metadata log; or the first one, if the cluster was formatted and
    never started.
    """
    # The option metadata.log.dir comes last, and is the one that has it.
    for log_dir in reversed(log_dirs):
        if files.is_directory(log_dir / DIRECTORY_NAME):
            return log_dir
    logs = [name for log_dir in log_dirs for name in files.directory_names(log_dir)]
    formatted = [each for each in log_dirs if files.exists(each / BOOTSTRAP_CHECKPOINT)]
    if formatted and not logs:
        return formatted[0]
    names = ", ".join(map(str, log_dirs))
    raise InvalidLogDirectory(
        f"{names}: there is no {DIRECTORY_NAME}, which says what topics there are. Name the"
        " directory that has it, with --set metadata.log.dir=DIR. A broker before KRaft had none:"
        " its logs can be read by barnabas explain and barnabas dump-log",
        path=log_dirs[0],
    )
