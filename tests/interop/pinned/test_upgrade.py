"""
A directory of each release is opened by this version.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.server.cli import main
from tests.interop.clients.base import CODECS
from tests.interop.pinned.directory import (
    ARCHIVES,
    COMMITTED,
    RETENTION_MS,
    SETTINGS,
    TRANSACTIONS,
    committed,
    read,
    retention,
    values,
    write_more,
)
from tests.support.broker_process import Barnabas

pytestmark = pytest.mark.prove

RELEASES = sorted(ARCHIVES.glob("*.tar.xz"))


@pytest.fixture(params=RELEASES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Barnabas]:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    found = Barnabas(tmp_path, settings=SETTINGS)
    yield found
    found.close()


def test_earlier_release_is_available() -> None:
    assert RELEASES


def test_data_of_an_earlier_release_is_complete_and_can_be_continued(broker: Barnabas) -> None:
    """
    And goes on: more is written, the broker is stopped and killed, and every file is sound.
    """
    assert 0 == main(["verify", str(broker.data)])
    broker.start()
    for topic in (*CODECS, TRANSACTIONS):
        assert values(topic) == read(broker.bootstrap, topic)
    assert COMMITTED == committed(broker.bootstrap)
    assert RETENTION_MS == retention(broker.bootstrap)

    write_more(broker.bootstrap)
    broker.restart()
    broker.kill()
    broker.start()
    assert [*values(TRANSACTIONS), b"more"] == read(broker.bootstrap, TRANSACTIONS)
    broker.stop()
    assert 0 == main(["verify", str(broker.data)])
