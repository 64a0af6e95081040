"""
The sources of options: a file, the environment, the command line.

Later sources win: ``server.properties``, then ``KAFKA_*`` variables in the convention of the
official image (``KAFKA_LOG_RETENTION_MS`` is ``log.retention.ms``; ``__`` stands for ``_`` and
``___`` for ``-``; ``CLUSTER_ID`` is the id of new directories), then ``--set``. Configs in the
metadata log override all of them.

Where ``config.providers`` names providers, values may have variables (``providers.py``).

An unknown name is refused, with a suggestion. Other programs share the environment: there, only a
name close to an option's is taken for a mistake, and variables of Kubernetes Services are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from barnabas.protocol.structs import fresh, struct
from barnabas.server.config.broker_config import BrokerConfig
from barnabas.server.config.compatibility import (
    INERT_OPTIONS,
    REFUSED_OPTIONS,
    REMOVED_OPTIONS,
)
from barnabas.server.config.network import PROVIDERS
from barnabas.server.config.security import LISTENER_PREFIX
from barnabas.storage.config.option_values import ConfigError, InvalidValue, UnknownOption
from barnabas.storage.properties import read_properties

# Variables of clients, of Apache Kafka's start scripts and image, and of this project's Makefile.
_NOT_OPTIONS: Final = frozenset(
    {
        "BARNABAS_COMPILE",
        "KAFKA_BOOTSTRAP_SERVERS",
        "KAFKA_DEBUG",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)
_OF_FILES: Final = ("_CREDENTIALS", "_FILENAME", "KAFKA_OPTS")
"""How the variables end that name files of secrets."""
_PATHS: Final = frozenset({"log.dir", "log.dirs", "metadata.log.dir", "barnabas.jaas.file"})
CLUSTER_ID: Final = "CLUSTER_ID"
"""The variable of Kafka's image for the id of new directories."""
PROVIDERS_PREFIX: Final = f"{PROVIDERS}."
_CLOSE: Final = 0.85
_OF_SERVICES: Final = re.compile(
    r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""Variables that Kubernetes sets in every container for each Service of its namespace."""
_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://")
"""The value of another one, ``NAME_PORT``."""


@struct(frozen=False)
class Settings:
    """
    The texts of all sources, before they are parsed.

    ``providers`` has the options of providers, ``variables`` the texts with variables, as they were
    given, and ``secrets`` the values of these, each with its variable. ``ignored`` has the options
    without an effect here, each with its reason; ``unknown`` has the variables of the environment
    that are no options.
    """

    texts: dict[str, str | None] = fresh(factory=dict)
    providers: dict[str, str] = fresh(factory=dict)
    variables: dict[str, str] = fresh(factory=dict)
    secrets: dict[str, str] = fresh(factory=dict)
    ignored: dict[str, str] = fresh(factory=dict)
    unknown: list[str] = fresh(factory=list)

    def add(self, name: str, text: str) -> None:
        """
        Add one setting, in place of an earlier one with the same name.

        Raises:
            UnknownOption: the option does not exist.
            InvalidValue: the option is not supported, and it would be unsafe to ignore it.
        """
        if name in BrokerConfig.options() or name.startswith(LISTENER_PREFIX):
            self.texts[name] = text
        elif name.startswith(PROVIDERS_PREFIX):
            self.providers[name] = text
        elif name in REFUSED_OPTIONS:
            if text:
                raise InvalidValue(name, text, REFUSED_OPTIONS[name])
        elif reason := INERT_OPTIONS.get(name) or REMOVED_OPTIONS.get(name):
            self.ignored[name] = reason
        else:
            raise UnknownOption(name, _known_names())

    def resolve(self, environment: Mapping[str, str]) -> None:
        """
        Replace the variables in all texts by their values.

        Raises:
            ConfigError: there is no such provider, or it has no value for one.
        """
        names = self.texts.get(PROVIDERS)
        if not names:
            return
        from barnabas.server.config.providers import resolver  # noqa: PLC0415  # seldom

        found = resolver({**self.providers, PROVIDERS: names}, environment)
        for name, text in self.texts.items():
            value = found.resolve(name, text) if text else text
            if text and value != text:
                self.texts[name] = value
                self.variables[name] = text
        self.secrets = found.values

    def config(self) -> BrokerConfig:
        """
        The configuration that all texts make.

        Raises:
            ConfigError: a value is not acceptable. The sentence has no value of a provider.
        """
        try:
            return BrokerConfig.parse(self.texts)
        except ConfigError as error:
            if self.variables:
                raise self._with_variables(error) from None
            raise

    def _with_variables(self, error: ConfigError) -> ConfigError:
        """
        The same error, with variables in place of their values.
        """
        if isinstance(error, InvalidValue) and error.name in self.variables:
            return ConfigError(
                f"Invalid value {self.variables[error.name]} for configuration {error.name}"
            )
        return ConfigError(self.without_values(str(error)))

    def without_values(self, message: str) -> str:
        """
        A message with variables in place of the values of providers.
        """
        for value in sorted(self.secrets, key=len, reverse=True):
            message = message.replace(value.strip() or value, self.secrets[value])
        return message


def load_settings(
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    assignments: Iterable[str] = (),
) -> Settings:
    """
    Read all sources.

    Args:
        file: a ``server.properties``.
        environment: the variables of the process.
        assignments: ``name=value`` each.

    A value may have a unit in each source: ``log.retention.ms=7d``.

    Raises:
        ConfigError: a name or a value is not acceptable; the sentence names source and option.
    """
    settings = Settings()
    if file is not None:
        for name, text in _file(file).items():
            _add(settings, name, text, str(file))
    for variable, name, text in _variables(environment or {}):
        if name not in _known_names() and not _is_close(name):
            settings.unknown.append(variable)
        else:
            _add(settings, name, text, variable)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--set {assignment}: it must look like --set name=value")
        _add(settings, name.strip(), text.strip(), "--set")
    settings.resolve(environment or {})
    return settings


def _add(settings: Settings, name: str, text: str, source: str) -> None:
    try:
        if text[:1].isdigit() and text[-1:].isalpha():
            from barnabas.storage.config.quantities import plain_value  # noqa: PLC0415  # seldom

            text = plain_value(name, text)
        if not text.isascii():
            _check_characters(name, text)
        settings.add(name, text)
    except UnknownOption as error:
        hint = "" if error.nearest else "; barnabas options lists all options"
        raise ConfigError(f"{source}: {error}{hint}") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _check_characters(name: str, text: str) -> None:
    """
    Refuse half a character of UTF-16, and bytes that are no UTF-8 where no path is expected.

    Raises:
        InvalidValue: *text* cannot be stored or sent.
    """
    is_path = name in _PATHS or name.endswith(".location")
    try:
        text.encode(errors="surrogateescape" if is_path else "strict")
    except UnicodeEncodeError:
        shown = text.encode(errors="backslashreplace").decode()
        raise InvalidValue(name, shown, "it is no text: write it in UTF-8") from None


def _file(path: Path) -> Mapping[str, str]:
    try:
        return read_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a text file in UTF-8") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for variable in sorted(environment):
        if variable.endswith(_OF_FILES):
            from barnabas.server.config.image_variables import option_of  # noqa: PLC0415  # seldom

            found = option_of(variable, environment[variable])
            if found is not None:
                yield variable, *found
                continue
        if variable in _NOT_OPTIONS or _is_of_a_service(variable, environment[variable]):
            continue
        if variable == CLUSTER_ID:
            yield variable, "barnabas.cluster.id", environment[variable]
        prefix, _, rest = variable.partition("_")
        if prefix == "KAFKA" and rest:
            yield variable, _dotted(rest), environment[variable]
        elif prefix == "BARNABAS" and rest:
            yield variable, "barnabas." + _dotted(rest), environment[variable]


def _is_of_a_service(variable: str, text: str) -> bool:
    if _OF_SERVICES.fullmatch(variable):
        return True
    return variable.endswith("_PORT") and _ADDRESS.match(text) is not None


def _dotted(text: str) -> str:
    parts = text.lower().replace("___", "-").split("__")
    return "_".join(part.replace("_", ".") for part in parts)


def _known_names() -> list[str]:
    return [*BrokerConfig.options(), *INERT_OPTIONS, *REMOVED_OPTIONS, *REFUSED_OPTIONS]


def _is_close(name: str) -> bool:
    if name.startswith((LISTENER_PREFIX, PROVIDERS_PREFIX)):
        return True
    import difflib  # noqa: PLC0415  # only for what may be a mistake

    return bool(difflib.get_close_matches(name, _known_names(), n=1, cutoff=_CLOSE))
