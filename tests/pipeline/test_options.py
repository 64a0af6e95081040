from __future__ import annotations

import json
import re
import warnings
from datetime import UTC
from pathlib import Path

import pytest

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.option_parser import OLD_NAMES, OPTION_NAMES, parse_options
from barnabas.pipeline.options import Mode, ReadOptions
from barnabas.pipeline.rows import all_columns, chosen, scan, schema
from barnabas.pipeline.spark_values import parse_size, parse_time, parse_zone
from barnabas.pipeline.storage import HADOOP, HADOOP_NAMES
from tests.support.compiled import ROOT
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.scanned import scanned_offsets, scanned_rows
from tests.support.segments import FIRST_TIMESTAMP


def parsed(**options: str) -> ReadOptions:
    return parse_options({"path": "/logs", **options})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("64", 64),
        ("64b", 64),
        ("2k", 2 << 10),
        ("64m", 64 << 20),
        ("64MB", 64 << 20),
        (" 1 g ", 1 << 30),
        ("2tb", 2 << 40),
        ("1p", 1 << 50),
    ],
)
def test_sizes_are_parsed_as_in_spark(text: str, size: int) -> None:
    assert size == parse_size(text)


@pytest.mark.parametrize("text", ["", "m", "1.5g", "-1", "64 miles", "1_000", "0x10", "٣"])
def test_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="maxPartitionBytes is a size of at least 1, as in 64m"):
        parsed(maxPartitionBytes=text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14 22:13:20", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14 23:13:20 Europe/Berlin", 1_700_000_000_000),
        ("2023-11-14T21:13:20-0100", 1_700_000_000_000),
        ("2023-11-14 21:13:20 GMT-1", 1_700_000_000_000),
        ("2023-11-14 22:13", 1_699_999_980_000),
        ("2023-11-14T22:13:20.5", 1_700_000_000_500),
        ("2023-11-14T22:13:20.000001Z", 1_700_000_000_001),
        ("2023-11-14", 1_699_920_000_000),
        ("2023-1-2", 1_672_617_600_000),
        ("1969-12-31T23:59:59Z", -1000),
    ],
)
def test_times_are_parsed_as_iso_or_as_in_spark(text: str, ms: int) -> None:
    """
    Or as ms since 1970. Times without a zone are in UTC, and are rounded up to whole ms.
    """
    assert ms == parse_time(text, UTC)


@pytest.mark.parametrize(
    "text",
    ["", "now", "2023-13-01", "2023-11-14T25:00:00", "2023-11-14 10:00 Nowhere/Town", "14.11."],
)
def test_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="startingTimestamp takes times as in 2026-01-31T12"):
        parsed(startingTimestamp=text)


def test_time_without_a_zone_is_in_the_session_time_zone() -> None:
    by_partition = json.dumps({"a": {"0": "2023-11-14 23:13:20", "1": 5}})

    options = parsed(
        timeZone="Europe/Berlin",
        startingTimestamp="2023-11-14 23:13:20",
        endingOffsetsByTimestamp=by_partition,
    )

    assert 1_700_000_000_000 == options.start.timestamp_ms
    assert [1_700_000_000_000, 5] == [*options.end.timestamps_ms.values()]
    with pytest.raises(InvalidOption, match=r"timeZone is a zone as in UTC, .* not 'Nowhere'"):
        parsed(timeZone="Nowhere", startingTimestamp="2023-11-14")
    with pytest.raises(
        InvalidOption, match=r"startingOffsetsByTimestamp takes times .* not 'soon'"
    ):
        parsed(startingOffsetsByTimestamp='{"a": {"0": "soon"}}')
    assert parse_zone("utc") is UTC


def test_option_names_and_keywords_ignore_case() -> None:
    options = parsed(
        MAXPARTITIONBYTES="1k", mode="permissive", includeheaders="True", opencostinbytes="0"
    )

    assert (1024, 0) == (options.max_partition_bytes, options.open_cost_bytes)
    assert (Mode.PERMISSIVE, True) == (options.mode, options.include_headers)
    with pytest.raises(InvalidOption, match="mode is one of FAILFAST, DROPMALFORMED, PERMISSIVE"):
        parsed(mode="skip")


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("bytesPerTask", "4096", {"maxPartitionBytes": "4k"}),
        ("segmentOpenBytes", "0", {"openCostInBytes": "0"}),
        ("onCorrupt", "fail", {"mode": "FAILFAST"}),
        ("onCorrupt", "Skip", {"mode": "DROPMALFORMED"}),
    ],
)
def test_deprecated_option_name_works_with_a_warning(
    old: str, value: str, new: dict[str, str]
) -> None:
    (name,) = new

    with pytest.warns(FutureWarning, match=f"the option {old} of .* is now {name}="):
        assert parsed(**new) == parsed(**{old: value})
    with pytest.raises(InvalidOption, match=f"{old} is the old name of {name}: give only {name}"):
        parsed(**{old: value}, **new)


def test_deprecated_option_name_is_warned_of_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            parsed(bytesPerTask="4096")

    assert 1 == len(caught)


