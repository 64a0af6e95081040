"""
Apache Kafka and Barnabas read values of options from the same places.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess
from tests.support.config_requests import BROKER, describe
from tests.support.sasl_client import SaslClient

pytestmark = pytest.mark.prove

PACKAGE = "org.apache.kafka.common.config.provider"
ASKED = (
    "num.partitions",
    "log.retention.ms",
    "compression.type",
    "broker.rack",
    "ssl.key.password",
)


def values(broker: BrokerProcess) -> dict[str, Any]:
    with SaslClient(broker.port) as client:
        (answered,) = client.ask(describe(BROKER, "1"), 4).results
    return {it.name: it.value for it in answered.configs if it.name in ASKED}


def test_config_providers_read_the_same_values_as_in_kafka(tmp_path: Path) -> None:
    (tmp_path / "values.properties").write_text("partitions=7\nretention:  12\nthe\\ rack=r1\n")
    (tmp_path / "codec").write_text("zstd\n")
    detour = tmp_path / ".." / tmp_path.name
    settings = {
        "node.id": "1",
        "config.providers": "file,dir,env",
        "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(tmp_path),
        "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
        "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
        "num.partitions": f"${{file:{tmp_path}/values.properties:partitions}}",
        "log.retention.ms": f"1${{file:{tmp_path}/values.properties:retention}}000",
        "compression.type": f"${{dir:{tmp_path}:codec}}",
        "broker.rack": f"${{file:{detour}/values.properties:the rack}}-${{env:H}}",
        "ssl.key.password": "${env:H}",
    }
    with BothBrokers.side_by_side(tmp_path, settings) as both:
        for broker in both:
            broker.environment["H"] = "here"
        both.start()
        kafka, barnabas = (values(broker) for broker in both)

    assert kafka == barnabas
    assert {
        "num.partitions": "7",
        "log.retention.ms": "112000",
        "compression.type": "zstd",
        "broker.rack": "r1-here",
        "ssl.key.password": None,
    } == barnabas
