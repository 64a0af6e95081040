from __future__ import annotations

import dataclasses
import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.report.command import add_arguments, run
from barnabas.pipeline.jobs.report.facts import Report
from barnabas.pipeline.jobs.report.figures import Figures, Snapshot
from barnabas.pipeline.jobs.report.frames import history_frame
from barnabas.pipeline.jobs.report.page import as_page
from barnabas.pipeline.jobs.report.trends import LINES, trend_lines, trends_of
from barnabas.server.cli import main
from barnabas.server.dynamic_config.known_cluster import read_cluster
from barnabas.storage.topic_partition import TopicPartition
from tests.pipeline.report.conftest import HOUR, NOW
from tests.support.clock import StillClock
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.segments import FIRST_TIMESTAMP

pytestmark = [pytest.mark.spark, pytest.mark.prove]

DAY = 24 * HOUR
MiB = 1 << 20


def figures(name: str, size: int, **more: int | None) -> Figures:
    topic, _, number = name.rpartition("-")
    values = {
        "segments": 2,
        "records": 10,
        "first_ms": FIRST_TIMESTAMP,
        "last_ms": FIRST_TIMESTAMP,
        "retention_ms": 2 * DAY,
        "retention_bytes": -1,
        "shortest_life_ms": None,
        "longest_life_ms": None,
        "due_segments": 0,
        "due_bytes": 0,
        **more,
    }
    partition = TopicPartition(topic, int(number))
    return Figures(partition=partition, size=size, deletions=(), **values)  # type: ignore[arg-type]


def days(*sizes: dict[str, int]) -> list[Snapshot]:
    return [
        Snapshot(
            NOW + (number - len(sizes) + 1) * DAY,
            tuple(figures(name, size) for name, size in some.items()),
        )
        for number, some in enumerate(sizes)
    ]


GROWN = days(
    {"keys-0": 4 * MiB, "times-0": 1 * MiB},
    {"times-0": 2 * MiB},
    {"keys-0": 3 * MiB, "times-0": 8 * MiB},
    {"keys-0": 2 * MiB, "times-0": 16 * MiB},
)


def points(page: str, line: str) -> list[list[tuple[float, float]]]:
    """
    The parts of a line in a plot, each as a list of points. The y axis of a picture points down.
    """
    (picture,) = [
        found for found in re.findall(r"<svg.*?</svg>", page, re.DOTALL) if f'id="{line}"' in found
    ]
    root = ElementTree.fromstring(picture)
    path = root.find(f".//*[@id='{line}']/{{*}}path")
    assert path is not None
    numbers = r"(-?[0-9.]+) (-?[0-9.]+)"
    return [
        [(float(x), float(y)) for x, y in re.findall(numbers, part)]
        for part in path.attrib["d"].split("M")[1:]
    ]


def test_trend_line_has_a_point_for_each_run(report: Report) -> None:
    ((first, *others),) = points(as_page(report, GROWN), "size, in MiB of times-0")

    assert 3 == len(others)
    heights = [first[1] - y for _, y in others]
    assert heights == pytest.approx([heights[0] * by for by in (1, 7, 15)], rel=1e-3)
    steps = [x - first[0] for x, _ in others]
    assert steps == pytest.approx([steps[0] * by for by in (1, 2, 3)], rel=1e-3)


def test_run_without_the_partition_leaves_a_gap(report: Report) -> None:
    parts = points(as_page(report, GROWN), "size, in MiB of keys-0")

    assert [1, 2] == [len(part) for part in parts]


def test_age_of_the_oldest_record_is_plotted_beside_retention_ms(report: Report) -> None:
    page = as_page(report, GROWN[2:])
    ((then, now),) = points(page, "age of the oldest record, in hours of times-0")

    assert then[1] > now[1]
    assert ">retention.ms</" in page
    assert "6 hours old" not in page
    assert "8 hours old" in page


def test_trend_table_has_the_first_and_the_last_run(report: Report) -> None:
    later = figures("times-0", 3 * MiB, due_bytes=5 * MiB, retention_ms=-1)
    history = [*GROWN[:-1], Snapshot(NOW, (later,))]

    page = as_page(report, history)

    (row,) = re.findall(r"<tr><td>times-0</td><td class=\"n\">4</td>.*?</tr>", page)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert ["1 MiB", "3 MiB"] == cells[3:5]
    assert ["0 ms old", "8 hours old", "2 days", "none", "5 MiB"] == cells[5:]