def test_deprecated_columns_are_available_by_name() -> None:
    """
    ``corrupt`` is present where its deprecated option is used.
    """
    with pytest.warns(FutureWarning, match="onCorrupt"):
        old = parsed(onCorrupt="permissive")
    batches = parsed(level="batches")

    assert "corrupt" == schema(old).names[-1]
    assert "_corrupt_record" == schema(parsed(mode="PERMISSIVE")).names[-1]
    assert "lastOffset" not in schema(batches).names
    with pytest.warns(FutureWarning, match="the column lastOffset of .* is now nextOffset"):
        assert ["lastOffset"] == chosen(["lastOffset"], batches)
    with pytest.raises(InvalidOption, match="no column corrupt;"):
        chosen(["corrupt"], parsed(mode="PERMISSIVE"))
    with pytest.raises(InvalidOption, match="is one of fail, skip, permissive, not 'none'"):
        parsed(onCorrupt="none")


def test_documentation_lists_every_option_with_its_default() -> None:
    page = (ROOT / "docs" / "spark.md").read_text()
    table = page[page.index("| option | default |") :].split("\n\n", 1)[0]
    rows = [row.split("|")[1:3] for row in table.splitlines()[2:]]
    defaults = {
        name: default.strip().strip("`")
        for names, default in rows
        for name in re.findall(r"`([\w.]+)`", names)
    }
    of_kafka = defaults.pop("kafka.isolation.level")
    assert {*HADOOP_NAMES} == {name for name in defaults if name.startswith(HADOOP)}
    defaults = {name: value for name, value in defaults.items() if name not in HADOOP_NAMES}

    assert {*OPTION_NAMES} - {"paths", "isolationLevel"} == set(defaults)
    del defaults["startingOffsets"], defaults["path"]
    given = {name: value for name, value in defaults.items() if value}
    assert len(given) >= 10
    assert parsed() == parsed(**given, isolationLevel=of_kafka)
    old = page[page.index("| old name | now |") :].split("\n\n", 1)[0]
    assert set(OLD_NAMES) <= set(re.findall(r"`(\w+)`", old))


def test_headers_are_rows_on_request() -> None:
    assert "headers" not in schema(parsed()).names
    assert "headers" == schema(parsed(includeHeaders="true")).names[-1]
    assert "headers" in all_columns(parsed()).names


def test_segments_and_batches_have_the_same_offset_columns(tmp_path: Path) -> None:
    """
    The end offset of a batch is the start of the next one.
    """
    directory = WrittenDirectory(tmp_path)
    log = directory.log()
    for start in (0, 5):
        append(log, some_records(5, start=start))
    directory.stop()

    def rows(level: str) -> list[tuple[int, int]]:
        names = ["baseOffset", "nextOffset"]
        found = scan(str(tmp_path), {"level": level}, columns=names)
        return [
            (row["baseOffset"], row["nextOffset"]) for rows in found for row in rows.to_pylist()
        ]

    assert [(0, 5), (5, 10)] == rows("batches")
    assert [(0, 10)] == rows("segments")


def test_several_paths_may_be_given(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two,three"]
    for number, path in enumerate(paths):
        directory = WrittenDirectory(path)
        append(directory.log("events", number), some_records(3))
        directory.stop()
    texts = [str(path) for path in paths]

    rows = scanned_rows(texts[0], paths=json.dumps(texts[1:]))
    assert [0, 0, 0, 1, 1, 1] == [row[3] for row in rows]
    assert 6 == sum(batch.num_rows for batch in scan(texts))
    assert ("a", "b") == parse_options({"path": "a, b,a"}).paths
    for wrong in ("[]", "[1]", "{}", "a", '[""]'):
        with pytest.raises(InvalidOption, match=r"paths should be JSON like|needs a path"):
            parse_options({"paths": wrong})
    with pytest.raises(InvalidOption, match="needs a path: load"):
        parse_options({"path": "a,,b"})


def test_start_time_may_be_a_keyword(tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path)
    append(directory.log(), some_records(10))
    directory.stop()

    assert 1_700_000_000_000 == FIRST_TIMESTAMP
    start = "2023-11-14T22:13:20.004Z"
    assert list(range(4, 10)) == scanned_offsets(tmp_path, startingTimestamp=start)


def test_s3_settings_are_options_of_file_reads() -> None:
    options = parse_options(
        {"path": "s3://logs", "FS.s3a.Access.key": "mine", "fs.s3a.secret.key": "hidden"}
    )

    assert options.storage is not None
    assert "mine" == options.storage.access_key
    assert "mine" not in repr(options)
    assert "hidden" not in repr(options)
    assert parse_options({"path": "/logs"}).storage is None
    with pytest.raises(InvalidOption, match=r"fs\.s3a\.access\.key is for reads of files"):
        parse_options({"kafka.bootstrap.servers": "localhost:9092", "fs.s3a.access.key": "mine"})
    with pytest.raises(InvalidOption, match=r"There is no storage option fs\.s3a\.region; there"):
        parse_options({"path": "s3://logs", "fs.s3a.region": "mine"})


@pytest.mark.parametrize("name", ["truststore", "keystore"])
def test_missing_file_of_certificates_is_named_before_a_connection(
    tmp_path: Path, name: str
) -> None:
    missing = tmp_path / "none.pem"

    with pytest.raises(InvalidOption, match=f"There is no file {missing}"):
        parse_options(
            {
                "kafka.bootstrap.servers": "localhost:1",
                "subscribe": "events",
                "kafka.security.protocol": "SSL",
                f"kafka.ssl.{name}.type": "PEM",
                f"kafka.ssl.{name}.location": str(missing),
            }
        )
