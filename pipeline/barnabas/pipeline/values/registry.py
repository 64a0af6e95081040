"""
Schemas of a registry, each fetched once in a process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

from barnabas.pipeline.errors import PipelineError

try:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError
except ImportError as error:
    raise ImportError("A schema registry needs: pip install 'barnabas[registry]'") from error

SchemaKey = int | str
"""The id of a schema, or its GUID."""

_DEFAULTS: Final = {
    "max.retries": 3,
    "retries.max.wait.ms": 2000,
    "retries.wait.ms": 200,
    "timeout": 10,
}
"""Of the client itself a request may take for ever."""
_SERIALIZED: Final = "serialized"
"""The format in which a registry gives a descriptor of Protobuf instead of its text."""
_NOT_FOUND: Final = 404


class RegistryError(PipelineError):
    """
    The registry does not answer, or refuses to.
    """


class UnknownSchema(RegistryError, LookupError):
    """
    The registry has no such schema.
    """


@dataclass(frozen=True, slots=True)
class FetchedSchema:
    """
    A schema with all that it refers to.
    """

    kind: str
    """``AVRO``, ``PROTOBUF`` or ``JSON``."""
    text: str
    """Of Protobuf, a FileDescriptorProto in base64."""
    references: tuple[tuple[str, str], ...] = ()
    """The names and texts of other schemas; each stands behind those that it refers to itself."""


class Registry:
    """
    One registry, and what it has answered.

    Schemas never change under their ids, so they are kept for as long as the process lives.
    """

    def __init__(self, url: str, settings: Mapping[str, Any]) -> None:
        self._url = _shown(url)
        self._client = SchemaRegistryClient({**_DEFAULTS, **settings, "url": url})
        self._known: dict[SchemaKey, FetchedSchema] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def schema(self, key: SchemaKey) -> FetchedSchema:
        """
        The schema of an id or a GUID.

        Raises:
            UnknownSchema: the registry has none.
            RegistryError: it does not answer after some tries, or does not allow it.
        """
        if key not in self._known:
            if isinstance(key, int):
                found = self._asked(self._client.get_schema, key, fmt=_SERIALIZED)
            else:
                found = self._asked(self._client.get_schema_by_guid, key, fmt=_SERIALIZED)
            self._known[key] = self._whole(found)
        return self._known[key]

    def version(self, subject: str, version: int | str = "latest") -> FetchedSchema:
        """
        The schema that *subject* has under that number, or now.

        Raises:
            UnknownSchema: the registry has no such subject or version.
            RegistryError: as of ``schema``.
        """
        return self._whole(self._registered(subject, version).schema)

    def latest_id(self, subject: str) -> int:
        """
        The id of the schema that *subject* has now. Raises as ``version`` does.
        """
        return int(self._registered(subject, "latest").schema_id)

    def register(self, subject: str, kind: str, text: str) -> int:
        """
        Make *text* a version of *subject*, if it is none yet, and return its id.

        Raises:
            RegistryError: the registry refuses it, or does not answer.
        """
        return int(self._asked(self._client.register_schema, subject, Schema(text, kind)))

    def _registered(self, subject: str, version: int | str) -> Any:
        if version == "latest":
            return self._asked(self._client.get_latest_version, subject, fmt=_SERIALIZED)
        return self._asked(self._client.get_version, subject, version, fmt=_SERIALIZED)

    def _whole(self, schema: Any) -> FetchedSchema:
        found: dict[str, str] = {}
        self._collect(schema, found)
        return FetchedSchema(schema.schema_type, schema.schema_str, tuple(found.items()))

    def _collect(self, schema: Any, found: dict[str, str]) -> None:
        for reference in schema.references or ():
            if reference.name not in found:
                other = self._registered(reference.subject, reference.version).schema
                self._collect(other, found)
                found[reference.name] = other.schema_str

    def _asked(self, ask: Any, *arguments: Any, **options: Any) -> Any:
        what = " ".join(map(str, arguments[:2]))
        try:
            return ask(*arguments, **options)
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                raise UnknownSchema(f"{self._url} has no schema {what}.") from None
            raise RegistryError(f"{self._url} refuses schema {what}: {error}") from None
        except Exception as error:
            # The HTTP client has errors of its own, of which its name is no part of the interface.
            reason = str(error) or type(error).__name__
            raise RegistryError(f"{self._url} does not answer: {reason}") from None


def _shown(url: str) -> str:
    """
    A URL as it may stand in a sentence: without a password.
    """
    scheme, _, rest = url.rpartition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True, repr=False)
class RegistryAddress:
    """
    The address of a registry, in the form that workers of Spark get. Its ``repr`` has no secret.
    """

    url: str
    settings: str
    """Those of the client, as JSON."""

    def __repr__(self) -> str:
        return f"<RegistryAddress {_shown(self.url)}>"

    @classmethod
    def of(cls, registry: str | Mapping[str, Any]) -> RegistryAddress:
        """
        That of a URL, or of settings of confluent-kafka's client, of which ``url`` is one.
        """
        settings = {"url": registry} if isinstance(registry, str) else dict(registry)
        url = settings.pop("url", None)
        if not isinstance(url, str):
            raise ValueError("The settings of a schema registry need a url.")
        return cls(url, json.dumps(settings, sort_keys=True))

    def open(self) -> Registry:
        """
        The registry, until it is left. The latest version of a subject is what it is now.
        """
        return Registry(self.url, json.loads(self.settings))

    def kept(self) -> Registry:
        """
        The registry; in one process it is always the same object.
        """
        return _kept(self)


@lru_cache(maxsize=16)
def _kept(address: RegistryAddress) -> Registry:
    return address.open()
