from __future__ import annotations

import pytest

from barnabas.client.settings import BOOTSTRAP, READER, ClientSettings, Sasl, parse_client
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.option_parser import parse_options, parse_stream_options
from barnabas.pipeline.writing.options import WriteOptions, parse_write_options
from barnabas.protocol.compression import CompressionType

BROKER = {BOOTSTRAP: "a:1,b:2"}
JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="alice" password="p=w, \\"1\\"";'
)


def client(**options: str) -> ClientSettings:
    named = {f"kafka.{name.replace('_', '.')}": value for name, value in options.items()}
    return parse_client(BROKER | named, READER)


def written(**options: str) -> WriteOptions:
    own = {name: value for name, value in options.items() if "_" not in name}
    named = {
        f"kafka.{name.replace('_', '.')}": value for name, value in options.items() if "_" in name
    }
    return parse_write_options({**BROKER, **own, **named})


def test_broker_addresses_are_parsed() -> None:
    assert (("a", 1), ("b", 2)) == client().bootstrap
    for wrong in ("", "a", "a:b", ":1", " , "):
        with pytest.raises(InvalidOption, match=r"kafka\.bootstrap\.servers is"):
            parse_client({BOOTSTRAP: wrong}, READER)


def test_login_is_accepted_in_the_syntax_of_java_and_librdkafka() -> None:
    expected = Sasl("SCRAM-SHA-256", "alice", 'p=w, "1"')
    java = client(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=JAAS
    )
    other = client(
        security_protocol="sasl_plaintext",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="alice",
        sasl_password='p=w, "1"',
    )

    assert expected == java.sasl
    assert expected == other.sasl
    assert "p=w" not in repr(java)
    assert client(sasl_jaas_config=JAAS).sasl is None, "the protocol is PLAINTEXT"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"security_protocol": "TLS"}, "kafka.security.protocol is one of PLAINTEXT, SSL"),
        ({"security_protocol": "SASL_SSL"}, "kafka.sasl.mechanism is one of PLAIN.* not GSSAPI"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "needs a name and a passw"),
        ({"security_protocol": "SSL", "ssl_truststore_type": "JKS"}, "truststore.type is PEM here"),
        ({"interceptor_classes": "x"}, "has no option kafka.interceptor.classes"),
        ({"isolation_levl": "x"}, "Did you mean kafka.isolation.level"),
        ({"request_timeout_ms": "0"}, "kafka.request.timeout.ms is a number of at least 1"),
    ],
)
def test_invalid_client_options_are_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        client(**options)


def test_options_only_for_java_clients_are_ignored() -> None:
    assert client() == client(max_poll_records="20000", receive_buffer_bytes="-1", linger_ms="5")


def test_write_options_are_parsed() -> None:
    options = written(topic="t", compression_type="zstd", batch_size="1000")

    assert ("t", CompressionType.ZSTD, 1000) == (
        options.topic,
        options.compression,
        options.batch_bytes,
    )
    assert options.idempotent
    assert not parse_write_options({**BROKER, "kafka.acks": "1"}).idempotent
    assert not parse_write_options({**BROKER, "kafka.enable.idempotence": "false"}).idempotent


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kafka.acks": "0"}, "kafka.acks is all or 1"),
        ({"kafka.acks": "1", "kafka.enable.idempotence": "true"}, "needs kafka.acks=all"),
        ({"kafka.compression.type": "rar"}, "is one of none, gzip, snappy, lz4, zstd"),
        ({"path": "/tmp"}, "writes to a broker, not to a path"),
        ({"topics": "t"}, "has no option topics. Did you mean topic?"),
        ({"includeHeaders": "yes"}, "includeHeaders is true or false"),
        ({"kafka.key.serializer": "x"}, "has no option kafka.key.serializer"),
    ],
)
def test_invalid_write_options_are_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        parse_write_options(BROKER | options)


def test_path_takes_precedence_over_a_broker_address() -> None:
    """
    A query for the connector reads files as soon as it loads a path.
    """
    of_files = parse_options(BROKER | {"path": "/data", "kafka.any.thing": "x"})

    assert of_files.client is None
    assert ("/data",) == of_files.paths
    assert client() == parse_options(BROKER).client
    assert parse_stream_options(BROKER).client is not None


@pytest.mark.parametrize("name", ["readUpTo", "maxPartitionBytes", "openCostInBytes"])
def test_options_of_files_and_brokers_are_distinguished(name: str) -> None:
    value = "logEnd" if name == "readUpTo" else "4096"
    with pytest.raises(InvalidOption, match=f"{name} is for reads of files"):
        parse_options(BROKER | {name: value})
    with pytest.raises(InvalidOption, match="level=batches is for reads of files"):
        parse_options(BROKER | {"level": "batches"})
    with pytest.raises(InvalidOption, match="maxRecordsPerPartition is for reads from a broker"):
        parse_options({"path": "/data", "maxRecordsPerPartition": "5"})
