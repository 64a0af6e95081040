from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from barnabas.coordination.cluster.image import ConfigResourceType
from barnabas.server.config import Settings, load_settings
from barnabas.server.config.providers import resolver
from barnabas.storage.config.option_values import ConfigError
from tests.support.broker_process import Barnabas
from tests.support.config_requests import SET, change
from tests.support.server import running

PACKAGE: Final = "org.apache.kafka.common.config.provider"
CLASSES: Final = {
    "file": f"{PACKAGE}.FileConfigProvider",
    "dir": f"{PACKAGE}.DirectoryConfigProvider",
    "env": f"{PACKAGE}.EnvVarConfigProvider",
}
ALL: Final = [
    "config.providers=file, dir,env",
    *(f"config.providers.{name}.class={kind}" for name, kind in CLASSES.items()),
]
SECRET: Final = "s3cret-word"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    directory = tmp_path / "secrets"
    directory.mkdir()
    (directory / "broker.properties").write_text(
        f"key.password={SECRET}\nid=17\nwith\\ blank=a\\u0020b\nempty=\n"
    )
    (directory / "password").write_text(f"{SECRET}\n")
    (tmp_path / "outside").write_text("not for you")
    return directory


def loaded(*assignments: str, environment: dict[str, str] | None = None) -> Settings:
    return load_settings(assignments=[*ALL, *assignments], environment=environment or {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${file:%s/broker.properties:key.password}", SECRET),
        ("${file:%s/broker.properties:with blank}", "a b"),
        ("${file:%s/broker.properties:empty}", ""),
        ("<${file:%s/broker.properties:id}-${file:%s/broker.properties:id}>", "<17-17>"),
        ("${dir:%s:password}", SECRET),
        ("${env:WORD}", "of the environment"),
        ("${env:WORD} and ${dir:%s:password}", f"of the environment and {SECRET}"),
        ("${other:%s:password}", "${other:%s:password}"),
        ("${password}", "${password}"),
        ("$(env:WORD)", "$(env:WORD)"),
        ("plain", "plain"),
    ],
)
def test_configuration_variables_are_replaced_by_their_values(
    secrets: Path, text: str, expected: str
) -> None:
    def placed(template: str) -> str:
        return template.replace("%s", str(secrets))

    settings = loaded(
        f"ssl.key.password={placed(text)}", environment={"WORD": "of the environment"}
    )

    assert placed(expected) == settings.texts["ssl.key.password"]
    assert placed(expected).strip() == settings.config().ssl_key_password


def test_configuration_variables_work_for_options_of_every_type(secrets: Path) -> None:
    prefix = "listener.name.sasl_ssl.ssl.key.password"
    settings = loaded(
        f"node.id=${{file:{secrets}/broker.properties:id}}",
        f"{prefix}=${{dir:{secrets}:password}}",
    )

    config = settings.config()

    assert 17 == config.node_id
    assert SECRET == config.given[prefix]


def test_value_of_a_configuration_variable_is_not_expanded_again(secrets: Path) -> None:
    (secrets / "password").write_text("${env:WORD}")

    settings = loaded(f"ssl.key.password=${{dir:{secrets}:password}}", environment={"WORD": "x"})

    assert "${env:WORD}" == settings.texts["ssl.key.password"]


def test_configuration_variables_are_literal_without_providers(secrets: Path) -> None:
    text = f"${{dir:{secrets}:password}}"

    settings = load_settings(assignments=[*ALL[1:], f"ssl.key.password={text}"])

    assert text == settings.config().ssl_key_password


def test_config_providers_may_be_set_in_every_source(secrets: Path, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"config.providers=a\nssl.key.password=${{a:{secrets}:password}}\n")
    environment = {
        "KAFKA_CONFIG_PROVIDERS_A_CLASS": CLASSES["dir"],
        "KAFKA_CONFIG_PROVIDERS_A_PARAM_ALLOWED_PATHS": str(secrets),
    }

    settings = load_settings(file=file, environment=environment)

    assert SECRET == settings.config().ssl_key_password
    assert [] == settings.unknown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${file:%s/broker.properties:other}", "its file does not have the key"),
        ("${file:%s/none:key}", "it cannot be read: No such file"),
        ("${file:%s:key}", "it cannot be read: Is a directory"),
        ("${file:key}", "it has no path"),
        ("${dir:%s:none}", "its directory does not have the file"),
        ("${dir:%s:../outside}", "its directory does not have the file"),
        ("${dir:%s:}", "its directory does not have the file"),
        ("${dir:password}", "it has no path"),
        ("${env:NONE}", "there is no such variable"),
        ("${env:%s:WORD}", "variables of the environment have no path"),
    ],
)
def test_configuration_variable_without_a_value_is_refused(
    secrets: Path, text: str, reason: str
) -> None:
    variable = text.replace("%s", str(secrets))

    with pytest.raises(ConfigError) as caught:
        loaded(f"ssl.key.password={variable}", environment={"WORD": SECRET})

    assert f"ssl.key.password: {variable}: {reason}" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["file", "dir"])
