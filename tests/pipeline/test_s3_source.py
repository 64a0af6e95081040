from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from barnabas.pipeline import register
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.s3_server import SECRET, S3Server, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.prove]

pytest.importorskip("moto", reason="moto is not installed")

PATIENCE = 60


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server() as server:
        server.put_directory(written(tmp_path_factory.mktemp("logs"), 10), "logs")
        yield server


def written(path: Path, records: int) -> Path:
    directory = WrittenDirectory(path)
    append(directory.log("orders"), some_records(records))
    directory.stop()
    return directory.path


def options_of(s3: S3Server, prefix: str = "") -> dict[str, str]:
    return {
        f"{prefix}fs.s3a.access.key": s3.storage["AWS_ACCESS_KEY_ID"],
        f"{prefix}fs.s3a.secret.key": SECRET,
        f"{prefix}fs.s3a.session.token": "a-token",
        f"{prefix}fs.s3a.endpoint": s3.endpoint,
        f"{prefix}fs.s3a.endpoint.region": "us-east-1",
        f"{prefix}fs.s3a.path.style.access": "true",
    }


def test_query_and_stream_use_the_s3_options(session: SparkSession, s3: S3Server) -> None:
    options: dict[str, Any] = {**options_of(s3), "startingOffsets": "earliest"}
    url = s3.url("logs", "s3a")

    assert 10 == session.read.format("barnabas").options(**options).load(url).count()
    stream = session.readStream.format("barnabas").options(**options).load(url)
    query = (
        stream.writeStream.format("memory").queryName("from_s3").trigger(availableNow=True).start()
    )
    query.awaitTermination(PATIENCE)
    assert 10 == session.table("from_s3").count()


def test_registered_source_has_the_settings_of_its_session(
    session: SparkSession, s3: S3Server
) -> None:
    """
    Options of a query take precedence. Registering again takes over the current settings.
    """
    register(session)
    for name, value in options_of(s3, "spark.hadoop.").items():
        session.conf.set(name, value)
    register(session)

    assert 10 == session.read.format("barnabas").load(s3.url("logs")).count()
    session.conf.set("spark.hadoop.fs.s3a.endpoint", "http://127.0.0.1:1")
    register(session)
    source = session.read.format("barnabas").option("level", "segments")
    assert 1 == source.option("fs.s3a.endpoint", s3.endpoint).load(s3.url("logs", "s3a")).count()


def test_reused_worker_reaches_another_store(
    session: SparkSession, s3: S3Server, tmp_path: Path
) -> None:
    with s3_server() as other:
        other.put_directory(written(tmp_path, 7), "logs")
        for server, records in ((s3, 10), (other, 7), (s3, 10)):
            source = session.read.format("barnabas").options(**options_of(server))
            assert records == source.load(server.url("logs")).count()


def test_secrets_appear_in_no_plan_and_no_error(
    session: SparkSession, s3: S3Server, capfd: pytest.CaptureFixture[str]
) -> None:
    source = session.read.format("barnabas").options(**options_of(s3))
    source.load(s3.url("logs")).explain(extended=True)
    said = ["".join(capfd.readouterr())]
    for url, name, value in (
        ("s3://nowhere/logs", "mode", "FAILFAST"),
        (s3.url("logs"), "fs.s3a.secret", "another secret"),
        (s3.url("logs"), "mode", "none"),
    ):
        with pytest.raises(PySparkException) as raised:
            session.read.format("barnabas").options(**options_of(s3), **{name: value}).load(
                url
            ).count()
        said.append(str(raised.value))

    assert "BatchScan barnabas" in said[0]
    assert "There is no directory s3://nowhere/logs" in said[1]
    assert "There is no storage option fs.s3a.secret; there are" in said[2]
    assert not [
        each for each in said for secret in (SECRET, "a-token", "another") if secret in each
    ]
