from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from barnabas.server.config import BrokerConfig, load_settings
from barnabas.server.config.image_variables import option_of
from barnabas.server.security.listeners import Security
from barnabas.server.security.sasl.authentication import Authentication
from barnabas.storage.config.option_values import ConfigError
from barnabas.testing.manual_clock import ManualClock

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
LISTENERS: Final = "INSIDE://127.0.0.1:1,OUTSIDE://127.0.0.1:2,PLAINTEXT://127.0.0.1:3"
BASE: Final = {
    "listeners": LISTENERS,
    "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,"
    "PLAINTEXT:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
}


def secured(**options: str) -> tuple[Security, BrokerConfig]:
    config = BrokerConfig.parse({**BASE, **options})
    security = Security(config.client_listeners, lambda _mechanism, _user: None, ManualClock())
    security.configure(config.given)
    return security, config


def users(name: str, password: str) -> dict[str, str]:
    return {
        f"listener.name.{name}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required"
        f' user_alice="{password}";'
    }


def begun(security: Security, config: BrokerConfig, number: int) -> Authentication | None:
    listener = config.client_listeners[number]
    found = security.of(listener)
    return None if found is None else found.authentication(ManualClock())


def takes(authentication: Authentication | None, password: str) -> bool:
    assert authentication is not None
    authentication.begin("PLAIN", 1)
    try:
        authentication.evaluate(f"\0alice\0{password}".encode())
    except Exception:
        return False
    return True


def test_each_listener_has_its_own_users() -> None:
    security, config = secured(**users("inside", "one"), **users("outside", "two"))

    assert takes(begun(security, config, 0), "one")
    assert not takes(begun(security, config, 0), "two")
    assert takes(begun(security, config, 1), "two")
    assert begun(security, config, 2) is None


def test_listener_options_take_precedence_over_general_ones() -> None:
    security, config = secured(
        **users("inside", "one"),
        **users("outside", "two"),
        **{
            "connection.failed.authentication.delay.ms": "500",
            "listener.name.outside.connection.failed.authentication.delay.ms": "5",
            "connections.max.reauth.ms": "1000",
            "listener.name.outside.connections.max.reauth.ms": "2000",
            "listener.name.outside.plain.connections.max.reauth.ms": "3000",
        },
    )
    inside, outside, _ = config.client_listeners

    assert 0.5 == security.failure_delay_s(inside)
    assert 0.005 == security.failure_delay_s(outside)
    lifetimes = []
    for number, password in enumerate(("one", "two")):
        authentication = begun(security, config, number)
        assert takes(authentication, password)
        assert authentication is not None
        lifetimes.append(authentication.session_lifetime_ms)
    assert [1000, 3000] == lifetimes


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "listener INSIDE: PLAIN needs listener.name.inside.plain.sasl.jaas.config"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI .*there are PLAIN, SCRAM-SHA-256"),
        ({"sasl.enabled.mechanisms": ""}, "there are PLAIN"),
        (users("inside", "one"), "listener OUTSIDE: PLAIN needs"),
        (
            {"listener.name.inside.plain.sasl.jaas.config": "other.Module required;"},
            "it has to have one login module, org.apache",
        ),
        (
            {"listener.name.inside.plain.sasl.jaas.config": "secret"},
            "listener.name.inside.plain.sasl.jaas.config: behind the login module",
        ),
        ({"listener.name.inside.connections.max.reauth.ms": "soon"}, "Not a number"),
        ({"listener.name.inside.ssl.principal.mapping.rules": "RULE:x"}, "a rule is DEFAULT or"),
        ({"barnabas.jaas.file": "/nowhere"}, "/nowhere cannot be read: No such file"),
    ],
)
def test_invalid_listener_option_is_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        secured(**options)


def test_invalid_listener_change_changes_nothing() -> None:
    security, config = secured(**users("inside", "one"), **users("outside", "two"))

    with pytest.raises(ConfigError):
        security.configure({**config.given, "sasl.enabled.mechanisms": "NONE"})
    with pytest.raises(ConfigError):
        security.check({**config.given, "sasl.enabled.mechanisms": "NONE"})

    assert takes(begun(security, config, 0), "one")


def test_users_may_be_in_a_jaas_file(tmp_path: Path) -> None:
    """
    As in Apache Kafka's image: a section for a listener takes precedence over the general one.
    """
    file = tmp_path / "jaas.conf"
    file.write_text(
        f'KafkaServer {{ {PLAIN_MODULE} required user_alice="one"; }};'
        f'outside.KafkaServer {{ {PLAIN_MODULE} required user_alice="two"; }};'
    )
    settings = load_settings(
        environment={"KAFKA_OPTS": f"-Xmx1g -Djava.security.auth.login.config={file} -Dx=y"}
    )
    assert not settings.unknown

    security, config = secured(**{"barnabas.jaas.file": str(settings.texts["barnabas.jaas.file"])})

    assert takes(begun(security, config, 0), "one")
    assert takes(begun(security, config, 1), "two")
    file.write_text("KafkaServer { other.Module required; };")
    with pytest.raises(ConfigError, match=r"has no org\.apache\.kafka\..*PlainLoginModule in its"):
        secured(**{"barnabas.jaas.file": str(file)})


def test_variables_of_the_kafka_image_name_files(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret \n")

    assert ("ssl.keystore.location", "/etc/kafka/secrets/broker.p12") == option_of(
        "KAFKA_SSL_KEYSTORE_FILENAME", "broker.p12"
    )
    assert ("ssl.truststore.location", str(tmp_path / "ca.p12")) == option_of(
        "KAFKA_SSL_TRUSTSTORE_FILENAME", "ca.p12", tmp_path
    )
    for variable, option in (
        ("KAFKA_SSL_KEYSTORE_CREDENTIALS", "ssl.keystore.password"),
        ("KAFKA_SSL_KEY_CREDENTIALS", "ssl.key.password"),
        ("KAFKA_SSL_TRUSTSTORE_CREDENTIALS", "ssl.truststore.password"),
    ):
        assert (option, "secret ") == option_of(variable, "password", tmp_path)
        with pytest.raises(ConfigError, match=f"{variable}: .*none cannot be read: No such file"):
            option_of(variable, "none", tmp_path)
    assert option_of("KAFKA_OPTS", "-Xmx1g") is None
    assert option_of("MY_FILENAME", "x") is None


def test_missing_password_file_aborts_the_start() -> None:
    with pytest.raises(ConfigError, match=r"KAFKA_SSL_KEY_CREDENTIALS: .*cannot be read"):
        load_settings(environment={"KAFKA_SSL_KEY_CREDENTIALS": "no-such-file"})
