"""
Certificates for tests: an authority, a broker and its clients.
"""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path
from typing import Final

import trustme
from cryptography.hazmat.primitives import serialization

HOST: Final = "127.0.0.1"


class Certificates:
    """
    Files in a directory: ``ca.pem``, ``broker.pem``, and ``<name>.pem`` for each client.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._authority = trustme.CA()
        self.ca = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(self.ca)
        self.broker = self.issue("broker", HOST, "localhost")

    def issue(
        self,
        name: str,
        *identities: str,
        common_name: str | None = None,
        unit: str = "Brokers",
        begins: datetime | None = None,
        ends: datetime | None = None,
    ) -> Path:
        """
        Write a file with a key and its certificate.

        Args:
            begins, ends: the period of validity.
        """
        issued = self._authority.issue_cert(
            *identities,
            common_name=common_name,
            organization_name="Tests",
            organization_unit_name=unit,
            not_before=begins,
            not_after=ends,
        )
        path = self.directory / f"{name}.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def client(self, name: str) -> Path:
        return self.issue(name, f"{name}@example.org", common_name=name)

    def settings(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }

    def context(
        self, client: Path | None = None, version: ssl.TLSVersion | None = None
    ) -> ssl.SSLContext:
        """
        The TLS context of a client.

        Args:
            client: its certificate.
            version: the only TLS version that it accepts.
        """
        context = ssl.create_default_context(cafile=self.ca)
        if client is not None:
            context.load_cert_chain(client)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context


def java_can_read(path: Path) -> Path:
    """
    Write the key of a PEM file in PKCS8, the one form that Java reads, and return *path*.
    """
    text = path.read_bytes()
    key = serialization.load_pem_private_key(text, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(key + text[text.index(b"-----BEGIN CERTIFICATE") :])
    return path
