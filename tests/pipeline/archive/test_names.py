"""
Names of directories and topics that engines take for patterns, escapes or nulls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline import read_archive
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.opening import open_table
from barnabas.pipeline.jobs.compact.job import compact
from barnabas.pipeline.jobs.compact.reading import read_compacted
from tests.pipeline.archive.archived import SEGMENT_BYTES, archived_rows, closed_rows, fill
from tests.pipeline.compact.compacted import compacted_rows
from tests.support.log_directory import WrittenDirectory

pytestmark = [pytest.mark.spark, pytest.mark.prove]

TOPICS: Final = ("__HIVE_DEFAULT_PARTITION__", "null", "123", "events")
SUBSCRIBED: Final = {"subscribe": ",".join(TOPICS)}
PIECES: Final = (*"[]{}\\*?% ,:#ü^=", "%20")
MISREAD: Final = ("[", "]", "\\", "^", "%20")
"""Names that delta-rs reads as other names."""


@pytest.fixture(scope="module")
def named_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = WrittenDirectory(tmp_path_factory.mktemp("logs"))
    for topic in TOPICS:
        fill(directory.log(topic, segment_bytes=SEGMENT_BYTES), 40)
    directory.stop()
    return directory.path


@pytest.mark.parametrize("start", range(4))
def test_directory_and_topic_names_are_only_names(
    session: SparkSession, named_logs: Path, tmp_path: Path, start: int
) -> None:
    name = "b".join(PIECES[start::4])
    to, compacted = tmp_path / f"a{name}c", tmp_path / f"a{name}d"
    archive(None, str(named_logs), to, SUBSCRIBED)
    compact(None, str(named_logs), compacted, SUBSCRIBED)

    places = ["topic", "partition", "offset"]
    for found, expected in (
        (read_archive(session, to), archived_rows(to)),
        (read_compacted(session, compacted), compacted_rows(compacted)),
    ):
        rows = [tuple(row) for row in found.select(*places).collect()]
        assert sorted(row[2:5] for row in expected) == sorted(rows)
        for topic in TOPICS:
            count = sum(row[2] == topic for row in expected)
            assert count == found.where(f"topic = '{topic}'").count() > 0


@pytest.mark.parametrize("piece", PIECES)
def test_delta_table_is_in_the_directory_that_is_named_or_is_refused(
    named_logs: Path, tmp_path: Path, piece: str
) -> None:
    pytest.importorskip("deltalake")
    to = tmp_path / "tables" / f"a{piece}b"
    if piece in MISREAD:
        with pytest.raises(InvalidOption, match="delta-rs does not take"):
            open_table(to, "delta")
        assert not to.parent.exists()
        return
    table = open_table(to, "delta")

    archive(None, str(named_logs), table, SUBSCRIBED)

    assert [to] == list(to.parent.iterdir())
    expected = closed_rows(named_logs, **SUBSCRIBED)
    files = [file for each in table.partitions for file in table.files_of(each)]
    assert {row[2] for row in expected} == {file.topic_partition.topic for file in files}
    assert len(table.partitions) == len(TOPICS)
