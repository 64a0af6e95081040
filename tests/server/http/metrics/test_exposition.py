"""
The text formats can be parsed by ``prometheus_client``.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest as generate_open_metrics
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_open_metrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.registry import Collector

from barnabas.server.http.metrics.exposition import LINES_AT_ONCE, Blocks, labels_text
from barnabas.server.http.metrics.families import COUNTER, GAUGE, HISTOGRAM, Family

ODD = 'a "quoted" \\ back\\n\nslash, {brace} = ü 🜁'
VALUES = (0, 7, 2**53, 1.5, 1e21, -3, inf, -inf)
COUNTED = Family("requests", COUNTER, "Requests with \\ and\na line.", ("api",))
GAUGED = Family("size_bytes", GAUGE, "Bytes.", ("name",))
TIMES = Family("times", HISTOGRAM, "Times.", ("api",))
BUCKETS = (("0.5", 1), ("1.0", 4), ("+Inf", 9))


class Library(Collector):
    def collect(self) -> Iterator[Metric]:
        counted = CounterMetricFamily(COUNTED.name, COUNTED.help, labels=COUNTED.labels)
        counted.add_metric([ODD], 3)
        gauged = GaugeMetricFamily(GAUGED.name, GAUGED.help, labels=GAUGED.labels)
        for number, value in enumerate(VALUES):
            gauged.add_metric([str(number)], value)
        times = HistogramMetricFamily(TIMES.name, TIMES.help, labels=TIMES.labels)
        times.add_metric(["Fetch"], [*BUCKETS], 4.25)
        yield from (counted, gauged, times)


def ours(*, is_open_metrics: bool) -> str:
    blocks = Blocks((COUNTED, GAUGED, TIMES), is_open_metrics=is_open_metrics)
    blocks.of(COUNTED.name).add(labels_text({"api": ODD}), 3)
    for number, value in enumerate(VALUES):
        blocks.of(GAUGED.name).add(labels_text({"name": str(number)}), value)
    times = blocks.of(TIMES.name)
    for bound, count in BUCKETS:
        times.add(labels_text({"api": "Fetch", "le": bound}), count, "_bucket")
    times.add(labels_text({"api": "Fetch"}), 9, "_count")
    times.add(labels_text({"api": "Fetch"}), 4.25, "_sum")
    return b"".join(blocks.chunks()).decode()


def test_text_format_is_parsed_by_the_prometheus_library() -> None:
    assert list(parse_text(generate_latest(Library()).decode())) == list(
        parse_text(ours(is_open_metrics=False))
    )


def test_open_metrics_format_is_parsed_by_the_prometheus_library() -> None:
    assert list(parse_open_metrics(generate_open_metrics(Library()).decode())) == list(
        parse_open_metrics(ours(is_open_metrics=True))
    )


def test_nan_and_infinity_are_written() -> None:
    blocks = Blocks((GAUGED,), is_open_metrics=True)
    blocks.of(GAUGED.name).add("", nan)

    (family,) = parse_open_metrics(b"".join(blocks.chunks()).decode())
    assert family.samples[0].value != family.samples[0].value


def test_large_offset_is_written_to_its_last_digit() -> None:
    blocks = Blocks((GAUGED,), is_open_metrics=False)
    blocks.of(GAUGED.name).add("", 2**63 - 1)

    assert b"size_bytes 9223372036854775807\n" in b"".join(blocks.chunks())


@pytest.mark.parametrize("number", [LINES_AT_ONCE - 2, LINES_AT_ONCE, 3 * LINES_AT_ONCE + 1])
def test_any_number_of_lines_is_written_in_order(number: int) -> None:
    blocks = Blocks((GAUGED,), is_open_metrics=False)
    for each in range(number):
        blocks.of(GAUGED.name).add("", each)

    (family,) = parse_text(b"".join(blocks.chunks()).decode())
    assert list(range(number)) == [sample.value for sample in family.samples]


def test_lone_surrogate_in_a_label_is_replaced() -> None:
    blocks = Blocks((GAUGED,), is_open_metrics=False)
    blocks.of(GAUGED.name).add(labels_text({"name": "\ud800"}), 1)

    assert b'size_bytes{name="?"} 1\n' in b"".join(blocks.chunks())
