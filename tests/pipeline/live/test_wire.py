from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.pipeline.errors import BrokerError, Disconnected, RowError
from barnabas.pipeline.schemas import HEADERS
from tests.interop.conftest import new_broker
from tests.pipeline.live.wire import read, values, write
from tests.pipeline.topics import Topic
from tests.support.broker_process import Barnabas, BrokerProcess
from tests.support.certificates import Certificates
from tests.support.sasl_client import add_scram_user

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.prove]

PASSWORD = 'p=w, "1"'
USERS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="p=w, \\"1\\"";'
)


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({"value": ["a", "b"], "topic": ["refused", None]}, "topic of row 1 of task 3.* is null"),
        (
            {"value": ["a", "b"], "partition": pa.array([1, 2], pa.int32()), "key": ["k", "l"]},
            r"refused-2 does not take row 1 of task 3, key b'l': the topic has the",
        ),
        ({"value": ["a"], "partition": pa.array([-1], pa.int32())}, "refused--1 does not take"),
        (
            {"value": ["a", "x" * 3000], "key": ["k", "l" * 40]},
            r"does not take row 1 of task 3, key b'l{32}'\.\.\.: MESSAGE_TOO_LARGE",
        ),
        (
            {"value": ["a"], "headers": pa.array([[{"key": None, "value": b""}]], HEADERS)},
            "header of row 0 of task 3 is null or has no name",
        ),
        (
            {"value": ["a"], "timestamp": pa.array([-5_000_000], pa.timestamp("us", "UTC"))},
            "Row 0 of task 3 has a timestamp before 1970",
        ),
    ],
)
def test_refused_row_is_named(broker: BrokerProcess, rows: dict[str, Any], sentence: str) -> None:
    Topic(broker, "refused", 2, max_message_bytes="1000") if "refused" not in _made else None
    _made.add("refused")
    options = {} if "topic" in rows else {"topic": "refused"}

    with pytest.raises(RowError, match=sentence):
        write(broker.bootstrap, [batch(**rows)], options)


_made: set[str] = set()


def test_missing_topic_is_an_error_and_not_created(tmp_path: Path) -> None:
    with new_broker(tmp_path, auto__create__topics__enable="false") as broker:
        options = {"kafka.request.timeout.ms": "300"}
        rows = batch(value=["a"], topic=["none"], key=["k"])

        with pytest.raises(
            RowError, match=r"none does not take row 0 of task 3, key b'k': .*UNKNOWN"
        ):
            write(broker.bootstrap, [rows], options)


def test_batches_refused_as_too_large_are_split(broker: BrokerProcess) -> None:
    topic = Topic(broker, "smaller", 1, max_message_bytes="1000")
    sent = [b"%04d" % number * 20 for number in range(500)]

    assert 500 == write(broker.bootstrap, [batch(value=sent)], {"topic": topic.name})
    assert sent == values(broker.bootstrap, topic.name)


def test_timestamp_and_header_columns_are_written(broker: BrokerProcess) -> None:
    topic = Topic(broker, "columns")
    rows = batch(
        value=[b"v", None],
        timestamp=pa.array([1_700_000_000_123_999, None], pa.timestamp("us", "UTC")),
        headers=pa.array([[{"key": "a", "value": None}], None], HEADERS),
    )
    for headers in ("true", "false"):
        options = {"topic": topic.name, "includeHeaders": headers}
        write(broker.bootstrap, [rows], options)

    names = ("value", "timestamp", "headers")
    found = [row for each in read(broker.bootstrap, {"subscribe": topic.name}, *names)
             for row in each.to_pylist()]  # fmt: skip
    assert [b"v", None, b"v", None] == [row["value"] for row in found]
    assert 123_000 == found[0]["timestamp"].microsecond
    assert found[1]["timestamp"].year > 2023
    assert [[{"key": "a", "value": None}], None, None, None] == [row["headers"] for row in found]


