"""
How object stores are reached: keys, endpoint and region, by the names that users know them by.

They come from the environment (``AWS_ACCESS_KEY_ID``), from Spark's settings
(``spark.hadoop.fs.s3a.access.key``) or are given one by one, and are handed on by the names of the
library that talks to the store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from barnabas.pipeline.errors import InvalidOption

HADOOP: Final = ("fs.s3a.", "fs.azure.")
"""How the options of Hadoop's S3A and ABFS begin."""
S3: Final = ("s3", "s3a", "s3n")
"""Schemes of URLs: Hadoop's names are other names of the same store."""
_AZURE: Final = ("abfs", "abfss")
_SPARK_PREFIX: Final = "spark.hadoop."

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "access_key": ("aws_access_key_id", "fs.s3a.access.key", "s3.access-key-id"),
    "secret_key": ("aws_secret_access_key", "fs.s3a.secret.key", "s3.secret-access-key"),
    "session_token": ("aws_session_token", "fs.s3a.session.token", "s3.session-token"),
    "endpoint": (
        "aws_endpoint_url",
        "aws_endpoint_url_s3",
        "fs.s3a.endpoint",
        "s3.endpoint",
    ),
    "region": ("aws_region", "aws_default_region", "fs.s3a.endpoint.region", "s3.region"),
    "ssl_enabled": ("fs.s3a.connection.ssl.enabled",),
    "path_style": ("fs.s3a.path.style.access",),
    "azure_account_key": ("azure_storage_account_key", "fs.azure.account.key"),
    "azure_endpoint": ("azure_storage_endpoint", "fs.azure.abfs.endpoint"),
    "azure_https": ("fs.azure.always.use.https",),
}
"""By field: the names of the environment, of Hadoop and of Iceberg's catalogs."""
_FIELDS: Final = {name: field for field, names in _NAMES.items() for name in names}
_KEYS: Final = frozenset({"access_key", "secret_key"})
_S3_IDENTITY: Final = _KEYS | {"session_token"}
HADOOP_NAMES: Final = tuple(name for name in _FIELDS if name.startswith(HADOOP))


class AzurePlace(NamedTuple):
    """
    What a URL of Azure names.
    """

    account: str
    path: str
    """With the container, and no slash at its end."""


