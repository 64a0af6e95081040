"""
Java's own format of key stores, JKS.

::

    magic, version, count
    entry    tag 1, alias, ms, encrypted key, chain of certificates
             tag 2, alias, ms, certificate
    SHA-1 of password, "Mighty Aphrodite" and all of that

A key is encrypted by a stream of SHA-1 sums that begins with a salt.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from typing import Final

from barnabas.protocol.structs import struct

_MAGIC: Final = 0xFEEDFEED
_VERSION: Final = 2
_KEY_TAG: Final = 1
_CERTIFICATE_TAG: Final = 2
_WHITENER: Final = b"Mighty Aphrodite"
_SUM_BYTES: Final = 20
_PROTECTION: Final = bytes.fromhex("060a2b060104012a02110101")
"""
The object identifier of JKS's protection of keys, 1.3.6.1.4.1.42.2.17.1.1, as DER.
"""


@struct
class JksKey:
    """
    A private key as it is stored, with its certificates as DER, its own one first.
    """

    protected: bytes
    chain: list[bytes]

    def decrypt(self, password: str) -> bytes:
        """
        The key as PKCS8 in DER.

        Raises:
            ValueError: the password is wrong, or the key is protected in another way.
        """
        if _PROTECTION not in self.protected[:40]:
            raise ValueError("the private key is not protected as in a JKS store")
        data = _octets(self.protected)
        salt, check = data[:_SUM_BYTES], data[-_SUM_BYTES:]
        secret = password.encode("utf-16-be")
        sealed = data[_SUM_BYTES:-_SUM_BYTES]
        plain = bytes(a ^ b for a, b in zip(sealed, _stream(secret, salt), strict=False))
        if not hmac.compare_digest(check, _sha1(secret + plain)):
            raise ValueError("the password of the private key is wrong")
        return plain


@struct
class JksStore:
    """
    The keys and the trusted certificates of a store.
    """

    keys: list[JksKey]
    certificates: list[bytes]


def read_jks(data: bytes, password: str) -> JksStore:
    """
    Read a store.

    Raises:
        ValueError: it is no such store, or the password is wrong.
    """
    body, seal = data[:-_SUM_BYTES], data[-_SUM_BYTES:]
    if int.from_bytes(data[:4]) != _MAGIC or int.from_bytes(data[4:8]) != _VERSION:
        raise ValueError("it is no JKS store (a keytool of today makes PKCS12 by default)")
    if not hmac.compare_digest(seal, _sha1(password.encode("utf-16-be") + _WHITENER + body)):
        raise ValueError("the password is wrong, or the store is damaged")
    reader = _Reader(body)
    reader.take(8)
    store = JksStore([], [])
    for _ in range(reader.number(4)):
        tag = reader.number(4)
        reader.take(reader.number(2))  # the alias
        reader.take(8)  # when it was made
        if tag == _KEY_TAG:
            protected = reader.take(reader.number(4))
            store.keys.append(
                JksKey(protected, [_certificate(reader) for _ in range(reader.number(4))])
            )
        elif tag == _CERTIFICATE_TAG:
            store.certificates.append(_certificate(reader))
        else:
            raise ValueError(f"it has an entry of the unknown kind {tag}")
    return store


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise ValueError("the store is cut off")
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))


def _certificate(reader: _Reader) -> bytes:
    reader.take(reader.number(2))  # the kind, X.509
    return reader.take(reader.number(4))


def _octets(encrypted: bytes) -> bytes:
    """
    The last value of an EncryptedPrivateKeyInfo: what is encrypted.
    """
    content, _ = _value(encrypted)
    _, algorithm_end = _value(content)
    octets, _ = _value(content[algorithm_end:])
    return octets


def _value(der: bytes) -> tuple[bytes, int]:
    """
    The content of the first value in *der*, and where it ends.
    """
    length, start = der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start])
    return der[start : start + length], start + length


def _stream(secret: bytes, salt: bytes) -> Iterator[int]:
    block = salt
    while True:
        block = _sha1(secret + block)
        yield from block


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()