@pytest.mark.parametrize("idempotent", ["true", "false"])
def test_write_survives_a_broker_restart(tmp_path: Path, idempotent: str) -> None:
    with new_broker(tmp_path) as broker:
        topic = Topic(broker, "restarted", 1)
        sent = [b"%07d" % number + b"x" * 1000 for number in range(40_000)]

        def batches() -> Iterator[pa.RecordBatch]:
            for start in range(0, len(sent), 1000):
                if start in (17_000, 31_000):
                    broker.kill() if start == 17_000 else broker.stop()
                    broker.start()
                yield batch(value=sent[start : start + 1000])

        options = {"topic": topic.name, "kafka.enable.idempotence": idempotent}
        assert len(sent) == write(broker.bootstrap, batches(), options)

        there = values(broker.bootstrap, topic.name)
        assert sent == there if idempotent == "true" else set(sent) == set(there)


def test_read_survives_a_broker_restart(tmp_path: Path) -> None:
    with new_broker(tmp_path) as broker:
        topic = Topic(broker, "restarted", 1)
        sent = [b"%07d" % number + b"x" * 1000 for number in range(20_000)]
        write(broker.bootstrap, [batch(value=sent)], {"topic": topic.name})
        found: list[bytes] = []

        for number, rows in enumerate(
            read(broker.bootstrap, {"subscribe": topic.name, "chunkBytes": "1m"}, "value")
        ):
            found += rows.column(0).to_pylist()
            if number in (2, 5):
                broker.kill()
                broker.start()

        assert sent == found


def test_unreachable_broker_is_reported(tmp_path: Path) -> None:
    options = {"topic": "t", "kafka.request.timeout.ms": "200"}

    with pytest.raises(Disconnected, match=r"127\.0\.0\.1:1 cannot be reached"):
        write("127.0.0.1:1", [batch(value=["a"])], options)


# Security.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Barnabas]:
    with Barnabas(
        tmp_path_factory.mktemp("broker"),
        settings={
            **certificates.settings(),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
            "listener.name.ssl.ssl.client.auth": "required",
        },
        secured=["SSL", "SASL_SSL", "SASL_PLAINTEXT"],
    ) as broker:
        add_scram_user(broker.port, "alice", PASSWORD)
        yield broker


def login(
    certificates: Certificates, protocol: str, mechanism: str, password: str = PASSWORD
) -> dict[str, str]:
    options = {
        "kafka.security.protocol": protocol,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(certificates.ca),
        "kafka.request.timeout.ms": "5000",
    }
    if mechanism:
        options["kafka.sasl.mechanism"] = mechanism
        options["kafka.sasl.username"], options["kafka.sasl.password"] = "alice", password
    else:
        options["kafka.ssl.keystore.location"] = str(certificates.client("alice"))
    return options


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("SSL", ""),
        ("SASL_PLAINTEXT", "PLAIN"),
        ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
        ("SASL_SSL", "PLAIN"),
        ("SASL_SSL", "SCRAM-SHA-512"),
    ],
)
def test_authenticated_client_is_accepted(
    secured: Barnabas, certificates: Certificates, protocol: str, mechanism: str
) -> None:
    bootstrap = f"127.0.0.1:{secured.ports[protocol]}"
    options = login(certificates, protocol, mechanism)
    topic = Topic(secured, f"secured-{protocol}-{mechanism}")

    assert 2 == write(bootstrap, [batch(value=["a", "b"])], {"topic": topic.name, **options})
    assert [b"a", b"b"] == values(bootstrap, topic.name, **options)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_wrong_password_is_reported(
    secured: Barnabas, certificates: Certificates, mechanism: str
) -> None:
    bootstrap = f"127.0.0.1:{secured.ports['SASL_SSL']}"
    options = login(certificates, "SASL_SSL", mechanism, "wrong")

    with pytest.raises(BrokerError, match=r"refuses this user: .*SASL_AUTHENTICATION_FAILED"):
        write(bootstrap, [batch(value=["a"])], {"topic": "t", **options})


def test_untrusted_broker_certificate_is_reported(
    secured: Barnabas, certificates: Certificates, tmp_path: Path
) -> None:
    bootstrap = f"127.0.0.1:{secured.ports['SASL_SSL']}"
    options = login(Certificates(tmp_path), "SASL_SSL", "PLAIN")
    options["kafka.request.timeout.ms"] = "300"

    with pytest.raises(Disconnected, match="CERTIFICATE_VERIFY_FAILED"):
        write(bootstrap, [batch(value=["a"])], {"topic": "t", **options})
