"""
What is in the broker's own certificates: whom they are for, and when they end.

It is read from their DER without a library, since a broker whose store is PEM or JKS needs none::

    Certificate ::= SEQUENCE { tbsCertificate, ... }
    tbsCertificate ::= SEQUENCE { [0] version, serialNumber, signature, issuer,
                                  validity SEQUENCE { notBefore, notAfter }, subject,
                                  subjectPublicKeyInfo, ..., [3] SEQUENCE OF extension }
    extension ::= SEQUENCE { identifier, critical BOOLEAN DEFAULT FALSE, OCTET STRING }
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.server.security.tls.subject import der_values, name_text

_VERSION_TAG: Final = 0xA0
_EXTENSIONS_TAG: Final = 0xA3
_UTC_TIME_TAG: Final = 0x17
_ALTERNATIVE_NAMES: Final = bytes.fromhex("551d11")  # 2.5.29.17


@struct
class Certificate:
    """
    One certificate.
    """

    subject: str
    alternative_names: frozenset[tuple[int, bytes]]
    """The kind of each name, and the name."""
    ends_ms: int


def read_certificate(der: bytes) -> Certificate:
    """
    Raises:
        ValueError: it is no certificate.
    """
    try:
        return _read(der)
    except (IndexError, StopIteration, ValueError) as error:
        raise ValueError(f"a certificate is malformed: {error}") from None


def _read(der: bytes) -> Certificate:
    _, certificate, _ = next(der_values(der))
    _, signed, _ = next(der_values(certificate))
    fields = list(der_values(signed))
    first = 1 if fields[0][0] == _VERSION_TAG else 0
    _, _, _, validity, subject, _, *others = fields[first:]
    _, (tag, end, _) = der_values(validity[1])
    return Certificate(
        name_text(subject[2]),
        next((_names(each[1]) for each in others if each[0] == _EXTENSIONS_TAG), frozenset()),
        _milliseconds(tag, end.decode("ascii")),
    )


def _names(extensions: bytes) -> frozenset[tuple[int, bytes]]:
    for _, extension, _ in der_values(next(der_values(extensions))[1]):
        (_, identifier, _), *_, (_, value, _) = der_values(extension)
        if identifier == _ALTERNATIVE_NAMES:
            names = der_values(next(der_values(value))[1])
            return frozenset((tag, name) for tag, name, _ in names)
    return frozenset()


def _milliseconds(tag: int, text: str) -> int:
    """
    A UTCTime or a GeneralizedTime, which RFC 5280 both wants to end in seconds and Z.
    """
    if tag == _UTC_TIME_TAG:
        text = ("19" if text >= "5" else "20") + text
    moment = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000
