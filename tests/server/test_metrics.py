from __future__ import annotations

import pytest

from barnabas.server.metrics import Metrics


def test_counter_is_identified_by_its_labels() -> None:
    metrics = Metrics()
    metrics.counter("requests", "Requests.", api="Fetch").value += 2
    metrics.counter("requests", "Requests.", api="Produce").value += 1

    metrics.counter("requests", "Requests.", api="Fetch").value += 1

    assert 3 == metrics.value("requests", api="Fetch")
    assert 4 == metrics.value("requests")


def test_gauge_is_evaluated_when_read() -> None:
    metrics = Metrics()
    connections: list[object] = []
    metrics.gauge("connections", "Open connections.", lambda: len(connections))

    before = metrics.value("connections")
    connections.append(object())

    assert (0, 1) == (before, metrics.value("connections"))


def test_metrics_are_listed_with_kind_and_help() -> None:
    metrics = Metrics()
    metrics.counter("bytes_in", "Bytes received.").value = 7
    metrics.gauge("offline", "Offline directories.", lambda: 1.0, dir="/data")

    assert [
        ("bytes_in", "counter", "Bytes received.", (), 7),
        ("offline", "gauge", "Offline directories.", (("dir", "/data"),), 1.0),
    ] == list(metrics)


def test_metric_name_has_one_kind() -> None:
    metrics = Metrics()
    metrics.counter("requests", "Requests.")

    with pytest.raises(AssertionError, match="requests is a counter"):
        metrics.gauge("requests", "Requests.", lambda: 0)