@dataclass(frozen=True, repr=False)
class StorageOptions:
    """
    How S3 and Azure are reached. What is None is left to the library that talks to it, which looks
    into its profiles and asks the machine's own service. It has no ``repr``: no secret is logged.
    """

    access_key: str | None = None
    secret_key: str | None = None
    session_token: str | None = None
    endpoint: str | None = None
    """A URL, or a host and port."""
    region: str | None = None
    ssl_enabled: str | None = None
    """``false`` for an endpoint without a scheme that speaks plain HTTP."""
    path_style: str | None = None
    """Accepted: an endpoint of one's own is always asked for paths, not for hosts."""
    azure_account_key: str | None = None
    azure_endpoint: str | None = None
    """A URL, or a host and port. Accounts are paths there, as in an emulator."""
    azure_https: str | None = None
    """``false`` for an endpoint without a scheme that speaks plain HTTP."""

    @classmethod
    def of(cls, *sources: Mapping[str, str]) -> StorageOptions:
        """
        Options of the *sources*, the first before the later ones, and then of the environment. The
        keys and the token of S3 come from one of them, the first that has a key.

        Raises:
            InvalidOption: the first source has a name that is not known, or a source has one key
                without the other.
        """
        for name in sources[0] if sources else ():
            if _plain(name) not in _FIELDS:
                known = ", ".join(sorted(_FIELDS))
                raise InvalidOption(f"There is no storage option {name}; there are {known}.")
        values: dict[str, str] = {}
        for source in (*sources, os.environ):
            here: dict[str, str] = {}
            for name, value in source.items():
                field = _FIELDS.get(_plain(name))
                if field is not None and value:
                    here.setdefault(field, value)
            if _KEYS.isdisjoint(here) or not _KEYS.isdisjoint(values):
                # A token of another source belongs to other keys.
                here = {field: value for field, value in here.items() if field not in _S3_IDENTITY}
            values = {**here, **values}
        if len(_KEYS & values.keys()) == 1:
            raise InvalidOption("An access key and its secret key must come from one source.")
        return cls(**values)

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    @property
    def endpoint_url(self) -> str | None:
        """
        The endpoint with a scheme.
        """
        return _with_scheme(self.endpoint, self.ssl_enabled)

    def azure_place(self, url: str) -> AzurePlace | None:
        """
        What *url* names, if it is one like ``abfss://container@account.dfs.core.windows.net/path``
        and anything is said of Azure.
        """
        scheme, _, rest = url.partition("://")
        authority, _, path = rest.partition("/")
        container, _, host = authority.partition("@")
        said = self.azure_account_key is not None or self.azure_endpoint is not None
        if not said or scheme.lower() not in _AZURE or not host or "?" in url or ":" in container:
            return None
        return AzurePlace(host.partition(".")[0], f"{container}/{path}".rstrip("/"))

    def azure_endpoint_url(self, account: str) -> str | None:
        """
        The endpoint with a scheme and the account.

        Raises:
            InvalidOption: it is of another account, or has the account in its host.
        """
        url = _with_scheme(self.azure_endpoint, self.azure_https)
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.path.strip("/") not in ("", account) or parts.netloc.startswith(f"{account}."):
            raise InvalidOption(
                f"{self.azure_endpoint} is no endpoint for the account {account}: give it as"
                f" {parts.scheme}://HOST:PORT/{account}."
            )
        return f"{parts.scheme}://{parts.netloc}/{account}"

    def for_pyarrow_azure(self, account: str) -> dict[str, Any]:
        """
        Arguments of pyarrow's ``AzureFileSystem``.

        Raises:
            InvalidOption: as ``azure_endpoint_url``.
        """
        named: dict[str, Any] = {"account_name": account, "account_key": self.azure_account_key}
        endpoint = self.azure_endpoint_url(account)
        if endpoint is not None:
            url = urlsplit(endpoint)
            for service in ("blob", "dfs"):
                named[f"{service}_storage_authority"] = url.netloc
                named[f"{service}_storage_scheme"] = url.scheme
        return _given(named)

    def for_pyarrow(self) -> dict[str, Any]:
        """
        Arguments of pyarrow's ``S3FileSystem``.
        """
        named: dict[str, Any] = {
            "access_key": self.access_key,
            "secret_key": self.secret_key,
            "session_token": self.session_token,
            "region": self.region,
        }
        if self.endpoint_url is not None:
            url = urlsplit(self.endpoint_url)
            named |= {"scheme": url.scheme, "endpoint_override": url.netloc}
        return _given(named)

    def for_delta(self, table: str) -> dict[str, str]:
        """
        Storage options of ``deltalake`` for the URL of a table.

        Raises:
            InvalidOption: as ``azure_endpoint_url``.
        """
        azure = self.azure_place(table)
        if azure is not None:
            url = self.azure_endpoint_url(azure.account)
            return _given(
                {
                    "AZURE_STORAGE_ACCOUNT_KEY": self.azure_account_key,
                    "AZURE_STORAGE_ENDPOINT": url,
                    "AZURE_ALLOW_HTTP": _is_http(url),
                }
            )
        url = self.endpoint_url
        return _given(
            {
                "AWS_ACCESS_KEY_ID": self.access_key,
                "AWS_SECRET_ACCESS_KEY": self.secret_key,
                "AWS_SESSION_TOKEN": self.session_token,
                "AWS_REGION": self.region,
                "AWS_ENDPOINT_URL": url,
                "AWS_ALLOW_HTTP": _is_http(url),
            }
        )

    def for_obstore(self, store: str) -> dict[str, Any]:
        """
        Arguments of ``obstore.store.from_url`` beside the URL, which is that of *store*.

        Raises:
            InvalidOption: as ``azure_endpoint_url``.
        """
        azure = self.azure_place(store)
        if azure is not None:
            url = self.azure_endpoint_url(azure.account)
            named = {"account_key": self.azure_account_key, "endpoint": url}
        elif store.partition(":")[0].lower() in S3:
            url = self.endpoint_url
            named = {
                "access_key_id": self.access_key,
                "secret_access_key": self.secret_key,
                "token": self.session_token,
                "region": self.region,
                "endpoint": url,
            }
        else:
            return {}
        client = {"allow_http": True} if _is_http(url) == "true" else None
        return _given({**named, "client_options": client})

    def for_iceberg(self) -> dict[str, str]:
        """
        Properties of a catalog of ``pyiceberg``.
        """
        return _given(
            {
                "s3.access-key-id": self.access_key,
                "s3.secret-access-key": self.secret_key,
                "s3.session-token": self.session_token,
                "s3.region": self.region,
                "s3.endpoint": self.endpoint_url,
            }
        )


def _plain(name: str) -> str:
    return name.lower().removeprefix(_SPARK_PREFIX)


def _with_scheme(endpoint: str | None, tls: str | None) -> str | None:
    if endpoint is None or "://" in endpoint:
        return endpoint
    plain = (tls or "").lower() == "false"
    return f"{'http' if plain else 'https'}://{endpoint}"


def _is_http(url: str | None) -> str | None:
    return None if url is None else str(url.startswith("http:")).lower()


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def hadoop_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """
    Those of the *settings* of a Spark session that say how S3 and Azure are reached.
    """
    return {name: value for name, value in settings.items() if _plain(name) in HADOOP_NAMES}
