"""
Values of options that are elsewhere: in other files, or in the environment (KIP-297).

::

    config.providers=file,dir,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/run/secrets
    ssl.key.password=${file:/run/secrets/broker.properties:key.password}

A variable is ``${provider:path:key}``, or ``${provider:key}`` without a path, and may stand
anywhere in a value. What looks like one and has the name of no provider stands for itself. A
variable of a provider that has no value for it is refused, since as a value it would make no sense.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from barnabas.protocol.structs import struct
from barnabas.server.config.network import PROVIDERS
from barnabas.storage.config.option_values import ConfigError, InvalidValue
from barnabas.storage.properties import read_properties

_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PACKAGE: Final = "org.apache.kafka.common.config.provider."

Provide: TypeAlias = Callable[[str, str], str]
"""
The value of a path and a key. Raises ``ConfigError``, which names both and never a value.
"""


class Resolver:
    """
    Replaces variables by their values.
    """

    def __init__(self, providers: Mapping[str, Provide]) -> None:
        self._providers = providers
        self.values: dict[str, str] = {}
        """What it has found, each with its variable."""

    def resolve(self, name: str, text: str) -> str:
        """
        The *text* of the option *name* with values in place of variables.

        Raises:
            ConfigError: a provider has no value for a variable.
        """

        def value(match: re.Match[str]) -> str:
            provide = self._providers.get(match[1])
            if provide is None:
                return match[0]
            try:
                found = provide(match[2] or "", match[3])
            except ConfigError as error:
                raise ConfigError(f"{name}: {match[0]}: {error}") from None
            if found:
                self.values[found] = match[0]
            return found

        return _VARIABLE.sub(value, text)


def resolver(options: Mapping[str, str], environment: Mapping[str, str]) -> Resolver:
    """
    The resolver that the options ``config.providers`` and ``config.providers...`` ask for.

    Raises:
        ConfigError: a provider is of another class than there are, or its parameters make no sense.
    """
    providers = {}
    for part in options.get(PROVIDERS, "").split(","):
        name = part.strip()
        kind = options.get(f"{PROVIDERS}.{name}.class", "").strip()
        if not name or not kind:
            continue
        make = _CLASSES.get(kind)
        if make is None:
            raise InvalidValue(
                f"{PROVIDERS}.{name}.class",
                kind,
                f"it is a Java class; there are {', '.join(_CLASSES)} here",
            )
        prefix = f"{PROVIDERS}.{name}.param."
        parameters = {
            key.removeprefix(prefix): text.strip()
            for key, text in options.items()
            if key.startswith(prefix)
        }
        try:
            providers[name] = make(parameters, environment)
        except ConfigError as error:
            raise ConfigError(f"{prefix}{error}") from None
    return Resolver(providers)


@struct
class _AllowedPaths:
    """
    The directories and files that a provider may read; None for all.
    """

    paths: list[Path] | None

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> _AllowedPaths:
        text = parameters.get("allowed.paths")
        if not text:
            return cls(None)
        paths = [_normal(part) for part in text.split(",")]
        for path in paths:
            if not path.is_absolute() or not path.exists():
                raise ConfigError(f"allowed.paths: {path} is not absolute, or does not exist")
        return cls(paths)

    def check(self, text: str) -> Path:
        if not text:
            raise ConfigError("it has no path")
        path = _normal(text)
        if self.paths is not None and not any(path.is_relative_to(each) for each in self.paths):
            raise ConfigError("allowed.paths does not have its path")
        return path


def _normal(text: str) -> Path:
    """
    A path without ``..``, which could lead out of a directory that is allowed.
    """
    parts: list[str] = []
    for part in Path(text.strip()).parts:
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] not in ("/", ".."):
            parts.pop()
        elif not parts or parts[-1] == "..":
            parts.append(part)
    return Path(*parts)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError("it is no UTF-8") from None


def _of_files(parameters: Mapping[str, str], _environment: Mapping[str, str]) -> Provide:
    """
    A key of a file of properties.
    """
    allowed = _AllowedPaths.of(parameters)

    def provide(path: str, key: str) -> str:
        try:
            found = read_properties(_read(allowed.check(path))).get(key)
        except ConfigError:
            raise
        except ValueError:
            raise ConfigError("its file is no file of properties") from None
        if found is None:
            raise ConfigError("its file does not have the key")
        return found

    return provide


def _of_directories(parameters: Mapping[str, str], _environment: Mapping[str, str]) -> Provide:
    """
    A file of a directory, without the end of its last line.
    """
    allowed = _AllowedPaths.of(parameters)

    def provide(path: str, key: str) -> str:
        directory = allowed.check(path)
        if Path(key).name != key or not (directory / key).is_file():
            raise ConfigError("its directory does not have the file")
        return _read(directory / key).rstrip("\r\n")

    return provide


def _of_environment(parameters: Mapping[str, str], environment: Mapping[str, str]) -> Provide:
    """
    A variable of the environment.
    """
    text = parameters.get("allowlist.pattern", ".*")
    try:
        allowed = re.compile(text)
    except re.error as error:
        raise ConfigError(f"allowlist.pattern: {text} is no pattern: {error}") from None

    def provide(path: str, key: str) -> str:
        if path:
            raise ConfigError("variables of the environment have no path")
        if key not in environment or allowed.fullmatch(key) is None:
            raise ConfigError("there is no such variable, or allowlist.pattern does not have it")
        return environment[key]

    return provide


_CLASSES: Final[Mapping[str, Callable[[Mapping[str, str], Mapping[str, str]], Provide]]] = {
    f"{_PACKAGE}FileConfigProvider": _of_files,
    f"{_PACKAGE}DirectoryConfigProvider": _of_directories,
    f"{_PACKAGE}EnvVarConfigProvider": _of_environment,
}
