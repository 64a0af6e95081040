from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.logs.filesystems import locate
from barnabas.pipeline.reading.plan import plan
from barnabas.pipeline.reading.reader import read
from barnabas.pipeline.rows import parse_options
from barnabas.pipeline.schemas import RECORDS
from barnabas.pipeline.storage import StorageOptions
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.s3_server import S3Server
from tests.support.scanned import plain_rows, scanned_rows

pytestmark = pytest.mark.prove

pytest.importorskip("moto", reason="moto is not installed")


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    directory = WrittenDirectory(tmp_path)
    log = directory.log(segment_bytes=1000, index_interval_bytes=100)
    for start in range(0, 60, 5):
        append(log, some_records(5, start=start))
    directory.stop()
    return directory


def s3a_options(s3: S3Server) -> dict[str, str]:
    return {
        "fs.s3a.access.key": s3.storage["AWS_ACCESS_KEY_ID"],
        "fs.s3a.secret.key": s3.storage["AWS_SECRET_ACCESS_KEY"],
        "fs.s3a.endpoint": s3.endpoint.removeprefix("http://"),
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
@pytest.mark.parametrize("source", ["environment", "spark", "given"])
def test_logs_are_read_from_s3(
    s3: S3Server,
    written: WrittenDirectory,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    source: str,
) -> None:
    s3.put_directory(written.path, "logs")
    url = s3.url("logs", scheme)
    for name in s3.storage:
        monkeypatch.delenv(name, raising=False)
    if source == "environment":
        for name, value in s3.storage.items():
            monkeypatch.setenv(name, value)
        rows = scanned_rows(url)
    else:
        hadoop = {f"spark.hadoop.{name}": value for name, value in s3a_options(s3).items()}
        options = parse_options(
            {"path": url, **(s3a_options(s3) if source == "given" else {})},
            {} if source == "given" else hadoop,
        )
        rows = plain_rows(
            batch for work in plan(options) for batch in read(work, RECORDS.names, options)
        )

    assert rows
    assert scanned_rows(written.path) == rows


def test_options_take_precedence_over_spark_and_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", "environment")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "environment")

    options = StorageOptions.of(
        {"fs.s3a.access.key": "given", "fs.s3a.secret.key": "too"},
        {"spark.hadoop.fs.s3a.endpoint": "spark", "fs.s3a.session.token": "spark"},
    )

    assert ("given", "too", None, "spark", "environment") == (
        options.access_key,
        options.secret_key,
        options.session_token,
        options.endpoint,
        options.region,
    )
    assert "given" not in repr(options)
    with pytest.raises(InvalidOption, match=r"There is no storage option region; there are aws"):
        StorageOptions.of({"region": "eu"})


NAMES = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


@pytest.mark.parametrize("given", range(8))
@pytest.mark.parametrize("settings", range(8))
def test_keys_and_token_of_s3_come_from_one_source(
    monkeypatch: pytest.MonkeyPatch, given: int, settings: int
) -> None:
    """
    The first source with a key decides, whatever of the three each source has.
    """
    for name in NAMES:
        monkeypatch.setenv(name.upper(), "environment")
    sources = [
        {name: of for bit, name in enumerate(NAMES) if bits >> bit & 1}
        for bits, of in ((given, "given"), (settings, "spark"), (7, "environment"))
    ]
    first = next(each for each in sources if NAMES[0] in each or NAMES[1] in each)
    if len({*NAMES[:2]} & first.keys()) == 1:
        with pytest.raises(InvalidOption, match="must come from one source"):
            StorageOptions.of(*sources[:2])
        return

    options = StorageOptions.of(*sources[:2])

    found = (options.access_key, options.secret_key, options.session_token)
    assert tuple(first.get(name) for name in NAMES) == found


def test_missing_bucket_is_named(s3: S3Server) -> None:
    with (
        pytest.raises(FileNotFoundError, match="There is no directory s3://nowhere/logs"),
    ):
        scanned_rows("s3://nowhere/logs", **s3a_options(s3))


@pytest.mark.parametrize("url", ["hdfs://127.0.0.1:1/logs", "swift://container/logs", "oss://b/l"])
def test_store_whose_library_is_missing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / url).mkdir(parents=True)

    with pytest.raises(InvalidOption, match=rf"^{url} cannot be read: .+\.$"):
        locate(url)


PLAN_REQUESTS = 8
"""Of one partition whose files are listed in one page."""


@pytest.mark.parametrize("segments", [10, 60])
def test_number_of_plan_requests_does_not_grow_with_segments(
    s3: S3Server, tmp_path: Path, segments: int
) -> None:
    """
    The sizes are in the listing, which has a thousand files per page.
    """
    directory = WrittenDirectory(tmp_path)
    log = directory.log()
    for number in range(segments):
        append(log, some_records(2, start=2 * number))
        log.roll()
    append(log, some_records(2, start=2 * segments))
    directory.stop()
    s3.put_directory(directory.path, f"plan-{segments}")
    options = parse_options({"path": s3.url(f"plan-{segments}"), **s3a_options(s3)})

    s3.count()
    works = plan(options)

    assert segments + 1 == sum(len(work.ranges) for work in works)
    assert PLAN_REQUESTS == len(s3.requests)
