"""
Cipher suites: IANA's names, which Kafka's options have, and OpenSSL's.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from typing import Final

from barnabas.storage.config.option_values import InvalidValue

_TLS_1_3: Final = frozenset(
    (
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    )
)
_OPENSSL: Final = re.compile(
    r"(?:(?P<exchange>ECDHE|DHE|ECDH|DH)-(?P<signature>RSA|ECDSA|DSS)-)?"
    r"(?P<cipher>AES128|AES256|CAMELLIA128|CAMELLIA256|ARIA128|ARIA256|CHACHA20-POLY1305)"
    r"(?:-(?P<mode>GCM|CCM8|CCM))?(?:-(?P<sum>SHA384|SHA256|SHA))?"
)


def openssl_names(context: ssl.SSLContext, suites: Sequence[str]) -> tuple[list[str], bool]:
    """
    OpenSSL's names of the *suites* before TLS 1.3, and whether some are of TLS 1.3.

    Raises:
        InvalidValue: OpenSSL has no such suite.
    """
    context.set_ciphers("ALL:!aNULL:!eNULL")
    known = {iana_name(cipher["name"]): cipher["name"] for cipher in context.get_ciphers()}
    older = []
    for suite in suites:
        if suite in _TLS_1_3:
            continue
        if suite not in known:
            raise InvalidValue("ssl.cipher.suites", suite, "OpenSSL has no such cipher suite")
        older.append(known[suite])
    return older, any(suite in _TLS_1_3 for suite in suites)


def iana_name(name: str) -> str:
    """
    IANA's name of a suite of TLS 1.2, such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 for
    ECDHE-RSA-AES256-GCM-SHA384; *name* itself if it follows another pattern.
    """
    match = _OPENSSL.fullmatch(name)
    if match is None:
        return name
    exchange = f"{match['exchange']}_{match['signature']}" if match["exchange"] else "RSA"
    cipher = re.sub(r"(?<=[A-Z])(128|256)$", r"_\1", match["cipher"]).replace("-", "_")
    mode = {"CCM8": "CCM_8", None: "CBC"}.get(match["mode"], match["mode"])
    if cipher.startswith("CHACHA20"):
        return f"TLS_{exchange}_WITH_{cipher}_SHA256"
    if match["mode"] in ("CCM", "CCM8"):
        return f"TLS_{exchange}_WITH_{cipher}_{mode}"
    return f"TLS_{exchange}_WITH_{cipher}_{mode}_{match['sum']}"
