"""
An authority and the certificates that it issues, for tests and small installations.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import NameOID

from barnabas.storage.clock import SystemClock

AUTHORITY: Final = "ca.pem"
AUTHORITY_KEY: Final = "ca-key.pem"
BROKER: Final = "broker.pem"

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_BEFORE: Final = timedelta(hours=1)
"""Other clocks may be late."""


class CannotIssue(Exception):
    """
    The certificates cannot be made; the sentence says why.
    """


def issue(directory: Path, hosts: Sequence[str], clients: Sequence[str], days: int) -> list[Path]:
    """
    Make what is missing in *directory* and return its new files.

    Args:
        hosts: names and addresses of the broker, beside those of this machine.

    Raises:
        CannotIssue: a name cannot be used, a certificate exists, or the authority is incomplete.
        OSError: a file cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name in clients:
        if not name or "/" in name or f"{name}.pem" in (AUTHORITY, AUTHORITY_KEY, BROKER):
            raise CannotIssue(f"--client {name!r} cannot be the name of a file")
        if (directory / f"{name}.pem").exists():
            raise CannotIssue(f"{directory / name}.pem exists; move it away to issue another one")
    authority = _Authority.opened(directory, days)
    made = [*authority.made]
    if not (directory / BROKER).exists():
        names = [*dict.fromkeys((*hosts, *_LOCAL))]
        made.append(authority.issue(directory / BROKER, names[0], names, days))
    elif hosts or not clients:
        raise CannotIssue(f"{directory / BROKER} exists; move it away to issue another one")
    made += [authority.issue(directory / f"{name}.pem", name, (), days) for name in clients]
    return made


class _Authority:
    """
    A key and its self-signed certificate.
    """

    def __init__(
        self, key: EllipticCurvePrivateKey, certificate: x509.Certificate, made: Sequence[Path] = ()
    ) -> None:
        self._key = key
        self._certificate = certificate
        self.made = made

    @classmethod
    def opened(cls, directory: Path, days: int) -> Self:
        """
        The authority in *directory*, which is made if there is none.
        """

        certificate, key = directory / AUTHORITY, directory / AUTHORITY_KEY
        if certificate.exists() != key.exists():
            missing = key if certificate.exists() else certificate
            raise CannotIssue(f"{missing} is missing; {directory} has only half of an authority")
        if certificate.exists():
            try:
                loaded = serialization.load_pem_private_key(key.read_bytes(), None)
                found = x509.load_pem_x509_certificate(certificate.read_bytes())
            except (ValueError, TypeError) as error:
                raise CannotIssue(f"the authority in {directory} cannot be read: {error}") from None
            if not isinstance(loaded, ec.EllipticCurvePrivateKey):
                raise CannotIssue(f"{key} is not a key that this command has made")
            return cls(loaded, found)
        new = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Barnabas authority")])
        signed = (
            _builder(name, name, new, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(new, hashes.SHA256())
        )
        _write(key, _pem(new))
        try:
            _write(certificate, signed.public_bytes(serialization.Encoding.PEM), mode=0o644)
        except OSError:
            key.unlink()  # A later run would find half of an authority.
            raise
        return cls(new, signed, (certificate, key))

    def issue(self, path: Path, common_name: str, hosts: Sequence[str], days: int) -> Path:
        """
        Write a new key and its certificate to *path*.
        """

        key = ec.generate_private_key(ec.SECP256R1())
        try:
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
            builder = _builder(subject, self._certificate.subject, key, days).add_extension(
                x509.BasicConstraints(ca=False, path_length=None), critical=True
            )
            if hosts:
                names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
                builder = builder.add_extension(names, critical=False)
        except ValueError as error:
            raise CannotIssue(f"{common_name!r} cannot be in a certificate: {error}") from None
        signed = builder.sign(self._key, hashes.SHA256())
        _write(path, _pem(key) + signed.public_bytes(serialization.Encoding.PEM))
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:

    now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + timedelta(days=days))
    )


def _general_name(host: str) -> x509.GeneralName:

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    """
    A key in PKCS8, the one form that Java reads.
    """

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """
    Write a new file, which only its owner can read unless *mode* says otherwise.

    Raises:
        OSError: it cannot be written, and is removed; the error has the path.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        path.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
