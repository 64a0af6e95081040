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
from typing import Any, Final
from urllib.parse import urlsplit

from barnabas.pipeline.errors import InvalidOption

S3A: Final = "fs.s3a."
"""How the options of Hadoop's S3A begin."""
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
}
"""By field: the names of the environment, of Hadoop's S3A and of Iceberg's catalogs."""
_FIELDS: Final = {name: field for field, names in _NAMES.items() for name in names}
S3A_NAMES: Final = tuple(name for name in _FIELDS if name.startswith(S3A))


@dataclass(frozen=True, repr=False)
class StorageOptions:
    """
    How S3 is reached. What is None is left to the library that talks to it, which looks into its
    profiles and asks the machine's own service. It has no ``repr``: secrets are not logged.
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

    @classmethod
    def of(cls, *sources: Mapping[str, str]) -> StorageOptions:
        """
        What the *sources* say, the first before the later ones, and then the environment.

        Raises:
            InvalidOption: the first source has a name that is not known.
        """
        for name in sources[0] if sources else ():
            if _plain(name) not in _FIELDS:
                known = ", ".join(sorted(_FIELDS))
                raise InvalidOption(f"There is no storage option {name}; there are {known}.")
        values: dict[str, str] = {}
        for source in (*sources, os.environ):
            for name, value in source.items():
                field = _FIELDS.get(_plain(name))
                if field is not None and value:
                    values.setdefault(field, value)
        return cls(**values)

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    @property
    def endpoint_url(self) -> str | None:
        """
        The endpoint with a scheme.
        """
        if self.endpoint is None or "://" in self.endpoint:
            return self.endpoint
        plain = (self.ssl_enabled or "").lower() == "false"
        return f"{'http' if plain else 'https'}://{self.endpoint}"

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

    def for_delta(self) -> dict[str, str]:
        """
        Storage options of ``deltalake``.
        """
        url = self.endpoint_url
        return _given(
            {
                "AWS_ACCESS_KEY_ID": self.access_key,
                "AWS_SECRET_ACCESS_KEY": self.secret_key,
                "AWS_SESSION_TOKEN": self.session_token,
                "AWS_REGION": self.region,
                "AWS_ENDPOINT_URL": url,
                "AWS_ALLOW_HTTP": None if url is None else str(url.startswith("http:")).lower(),
            }
        )

    def for_obstore(self) -> dict[str, Any]:
        """
        Arguments of ``obstore.store.from_url``.
        """
        url = self.endpoint_url
        named = {
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "token": self.session_token,
            "region": self.region,
            "endpoint": url,
        }
        client = {"allow_http": True} if url is not None and url.startswith("http:") else None
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


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def hadoop_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """
    Those of the *settings* of a Spark session that say how S3 is reached.
    """
    return {name: value for name, value in settings.items() if _plain(name).startswith(S3A)}
