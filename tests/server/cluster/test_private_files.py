"""
Files with credentials and passwords belong to the user who runs the broker alone.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from barnabas.server.cli import main
from barnabas.server.cluster.metadata_log import DIRECTORY_NAME
from barnabas.storage.fs.disk import DiskFiles
from tests.support.sasl_client import add_scram_user
from tests.support.server import running

USER: Final = "SCRAM-SHA-256=[name=alice,password=wonderland]"
OPEN_TO_ALL: Final = 0o022


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(OPEN_TO_ALL)
    yield
    os.umask(before)


def readable_by_others(directory: Path) -> set[str]:
    """
    The files that another user can read, by their names.
    """
    found = set()
    for parent, names, files in os.walk(directory):
        names[:] = [name for name in names if mode(Path(parent, name)) & 0o077]
        found |= {name for name in files if mode(Path(parent, name)) & 0o077}
    return found


def files_with(content: bytes, directory: Path) -> set[str]:
    return {
        path.name
        for path in directory.rglob("*")
        if path.is_file() and content in path.read_bytes()
    }


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_formatted_directory_shows_no_credentials_to_other_users(tmp_path: Path) -> None:
    data = tmp_path / "data"

    assert 0 == main(["format", "--data-dir", str(data), "--add-scram", USER])

    assert b"alice" in (data / "bootstrap.checkpoint").read_bytes()
    assert 0o600 == mode(data / "bootstrap.checkpoint")
    assert {"meta.properties"} == readable_by_others(data)


async def test_metadata_log_and_its_snapshots_are_private(tmp_path: Path) -> None:
    async with running(DiskFiles(), log_dirs=str(tmp_path)) as broker:
        await asyncio.to_thread(add_scram_user, broker.listeners[0].port, "carol", "secret")
        controller = broker.inside.controller
        await controller.run(controller.log.prepare_snapshot())

    directory = tmp_path / DIRECTORY_NAME
    assert 0o700 == mode(directory)
    with_credentials = files_with(b"salt of carol", tmp_path)
    assert len(with_credentials) > 1, "the log and a snapshot"
    assert not with_credentials & readable_by_others(tmp_path)


async def test_permissions_of_an_existing_metadata_directory_are_kept(tmp_path: Path) -> None:
    async with running(DiskFiles(), log_dirs=str(tmp_path)):
        pass
    (tmp_path / DIRECTORY_NAME).chmod(0o750)

    async with running(DiskFiles(), log_dirs=str(tmp_path)):
        pass

    assert 0o750 == mode(tmp_path / DIRECTORY_NAME)
