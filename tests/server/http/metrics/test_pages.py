"""
docs/metrics.md and the Grafana dashboard name existing metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from barnabas.server.http.metrics.families import FAMILIES, LATENCY, OWN
from tests.support.metrics_page import PAGE, sample_names, table

ROOT: Final = Path(__file__).parents[4]
DASHBOARD: Final[dict[str, Any]] = json.loads(
    (ROOT / "docker" / "grafana" / "barnabas.json").read_text()
)
_METRIC: Final = re.compile(r"\b(?:kafka|barnabas|process)_[a-z_]+")
_LABELS: Final = re.compile(r"(?P<metric>[a-z_]+)\{(?P<matchers>[^}]*)\}")
OF_PROMETHEUS: Final = {"job", "instance", "le"}


def queries() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def test_documentation_lists_every_metric() -> None:
    assert table() in PAGE.read_text()


def test_documentation_names_no_unknown_metric() -> None:
    prose = re.sub(r"```.*?```", "", PAGE.read_text().replace(table(), ""), flags=re.DOTALL)
    spans = " ".join(re.findall(r"`[^`]+`", prose))
    named = {name for name in _METRIC.findall(spans) if not name.endswith("_")}

    assert named <= sample_names() | {LATENCY.name}
    assert LATENCY.name in named


def test_metric_names_are_distinct() -> None:
    names = [family.name for family in FAMILIES]
    reserved = ("_total", "_created", "_bucket", "_sum", "_info")

    assert len(names) == len(set(names))
    assert len(OWN) == len({own.family.name for own in OWN.values()})
    assert not [name for name in names if name.endswith(reserved)]
    assert all(family.help.endswith(".") for family in FAMILIES)


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_dashboard_queries_use_existing_metrics_and_labels(query: str) -> None:
    asked = set(_METRIC.findall(query))
    labels = {
        f"{family.sample}{suffix}": {*family.labels}
        for family in FAMILIES
        for suffix in ("", "_bucket", "_count", "_sum")
    }

    assert asked
    assert asked <= sample_names()
    for found in _LABELS.finditer(query):
        matched = {
            re.split(r"=~|!=|=", matcher)[0] for matcher in found["matchers"].split(",") if matcher
        }
        assert matched <= labels[found["metric"]] | OF_PROMETHEUS
    for by in re.findall(r"\bby \(([^)]*)\)", query):
        wanted = {label.strip() for label in by.split(",")}
        assert all(wanted <= labels[name] | OF_PROMETHEUS for name in asked)


def test_misspelled_dashboard_query_is_detected() -> None:
    assert not set(_METRIC.findall("rate(kafka_log_log_sizes[5m])")) <= sample_names()


def test_dashboard_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells)
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_prometheus_configuration_targets_the_port_of_the_container() -> None:
    prometheus = (ROOT / "docker" / "prometheus.yml").read_text()
    compose = (ROOT / "docker" / "compose.yaml").read_text()

    assert '"barnabas:9644"' in prometheus
    assert "KAFKA_BARNABAS_HTTP_LISTENER: 0.0.0.0:9644" in compose
    assert "INTERNAL://barnabas:" in compose
