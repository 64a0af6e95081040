from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from barnabas.coordination.config.groups import GroupConfig
from barnabas.server.config import BrokerConfig, Listener, load_settings
from barnabas.server.config.authorization import OF_THE_AUTHORIZER
from barnabas.server.config.client_metrics import ClientMetricsConfig
from barnabas.server.config.compatibility import INERT_OPTIONS, REFUSED_OPTIONS
from barnabas.server.config.dynamic_only import DynamicOnlyOptions
from barnabas.server.config.reference import reference
from barnabas.storage.config.option_values import ConfigError, InvalidValue, Update
from barnabas.storage.config.options import Options
from tests.support.some import some

# Where one small node is better served than by Kafka's default, and what it is there.
OTHER_DEFAULTS = {
    "controller.listener.names": "(required)",
    "group.initial.rebalance.delay.ms": "3000",
    "listeners": "[PLAINTEXT://:9092]",
    "log.dir": "[/tmp/kafka-logs]",
    "metadata.max.idle.interval.ms": "500",
    "node.id": "(required)",
    "offsets.topic.replication.factor": "3",
    "process.roles": "(required)",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.replication.factor": "3",
}


@pytest.mark.parametrize(
    "table", [BrokerConfig, DynamicOnlyOptions, GroupConfig, ClientMetricsConfig]
)
def test_every_option_has_a_description(table: type[Options]) -> None:
    for option in some(table.options().values()):
        assert option.doc.endswith("."), option.name


def test_configuration_reference_matches_the_option_tables() -> None:
    page = Path(__file__).parents[3] / "docs" / "configuration.md"

    assert page.read_text() == reference(), "barnabas options > docs/configuration.md"


def test_no_option_is_also_listed_as_without_effect() -> None:
    names = [*BrokerConfig.options(), *INERT_OPTIONS, *REFUSED_OPTIONS]

    assert len(set(names)) == len(names)


def test_broker_options_are_those_of_kafka(golden: Path) -> None:
    with (golden / "configs" / "broker.tsv").open() as file:
        definitions = {row["name"]: row for row in csv.DictReader(file, delimiter="\t")}
    ours = BrokerConfig.options()

    own = {name for name in ours if name.startswith("barnabas.")} | set(OF_THE_AUTHORIZER)
    assert set(definitions) == (set(ours) - own) | set(INERT_OPTIONS) | set(REFUSED_OPTIONS)
    for name in some(set(ours) - own - {"log.dir"}):
        assert definitions[name]["type"] == ours[name].type.name, name
        assert bool(definitions[name]["internal"]) == ours[name].internal, name
    defaults = {
        name: definition["default"]
        for name, definition in definitions.items()
        if name in ours and _plain(definition["default"]) != ours[name].format(ours[name].default)
    }
    assert OTHER_DEFAULTS == defaults


def test_group_options_are_those_of_kafka(golden: Path) -> None:
    with (golden / "configs" / "group.tsv").open() as file:
        definitions = {row["name"]: row for row in csv.DictReader(file, delimiter="\t")}
    ours = GroupConfig.options()

    assert definitions.keys() == ours.keys()
    for name, option in some(ours.items()):
        theirs = definitions[name]
        assert (theirs["type"], theirs["default"]) == (
            option.type.name,
            option.format(option.default),
        ), name