@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("{0}", True),
        ("{0}/../secrets", True),
        ("{0}/..", False),
        ("{0}/../", False),
        ("{0}x", False),
        ("/", False),
        ("{0}/../../{1}/secrets", True),
        ("relative", False),
    ],
)
def test_file_provider_reads_only_allowed_paths(
    secrets: Path, name: str, path: str, is_allowed: bool
) -> None:
    directory = path.format(secrets, secrets.parent.name)
    variable = {
        "file": f"${{file:{directory}/broker.properties:key.password}}",
        "dir": f"${{dir:{directory}:password}}",
    }[name]
    if directory.rstrip("/").endswith(".."):
        variable = variable.replace("broker.properties:key.password", "outside:key")
        variable = variable.replace(":password", ":outside")
    options = [
        f"config.providers.{name}.param.allowed.paths={secrets},{secrets}/password",
        f"ssl.key.password={variable}",
    ]

    if is_allowed:
        assert SECRET == loaded(*options).config().ssl_key_password
        return
    with pytest.raises(ConfigError, match=r"allowed.paths does not have its path"):
        loaded(*options)


def test_environment_provider_reads_only_allowed_variables() -> None:
    pattern = "config.providers.env.param.allowlist.pattern=BROKER_.*"
    environment = {"BROKER_PASSWORD": SECRET, "OTHER": SECRET, "A_BROKER_PASSWORD": SECRET}

    settings = loaded(pattern, "ssl.key.password=${env:BROKER_PASSWORD}", environment=environment)

    assert SECRET == settings.config().ssl_key_password
    whole = "config.providers.env.param.allowlist.pattern=BROKER_PASS"
    for allowed, name in (
        (pattern, "OTHER"),
        (pattern, "A_BROKER_PASSWORD"),
        (whole, "BROKER_PASSWORD"),
    ):
        with pytest.raises(ConfigError, match="allowlist"):
            loaded(allowed, f"ssl.key.password=${{env:{name}}}", environment=environment)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("config.providers.env.class=com.example.Vault", "it is a Java class; there are"),
        ("config.providers.file.param.allowed.paths=relative", "relative is not absolute"),
        ("config.providers.dir.param.allowed.paths=/no/such/path", "does not exist"),
        ("config.providers.env.param.allowlist.pattern=(", r"is no pattern"),
    ],
)
def test_invalid_config_provider_is_refused(option: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        loaded(option)


@pytest.mark.parametrize(
    "option",
    [
        "num.partitions=${env:WORD}",
        "log.retention.ms=1${env:WORD}",
        "listeners=${env:WORD}",
        "listeners=PLAINTEXT://${env:WORD}:x",
        "listener.security.protocol.map=A:${env:WORD}",
        "super.users=${env:WORD}",
        "authorizer.class.name=${env:WORD}",
        "max.connections.per.ip.overrides=${env:WORD}",
    ],
)
def test_provider_error_names_the_variable_but_not_the_value(option: str) -> None:
    settings = loaded(option, environment={"WORD": SECRET})

    with pytest.raises(ConfigError) as caught:
        settings.config()

    error: BaseException | None = caught.value
    assert "${env:WORD}" in str(error)
    while error is not None:
        assert SECRET not in str(error)
        assert error.__cause__ is None
        error = error.__context__ if not error.__suppress_context__ else None


def test_resolver_remembers_only_the_values_it_resolved() -> None:
    found = resolver(
        {"config.providers": "env", ALL[3].partition("=")[0]: CLASSES["env"]}, {"A": "1"}
    )

    assert "1" == found.resolve("x", "${env:A}")
    assert {"1": "${env:A}"} == found.values


def test_failing_start_does_not_reveal_provider_values(tmp_path: Path) -> None:
    broker = Barnabas(
        tmp_path,
        settings={
            "config.providers": "env",
            "config.providers.env.class": CLASSES["env"],
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "/nowhere/${env:WORD}",
        },
        environment={"WORD": SECRET},
        secured=["SSL"],
    )
    try:
        with pytest.raises(AssertionError, match="ended at once"):
            broker.start()
    finally:
        broker.close()
    assert "/nowhere/${env:WORD} cannot be read" in broker.log_text()
    assert SECRET not in broker.log_text()


def test_broker_with_provider_values_never_reveals_them(secrets: Path, tmp_path: Path) -> None:
    with Barnabas(
        tmp_path / "broker",
        settings={
            **dict(part.split("=", 1) for part in ALL),
            "delegation.token.secret.key": f"${{dir:{secrets}:password}}",
            "num.partitions": "${env:PARTITIONS_HERE}",
        },
        environment={"PARTITIONS_HERE": "7"},
    ) as broker:
        assert 0 == broker.stop()
    assert SECRET not in broker.log_text()


async def test_variables_in_dynamic_options_are_literal() -> None:
    """
    A client that sets an option could otherwise read the files of the broker.
    """
    option, text = "listener.name.plaintext.sasl.jaas.config", "${env:HOME}"
    async with running(None) as broker, await broker.client() as client:
        request = change(ConfigResourceType.BROKER, str(broker.node_id), (option, SET, text))
        answer = await client.ask(request, 1)
        stored = broker.inside.image.config(ConfigResourceType.BROKER, str(broker.node_id))

    assert [0] == [response.error_code for response in answer.responses]
    assert text == stored[option]
