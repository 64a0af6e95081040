from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from barnabas.client.settings import BOOTSTRAP
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.spark.sink import check_columns
from barnabas.pipeline.writing.options import WriteOptions, parse_write_options
from tests.pipeline.connector.conftest import QUERY_FAILED
from tests.pipeline.connector.test_sink import (  # noqa: F401  # pytest collects them here
    source,
    test_record_that_is_too_large_fails_the_query,
    test_rows_choose_their_topic_by_a_column,
    test_topic_is_copied_with_partition_key_value_and_headers,
)
from tests.pipeline.live.conftest import Live

pytestmark = pytest.mark.spark


def columns_of(text: str) -> StructType:
    schema = StructType.fromDDL(text)
    assert isinstance(schema, StructType)
    return schema


def to_topic(topic: str | None = None) -> WriteOptions:
    return parse_write_options({BOOTSTRAP: "a:1", **({"topic": topic} if topic else {})})


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("key string", "A column value is needed, of type string or binary"),
        ("value int", "The column value is int, and should be string or binary"),
        ("value binary, key long", "The column key is bigint, and should be string or binary"),
        ("value binary, topic int", "The column topic is int, and should be string"),
        ("value binary, partition long", "The column partition is bigint, and should be int"),
        ("value binary, timestamp long", "timestamp is bigint, and should be timestamp"),
        ("value binary, headers map<string, binary>", "should be array<struct<key: string, value"),
        ("value binary, headers array<struct<key: string, value: string>>", "should be array<st"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_unsuitable_columns_are_refused(columns: str, sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        check_columns(columns_of(columns), to_topic("t"))


@pytest.mark.usefixtures("spark")
def test_additional_columns_are_ignored() -> None:
    headers = "headers array<struct<key: string, value: binary>>"
    columns = f"value string, key binary, partition int, timestamp timestamp, other int, {headers}"

    check_columns(columns_of(columns), to_topic("t"))
    check_columns(columns_of("value binary, topic string"), to_topic())
    with pytest.raises(InvalidOption, match="The option topic is needed"):
        check_columns(columns_of("value binary"), to_topic())


@pytest.mark.parametrize("mode", ["overwrite", "ignore", "errorifexists"])
def test_output_modes_other_than_append_are_refused(connector: Live, mode: str) -> None:
    rows = connector.spark.range(1).selectExpr("string(id) as value")
    writer = rows.write.format("barnabas").option(BOOTSTRAP, connector.bootstrap).mode(mode)

    with pytest.raises(QUERY_FAILED, match=r"(?i)append"):
        writer.option("topic", "modes").save()