def test_dynamic_options_are_those_of_kafka(golden: Path) -> None:
    """
    Except for listeners, TLS, SASL, log directories and classes to load.
    """
    with (golden / "configs" / "broker.tsv").open() as file:
        definitions = {row["name"]: row for row in csv.DictReader(file, delimiter="\t")}
    theirs = {n for n, row in definitions.items() if row["dynamic update mode"] == "cluster-wide"}
    per_broker = {n for n, row in definitions.items() if row["dynamic update mode"] == "per-broker"}
    quotas = {
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
    acting = {n for n, o in BrokerConfig.options().items() if o.update is Update.CLUSTER_WIDE}
    kept = DynamicOnlyOptions.options()

    assert theirs - {"metric.reporters"} | quotas == acting | kept.keys()
    assert not acting & kept.keys()
    assert not per_broker & (acting | kept.keys())
    for name in some(kept.keys() - quotas):
        row, option = definitions[name], kept[name]
        assert (row["type"], row["default"]) == (option.type.name, option.format(option.default))
    assert quotas | set(INERT_OPTIONS) >= kept.keys()


def _plain(default: str) -> str | None:
    if default == "null":
        return None
    return default[1:-1].replace(", ", ",") if default.startswith("[") else default


def test_later_configuration_source_takes_precedence(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.retention.ms=1\nnum.partitions=1\nlog.segment.bytes=2000000\n")

    config = load_settings(
        file=file,
        environment={"KAFKA_LOG_RETENTION_MS": "2", "KAFKA_NUM_PARTITIONS": "2", "PATH": "/bin"},
        assignments=["num.partitions=3"],
    ).config()

    assert (2, 3) == (config.log_retention_ms, config.num_partitions)
    assert "2000000" == config.given["log.segment.bytes"]
    assert "message.max.bytes" not in config.given


@pytest.mark.parametrize("assignment", ["log.retention.mss=1", "num.partition=3"])
def test_unknown_option_is_refused_with_its_source_and_a_suggestion(assignment: str) -> None:
    with pytest.raises(ConfigError, match=r"--set: Unknown option \S+; did you mean \S+\?"):
        load_settings(assignments=[assignment])


def test_setting_without_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match="it must look like --set name=value"):
        load_settings(assignments=["num.partitions"])


def test_missing_configuration_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.properties cannot be read: No such file"):
        load_settings(file=tmp_path / "missing.properties")


def test_environment_variables_of_other_programs_are_ignored() -> None:
    settings = load_settings(environment={"KAFKA_URI": "x", "KAFKA_HEAP_OPTS": "-Xmx1g"})

    assert {} == settings.texts
    assert ["KAFKA_URI"] == settings.unknown


def test_build_variable_of_make_is_not_an_option() -> None:
    """
    ``make run`` exports it, and should not start with a warning.
    """
    settings = load_settings(environment={"BARNABAS_COMPILE": "auto", "BARNABAS_COMPILED": "1"})

    assert ["BARNABAS_COMPILED"] == settings.unknown


def test_cluster_id_variable_is_that_of_the_kafka_image() -> None:
    settings = load_settings(environment={"CLUSTER_ID": "5L6g3nShT-eMCtK--X86sw"})

    assert "5L6g3nShT-eMCtK--X86sw" == settings.config().barnabas_cluster_id
    assert [] == settings.unknown


@pytest.mark.parametrize("prefix", ["", "KAFKA_", "BARNABAS_"])
def test_variables_of_kubernetes_services_are_ignored_whatever_the_service_is_called(
    prefix: str,
) -> None:
    """
    Kubernetes sets them in every container, and a Service may have the name of an option.
    """
    environment: dict[str, str] = {}
    for option in ["", *BrokerConfig.options()]:
        service = (prefix + re.sub("[.-]", "_", option.removeprefix("barnabas.")).upper()).strip(
            "_"
        )
        environment |= {
            f"{service}_SERVICE_HOST": "10.0.0.1",
            f"{service}_SERVICE_PORT": "9092",
            f"{service}_SERVICE_PORT_MS": "9092",
            f"{service}_PORT": "tcp://10.0.0.1:9092",
            f"{service}_PORT_9092_TCP": "tcp://10.0.0.1:9092",
            f"{service}_PORT_9092_TCP_PROTO": "tcp",
            f"{service}_PORT_9092_TCP_PORT": "9092",
            f"{service}_PORT_9092_UDP_ADDR": "10.0.0.1",
        }

    assert load_settings() == load_settings(environment=environment)


def test_environment_variable_that_resembles_an_option_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"KAFKA_LOG_RETENTON_MS: .* log\.retention\.ms\?"):
        load_settings(environment={"KAFKA_LOG_RETENTON_MS": "1"})


