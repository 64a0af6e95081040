"""
The directory and the files of a cluster to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from barnabas.coordination.cluster.errors import ForeignQuorum
from barnabas.coordination.cluster.image import MetadataImage
from barnabas.protocol.structs import NamedTuple
from barnabas.server.cluster.metadata_log import DIRECTORY_NAME, MetadataLog
from barnabas.server.config import Settings
from barnabas.server.tools.graduate.nodes import Node, parse_nodes
from barnabas.server.tools.graduate.properties import CONTROLLER, server_properties
from barnabas.server.tools.graduate.reassignment import reassignment
from barnabas.server.tools.graduate.steps import REASSIGNMENT, properties_of
from barnabas.storage.clock import SystemClock
from barnabas.storage.directories.directory import LOCK_FILE
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.properties import format_properties
from barnabas.storage.state_files.meta_properties import META_PROPERTIES, parse_meta_properties


class CannotGraduate(Exception):
    """
    The directory is not ready. The sentence says why, and what to do.
    """


class Home(NamedTuple):
    """
    The node as it is.
    """

    cluster_id: str
    nodes: Sequence[Node]
    image: MetadataImage


def graduate(
    settings: Settings, given_nodes: Sequence[str], output: Path, other_directory: str
) -> Home:
    """
    Record the controller in the metadata, and write the files for the nodes into *output*.

    The voter is recorded last: before that nothing has changed but the epoch, as after a start.

    Raises:
        ConfigError: a node is malformed.
        CannotGraduate: the directory or *output* is not ready.
        KafkaError: the metadata cannot be read or written.
        OSError: *output* cannot be written.
    """
    config = settings.config()
    files, clock = DiskFiles(), SystemClock()
    directories = list(dict.fromkeys([*config.log_directories, config.metadata_directory]))
    with ExitStack() as locks:
        for directory in directories:
            if not (directory / META_PROPERTIES).exists():
                raise CannotGraduate(
                    f"{directory} is no log directory of a broker: it has no {META_PROPERTIES}"
                )
            lock = files.lock(directory / LOCK_FILE)
            if lock is None:
                raise CannotGraduate(f"a broker runs on {directory}: stop it first")
            locks.callback(lock.release)
        path = config.metadata_directory / META_PROPERTIES
        meta = parse_meta_properties(path.read_bytes(), path)
        if meta.node_id is None or meta.cluster_id is None or meta.directory_id is None:
            raise CannotGraduate(f"{path} lacks an id: start the broker once, and stop it")
        nodes = parse_nodes(given_nodes, meta.node_id)
        if output.exists() and not (output.is_dir() and not any(output.iterdir())):
            raise CannotGraduate(f"{output} is no empty directory: name one, or a new one")
        if not (config.metadata_directory / DIRECTORY_NAME).exists():
            raise CannotGraduate(
                f"{config.metadata_directory} has no {DIRECTORY_NAME}: no broker was started on it,"
                " or its metadata are in another directory (metadata.log.dir)"
            )
        log = MetadataLog.open(
            config.metadata_directory,
            node_id=meta.node_id,
            config=config,
            files=files,
            clock=clock,
            failures=LogDirFailureChannel(),
        )
        try:
            if log.image.is_empty:
                raise CannotGraduate(f"no broker was started on {config.metadata_directory} yet")
            log.lead()
            _write(output, nodes, settings, log.image, other_directory)
            first = nodes[0]
            log.keep_voter(meta.directory_id, CONTROLLER, first.host, first.controller_port)
        except ForeignQuorum as error:
            raise CannotGraduate(f"this is part of a cluster already: {error}") from None
        finally:
            log.close()
        return Home(meta.cluster_id, nodes, log.image)


def _write(
    output: Path,
    nodes: Sequence[Node],
    settings: Settings,
    image: MetadataImage,
    other_directory: str,
) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for node in nodes:
        text = format_properties(server_properties(node, nodes, settings, other_directory))
        text = text.replace("\\:", ":")  # which Java escapes, and reads without it
        path = output / properties_of(node)
        path.touch(mode=0o600)  # There may be passwords in it.
        path.write_text(text, encoding="latin-1")
    (output / REASSIGNMENT).write_text(reassignment(image, nodes))