def test_first_run_has_no_comparison(report: Report) -> None:
    page = as_page(report, GROWN[-1:])

    assert "This is the first run." in page
    assert 4 == page.count("<svg")
    assert [] == list(trend_lines(trends_of(report, GROWN[-1:])))


def test_runs_after_the_given_time_are_left_out(report: Report) -> None:
    trends = {str(trend.partition): trend for trend in trends_of(report, GROWN)}
    before = dataclasses.replace(report, now_ms=NOW - DAY)
    earlier = {str(trend.partition): trend for trend in trends_of(before, GROWN)}

    assert 4 == len(trends["times-0"].known)
    assert 3 == len(earlier["times-0"].known)
    assert [] == earlier["empty-0"].known


def test_trends_are_printed_as_text(report: Report) -> None:
    lines = list(trend_lines(trends_of(report, GROWN)))

    assert [
        "keys-0: 2 MiB less in 3 days, over 3 runs; oldest record 0 ms old then, 8 hours old now",
        "times-0: 15 MiB more in 3 days, over 4 runs; oldest record 0 ms old then, 8 hours old now",
    ] == lines


def test_largest_partitions_have_a_trend_line(report: Report) -> None:
    facts = report.partitions[0]
    names = [f"many-{number}" for number in range(LINES + 2)]
    many = dataclasses.replace(
        report,
        partitions=tuple(
            dataclasses.replace(facts, partition=TopicPartition("many", number))
            for number in range(len(names))
        ),
    )
    sizes = {name: (number + 1) * MiB for number, name in enumerate(names)}

    page = as_page(many, days(sizes, sizes))

    assert f"The plots have the {LINES} largest partitions." in page
    lines = re.findall(r'id="size, in MiB of (.*?)"', page)
    assert sorted(names[2:]) == sorted(lines)


def test_records_without_timestamps_have_no_age_line(report: Report) -> None:
    history = [
        Snapshot(NOW - DAY, (figures("times-0", 0, first_ms=None),)),
        Snapshot(NOW, (figures("times-0", 0, first_ms=None),)),
    ]

    page = as_page(report, history)

    assert "without a time" in page
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(picture)


def test_daily_runs_of_the_command_build_a_trend(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = WrittenDirectory(tmp_path / "logs")
    clock = directory.clock = StillClock(FIRST_TIMESTAMP + HOUR)
    log = directory.log()
    page, history = tmp_path / "page.html", tmp_path / "history"
    for day in range(2):
        append(log, some_records(200, start=200 * day, size=1000))
        directory.checkpoint()
        for _ in range(2):
            assert 0 == run(_options(directory.path, page, history), read_cluster, clock)
        clock.advance(DAY)
    directory.stop()

    out, said = capsys.readouterr()
    assert f"The figures go to {history}, which has those of 0 runs." in said
    assert "has those of 1 run, this moment among them: it is written again." in said
    assert "which has those of 1 run.\n" in said
    assert re.search(
        r"events-0: [\d.]+ KiB more in 1 day, over 2 runs; oldest record 1 hour old", out
    )
    assert "Run by run" in page.read_text()
    rows = history_frame(spark, history).orderBy("at").collect()
    assert [200, 400] == [row.records for row in rows]


def _options(logs: Path, page: Path, history: Path) -> Namespace:
    parser = ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(
        ["--data-dir", str(logs), "--html", str(page), "--history", str(history), "--headers-only"]
    )


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        (["--set", "retention.ms=1"], (2, "--history keeps what is so")),
        (["--at", "-1"], (2, "from 1970 to the year 9999")),
        (["--history", "s3://bucket/history"], (2, "s3://bucket/history")),
        ([], (1, "is no snapshot of a report: it does not belong there.")),
    ],
)
def test_invalid_arguments_are_refused_before_spark_starts(
    logs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    end: tuple[int, str],
) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "data.parquet")
    common = ["--data-dir", str(logs), "--history", str(tmp_path), "--master", "none://"]

    status, sentence = end
    assert status == main(["spark", "report", *common, *arguments])
    assert sentence in capsys.readouterr().err


def test_dry_run_adds_no_snapshot(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data-dir", str(logs), "--history", str(tmp_path / "history"), "--dry-run"]

    assert 0 == main(["spark", "report", *arguments])
    assert "which has those of 0 runs." in capsys.readouterr().err
    assert not (tmp_path / "history").exists()