def test_options_without_effect_are_accepted_and_explained() -> None:
    settings = load_settings(
        environment={
            "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "localhost:9093",
            "KAFKA_SSL_PROVIDER": "x",
        }
    )

    assert BrokerConfig() == settings.config()
    assert {
        "controller.quorum.bootstrap.servers",
        "ssl.provider",
    } == set(settings.ignored)


@pytest.mark.parametrize(
    ("assignment", "reason"),
    [
        ("authorizer.class.name=org.example.Authorizer", "would not be asked"),
        ("super.users=User:a;b", "write User:b"),
    ],
)
def test_authorizer_that_would_allow_or_deny_everything_is_refused(
    assignment: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        load_settings(assignments=[assignment]).config()


@pytest.mark.parametrize(
    "texts",
    [
        {"log.retention.ms": "0"},
        {"log.retention.hours": "0"},
        {"group.min.session.timeout.ms": "2000000"},
        {"log.cleaner.dedupe.buffer.size": "1048576"},
        {"log.dirs": "/tmp/a,/tmp/../tmp/a"},
    ],
)
def test_option_values_must_be_consistent(texts: dict[str, str | None]) -> None:
    with pytest.raises(InvalidValue):
        BrokerConfig.parse(texts)


def test_older_option_name_of_the_node_id_is_accepted() -> None:
    assert 7 == BrokerConfig.parse({"broker.id": "7"}).node_id
    assert 3 == BrokerConfig.parse({"broker.id": "7", "node.id": "3"}).node_id


def test_log_dirs_takes_precedence_over_log_dir() -> None:
    config = BrokerConfig.parse({"log.dir": "/a", "log.dirs": "/b,/c"})

    assert (Path("/b"), Path("/c")) == config.log_directories
    assert Path("/b") == config.metadata_directory


def test_advertised_address_is_the_configured_one_or_that_of_the_listener() -> None:
    config = BrokerConfig.parse(
        {
            "listeners": "PLAINTEXT://[::1]:9092,INSIDE://127.0.0.1:19092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://broker.example:9",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
        }
    )

    assert (
        Listener("PLAINTEXT", "::1", 9092, "broker.example", 9),
        Listener("INSIDE", "127.0.0.1", 19092, "127.0.0.1", 19092),
    ) == config.client_listeners


@pytest.mark.parametrize(
    "texts",
    [
        {"listeners": "localhost:9092"},
        {"listeners": "PLAINTEXT://:99999"},
        {"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"},
        {"listeners": "CONTROLLER://:9093"},
        {"listeners": "SSL://:9093", "listener.security.protocol.map": "SSL:TLS"},
        {"listeners": "INSIDE://:9093"},
        {"advertised.listeners": "OUTSIDE://host:1"},
        {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"},
        {"listener.security.protocol.map": "PLAINTEXT"},
    ],
)
def test_invalid_listeners_are_refused(texts: dict[str, str | None]) -> None:
    with pytest.raises(InvalidValue):
        BrokerConfig.parse(texts)


def test_classic_group_protocol_cannot_be_disabled() -> None:
    with pytest.raises(InvalidValue, match="Disabling the 'classic' protocol is not supported"):
        BrokerConfig.parse({"group.coordinator.rebalance.protocols": "consumer"})


def test_every_source_takes_units(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.retention.hours=1w\n")
    settings = load_settings(
        file=file,
        environment={"KAFKA_LOG_SEGMENT_BYTES": "64MiB"},
        assignments=["log.retention.ms=7d"],
    )

    assert {
        "log.retention.hours": "168",
        "log.segment.bytes": "67108864",
        "log.retention.ms": "604800000",
    } == settings.texts


def test_unit_that_does_not_fit_names_its_source() -> None:
    with pytest.raises(ConfigError, match=r"KAFKA_LOG_RETENTION_MS: .*GiB is not a unit"):
        load_settings(environment={"KAFKA_LOG_RETENTION_MS": "1GiB"})
