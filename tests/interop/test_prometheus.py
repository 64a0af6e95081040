"""
Prometheus itself scrapes a broker with the configuration of ``docker/prometheus.yml``, and answers
every query of the dashboard.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.interop.clients.base import numbered, read
from tests.interop.clients.confluent import ConfluentSession
from tests.server.http.metrics.test_pages import DASHBOARD, ROOT
from tests.support.broker_process import Barnabas, free_port, wait_for
from tests.support.maven import PrerequisiteMissing
from tests.support.undisturbed import undisturbed

pytestmark = [pytest.mark.interop, pytest.mark.prove]

CONFIGURATION: Final = ROOT / "docker" / "prometheus.yml"
PATIENCE_S: Final = 60
SCRAPES: Final = 4
VARIABLES: Final = {"$job": ".*", "$instance": ".*", "$__rate_interval": "1m"}
QUIET: Final = re.compile(
    r"errors_total|cleaner|retention|forecast|throttled|lag_seconds|offlinelogdir|deadthread"
)
"""What has no series, or no number, in a broker that has just begun."""


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, **query: str) -> Any:
        url = f"{self._url}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def query(self, text: str) -> list[Any]:
        found: list[Any] = self.ask("/api/v1/query", query=text)["result"]
        return found

    def has_scraped(self) -> bool:
        """
        Whether it has seen the broker often enough for a rate.
        """
        try:
            found = self.query('count_over_time(up{job="barnabas"}[5m])')
        except OSError:  # it is starting
            return False
        return bool(found) and int(found[0]["value"][1]) >= SCRAPES


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Prometheus]]:
    """
    The port of the broker's metrics, and a Prometheus that has scraped them.
    """
    program = shutil.which("prometheus")
    if program is None or shutil.which("promtool") is None:
        raise PrerequisiteMissing("there is no prometheus here (on Debian: apt install prometheus)")
    directory = tmp_path_factory.mktemp("scraped")
    port, own_port = free_port(), free_port()
    listener = {"barnabas.http.listener": f"127.0.0.1:{port}"}
    broker = Barnabas(directory / "broker", settings=listener)
    broker.start()
    text = CONFIGURATION.read_text()
    assert "barnabas:9644" in text
    text = text.replace("barnabas:9644", f"127.0.0.1:{port}").replace("15s", "1s")
    (directory / "prometheus.yml").write_text(text)
    command = [
        program,
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address=127.0.0.1:{own_port}",
    ]
    with (directory / "log").open("wb") as log, undisturbed():
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        use(broker.bootstrap)
        prometheus = Prometheus(own_port)
        wait_for(prometheus.has_scraped, "Prometheus to scrape the broker", PATIENCE_S)
        yield port, prometheus
    finally:
        running.kill()
        running.wait()
        broker.close()
        print((directory / "log").read_text()[-4000:])


def use(bootstrap: str) -> None:
    """
    Write and read, as a member of a group that falls behind.
    """
    with ConfluentSession(bootstrap) as session:
        session.writer().send("orders", numbered(100))
        reader = session.reader("orders", group_id="billing")
        read(reader, 1)
        reader.commit({0: 1})


def test_prometheus_finds_the_broker_up_and_its_metrics_in_open_metrics_format(
    scraped: tuple[int, Prometheus],
) -> None:
    _, prometheus = scraped

    (up,) = prometheus.query("up")
    assert ("barnabas", "1") == (up["metric"]["job"], up["value"][1])
    (lag,) = prometheus.query('kafka_consumergroup_lag{consumergroup="billing"}')
    assert "99" == lag["value"][1]
    (target,) = prometheus.ask("/api/v1/targets")["activeTargets"]
    assert "" == target["lastError"]


def test_prometheus_answers_every_dashboard_query(scraped: tuple[int, Prometheus]) -> None:
    _, prometheus = scraped
    empty = []
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"]
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            if not prometheus.query(query) and not QUIET.search(query):
                empty.append(query)

    assert [] == empty


def test_promtool_finds_no_errors_in_the_format(scraped: tuple[int, Prometheus]) -> None:
    """
    Its advice on names is not followed: they are those of Kafka's JMX exporter.
    """
    port, _ = scraped
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read()

    said = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False, timeout=60
    )

    assert b"error while linting" not in said.stderr
    assert said.returncode in (0, 3)
    checked = subprocess.run(
        ["promtool", "check", "config", CONFIGURATION], capture_output=True, check=False, timeout=60
    )
    assert 0 == checked.returncode, checked.stdout
