"""
The subject of a certificate as text (RFC 2253, as Java's ``X500Principal.getName`` writes it).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_SHORT: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""
The attributes that RFC 2253 has a name for; all others are written as numbers.
"""
_TEXT_TAGS: Final = {
    0x0C: "utf-8",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1E: "utf-16-be",
}
"""
UTF8String, PrintableString, TeletexString, IA5String, BMPString.
"""
_ESCAPES: Final = {char: f"\\{char}" for char in ',=+<>#;"\\'} | {"\0": "\\00"}


class NoSupport(Exception):
    """
    The library that reads certificates is not installed.
    """


def subject_of(certificate: bytes) -> str:
    """
    The subject of a certificate in DER: the last part of the name first, no blanks behind commas.

    Raises:
        NoSupport: the library ``cryptography`` is not installed.
    """
    try:
        from cryptography import x509
    except ImportError:
        raise NoSupport(
            "principals of certificates need the library cryptography:"
            " pip install 'barnabas[security]'"
        ) from None
    return name_text(x509.load_der_x509_certificate(certificate).subject.public_bytes())


def name_text(name: bytes) -> str:
    """
    A Name in DER as text.
    """
    return ",".join("+".join(map(_attribute, part)) for part in reversed(_parts(name)))


def _parts(name: bytes) -> list[list[tuple[str, int, bytes]]]:
    """
    The relative names of a Name in DER, each with its attributes: identifier, tag and value.
    """
    return [
        [_identified(attribute) for _, attribute, _ in der_values(part)]
        for _, part, _ in der_values(next(der_values(name))[1])
    ]


def _identified(attribute: bytes) -> tuple[str, int, bytes]:
    (_, identifier, _), (tag, _, whole) = der_values(attribute)
    return _dotted(identifier), tag, whole


def der_values(der: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """
    The values in *der*, one behind the other: tag, content, and both with the length between.
    """
    at = 0
    while at < len(der):
        length, start = der[at + 1], at + 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(der[at + 2 : start])
        if start + length > len(der):
            raise ValueError("it is cut off")
        yield der[at], der[start : start + length], der[at : start + length]
        at = start + length


def _dotted(identifier: bytes) -> str:
    numbers, value = [], 0
    for byte in identifier:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _attribute(attribute: tuple[str, int, bytes]) -> str:
    identifier, tag, whole = attribute
    short, encoding = _SHORT.get(identifier), _TEXT_TAGS.get(tag)
    if short is None or encoding is None:
        return f"{short or identifier}=#{whole.hex()}"
    _, content, _ = next(der_values(whole))
    return f"{short}={_escaped(content.decode(encoding, 'replace'))}"


def _escaped(text: str) -> str:
    inner = text.strip(" ")
    if not inner:
        return "\\ " * len(text)
    before, after = text.index(inner), len(text) - len(text.rstrip(" "))
    written = "".join(_ESCAPES.get(char, char) for char in inner)
    return "\\ " * before + written + "\\ " * after
