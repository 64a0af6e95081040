"""
Writing and reading without Spark, as its tasks do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from barnabas.client.cluster import Cluster
from barnabas.client.settings import BOOTSTRAP
from barnabas.pipeline.live.plan import plan
from barnabas.pipeline.live.reader import read_live
from barnabas.pipeline.option_parser import parse_options
from barnabas.pipeline.writing.identity import idempotent
from barnabas.pipeline.writing.options import parse_write_options
from barnabas.pipeline.writing.producer import TaskProducer
from barnabas.pipeline.writing.task import write_rows


def write(bootstrap: str, batches: Iterable[pa.RecordBatch], options: Mapping[str, str]) -> int:
    parsed = parse_write_options({BOOTSTRAP: bootstrap, **options})
    with Cluster(parsed.client, creates_topics=True) as cluster:
        producer = TaskProducer(cluster, parsed, idempotent(cluster, parsed), 3)
        return write_rows(cluster, parsed, producer, 3, batches)


def read(bootstrap: str, options: Mapping[str, str], *columns: str) -> Iterator[pa.RecordBatch]:
    parsed = parse_options({BOOTSTRAP: bootstrap, **options})
    for work in plan(parsed):
        yield from read_live(work, columns, parsed)


def values(bootstrap: str, topic: str, **options: str) -> list[bytes | None]:
    batches = read(bootstrap, {"subscribe": topic, **options}, "value")
    return [value for batch in batches for value in batch.column(0).to_pylist()]
