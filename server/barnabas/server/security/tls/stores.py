"""
Key stores and trust stores: PEM, PKCS12, JKS (Kafka ``DefaultSslEngineFactory``).

What they hold becomes PEM, which OpenSSL reads. PKCS12 needs the library ``cryptography``, PEM and
JKS do not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.server.security.tls.certificate import Certificate, read_certificate
from barnabas.server.security.tls.jks import read_jks

_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)
_KEY: Final = re.compile(
    r"-----BEGIN (?:[A-Z ]* )?PRIVATE KEY-----.*?-----END (?:[A-Z ]* )?PRIVATE KEY-----", re.DOTALL
)
_LINE: Final = 64


class InvalidStore(Exception):
    """
    A key store or a trust store cannot be used; the sentence says why.
    """


@struct
class KeyStore:
    """
    A key with its certificates.
    """

    key: str
    """PEM, encrypted if it needs a password."""
    chain: str
    """PEM, the key's own certificate first."""
    password: str | None = None
    entries: int = 1
    """How many entries the store has, other keys and trusted certificates among them."""

    def certificates(self) -> list[Certificate]:
        """
        The chain, the key's own certificate first.

        Raises:
            InvalidStore: one of them is malformed.
        """
        try:
            return [read_certificate(_der(block)) for block in _CERTIFICATE.findall(self.chain)]
        except ValueError as error:
            raise InvalidStore(str(error)) from None


def pem_key_store(text: str, password: str | None) -> KeyStore:
    """
    The key and the certificates in *text*, in any order.

    Raises:
        InvalidStore: there is not exactly one key, or no certificate.
    """
    keys, certificates = _KEY.findall(text), _CERTIFICATE.findall(text)
    if len(keys) != 1:
        raise InvalidStore(f"it has {len(keys)} private keys as PEM, and needs to have one")
    if not certificates:
        raise InvalidStore("it has no certificate as PEM")
    return KeyStore(_in_lines(keys[0]), "\n".join(map(_in_lines, certificates)), password)


def pem_certificates(text: str) -> str:
    """
    The certificates in *text*.

    Raises:
        InvalidStore: there is none.
    """
    found = _CERTIFICATE.findall(text)
    if not found:
        raise InvalidStore("it has no certificate as PEM")
    return "\n".join(map(_in_lines, found))


def pkcs12_key_store(data: bytes, password: str | None) -> KeyStore:
    """
    The key of a PKCS12 store.

    Raises:
        InvalidStore: the password is wrong, it is no such store, or it has no key.
    """
    store = _load_pkcs12(data, password)
    if store.key is None or store.cert is None:
        raise InvalidStore("it has no private key with a certificate")
    from cryptography.hazmat.primitives import serialization

    key = store.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    own, others = store.cert, store.additional_certs
    chain = [each.certificate.public_bytes(serialization.Encoding.DER) for each in (own, *others)]
    return KeyStore(key.decode(), _pem(chain))


def pkcs12_certificates(data: bytes, password: str | None) -> str:
    """
    The certificates of a PKCS12 store.

    Raises:
        InvalidStore: the password is wrong, it is no such store, or it has no certificate.
    """
    store = _load_pkcs12(data, password)
    from cryptography.hazmat.primitives import serialization

    found = [store.cert] if store.cert is not None else []
    certificates = [
        each.certificate.public_bytes(serialization.Encoding.DER)
        for each in (*found, *store.additional_certs)
    ]
    if not certificates:
        raise InvalidStore("it has no certificate")
    return _pem(certificates)


def jks_key_store(data: bytes, password: str, key_password: str | None) -> KeyStore:
    """
    The first key of a JKS store.

    Args:
        key_password: of the key; by default that of the store.

    Raises:
        InvalidStore: a password is wrong, it is no such store, or it has no key.
    """
    try:
        store = read_jks(data, password)
        keys = store.keys
        if not keys:
            raise InvalidStore("it has no private key")
        key = keys[0].decrypt(key_password or password)
    except ValueError as error:
        raise InvalidStore(str(error)) from None
    entries = len(keys) + len(store.certificates)
    return KeyStore(_armored("PRIVATE KEY", key), _pem(keys[0].chain), entries=entries)


def jks_certificates(data: bytes, password: str) -> str:
    """
    The trusted certificates of a JKS store.

    Raises:
        InvalidStore: the password is wrong, it is no such store, or it has no certificate.
    """
    try:
        certificates = read_jks(data, password).certificates
    except ValueError as error:
        raise InvalidStore(str(error)) from None
    if not certificates:
        raise InvalidStore("it has no trusted certificate")
    return _pem(certificates)


def _load_pkcs12(data: bytes, password: str | None):  # type: ignore[no-untyped-def]
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise InvalidStore(
            "a PKCS12 store needs the library cryptography: pip install 'barnabas[security]'"
        ) from None
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise InvalidStore(f"it is no PKCS12 store, or its password is wrong: {error}") from None


def _pem(certificates: Sequence[bytes]) -> str:
    return "\n".join(_armored("CERTIFICATE", each) for each in certificates)


def _armored(label: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])


def _der(block: str) -> bytes:
    return base64.b64decode(block.split("-----")[2])


def _in_lines(block: str) -> str:
    """
    A block of PEM that may have blanks in place of line ends, as in an option.
    """
    begin, _, rest = block.partition("-----\n" if "-----\n" in block else "----- ")
    if ":" in rest or not rest:  # headers of an encrypted key of the older kind, or already fine
        return block + "\n"
    body, _, end = rest.rpartition("-----END")
    if not body:
        return block + "\n"
    text = "".join(body.split())
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join([f"{begin}-----", *lines, f"-----END{end}", ""])
