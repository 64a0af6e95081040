"""
Key stores and trust stores made by keytool (``stores``), and PEM.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from barnabas.server.config.security import ListenerSecurityOptions
from barnabas.server.security.tls.context import listener_tls
from barnabas.server.security.tls.stores import jks_certificates
from barnabas.storage.config.option_values import ConfigError
from tests.support.certificates import Certificates

STORES: Final = Path(__file__).parent / "stores"
JKS: Final = {
    "ssl.keystore.type": "JKS",
    "ssl.keystore.location": str(STORES / "k.jks"),
    "ssl.keystore.password": "storepass",
    "ssl.key.password": "keypass1",
}
PKCS12: Final = {
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.location": str(STORES / "k.p12"),
    "ssl.keystore.password": "storepass",
}
TRUST: Final = {
    "JKS": {
        "ssl.truststore.type": "JKS",
        "ssl.truststore.location": str(STORES / "t.jks"),
        "ssl.truststore.password": "trustpass",
    },
    "PKCS12": {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(STORES / "t.p12"),
        "ssl.truststore.password": "trustpass",
    },
}


NO_KEY: Final = {
    "ssl.keystore.location": str(STORES / "t.p12"),
    "ssl.keystore.password": "trustpass",
}
NO_TRUST: Final = {
    "ssl.truststore.type": "JKS",
    "ssl.truststore.location": str(STORES / "k.jks"),
    "ssl.truststore.password": "storepass",
}
INLINE: Final = {"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"}
ECDSA: Final = "TLS_ECDHE_ECDSA_WITH_"
NEWER: Final = "TLS_AES_256_GCM_SHA384"


def without(options: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in options.items() if key != name}


def context_of(**options: str) -> ssl.SSLContext:
    return listener_tls(ListenerSecurityOptions.parse(dict(options))).context


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """
    The version of TLS that both agree on.

    Raises:
        ssl.SSLError: they do not agree.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return ends[0].version()


@pytest.mark.parametrize("store", [JKS, PKCS12])
@pytest.mark.parametrize("trust", TRUST)
def test_java_keystores_are_accepted(store: dict[str, str], trust: str) -> None:
    server = context_of(**store, **TRUST[trust])

    assert "TLSv1.3" == shake_hands(server, client_context())


def client_context() -> ssl.SSLContext:
    certificates = jks_certificates((STORES / "t.jks").read_bytes(), "trustpass")
    return ssl.create_default_context(cadata=certificates)


def test_pem_may_be_given_in_the_options(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    text = certificates.broker.read_text()
    end = "-----END CERTIFICATE-----"
    key, chain = text[: text.index("-----BEGIN CERT")], text[text.index("-----BEGIN CERT") :]
    in_one_line = chain[: chain.index(end) + len(end)].replace("\n", " ")

    server = context_of(
        **{
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": key.replace("\n", " "),
            "ssl.keystore.certificate.chain": in_one_line,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": certificates.ca.read_text(),
        }
    )

    assert "TLSv1.3" == shake_hands(server, certificates.context())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "ssl.keystore.location is required"),
        ({**JKS, "ssl.keystore.location": "/nowhere"}, "/nowhere cannot be read: No such file"),
        ({**JKS, "ssl.keystore.location": "/"}, "/ cannot be read: Is a directory"),
        ({**JKS, "ssl.keystore.password": "no"}, "k.jks: the password is wrong"),
        ({**JKS, "ssl.key.password": "no"}, "k.jks: the password of the private key is wrong"),
        ({**JKS, "ssl.keystore.type": "PKCS12"}, "k.jks: it is no PKCS12 store"),
        ({**JKS, "ssl.keystore.type": "PEM"}, "ssl.keystore.password is not for PEM"),
        ({**PKCS12, "ssl.keystore.password": "no"}, "k.p12: it is no PKCS12 store, or"),
        ({**PKCS12, "ssl.keystore.type": "JKS"}, "k.p12: it is no JKS store"),
        ({**PKCS12, **NO_KEY}, "t.p12: it has no private key"),
        ({**PKCS12, "ssl.keystore.type": "BKS"}, "String must be one of: JKS, PKCS12, PEM"),
        ({**PKCS12, **without(TRUST["JKS"], "ssl.truststore.password")}, "password is required"),
        ({**PKCS12, **NO_TRUST}, "k.jks: it has no trusted certificate"),
        (INLINE, "have to be set together"),
        ({**INLINE, "ssl.keystore.certificate.chain": "y"}, "it has 0 private keys"),
        ({**PKCS12, "ssl.keystore.key": "x"}, "ssl.keystore.location is set, and"),
        ({**PKCS12, "ssl.enabled.protocols": "TLSv1"}, "String must be one of: TLSv1.2, TLSv1.3"),
        ({**PKCS12, "ssl.cipher.suites": "TLS_NULL"}, "OpenSSL has no such cipher suite"),
        ({**PKCS12, "ssl.client.auth": "maybe"}, "String must be one of: required"),
    ],
)
def test_unusable_keystore_is_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        context_of(**options)

    assert "storepass" not in str(refused.value)


def test_damaged_keystores_are_refused(tmp_path: Path) -> None:
    for name, options in (("k.jks", JKS), ("k.p12", PKCS12)):
        data = (STORES / name).read_bytes()
        for at in range(0, len(data), 7):
            damaged = tmp_path / name
            damaged.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
            with pytest.raises(ConfigError):
                context_of(**{**options, "ssl.keystore.location": str(damaged)})
            damaged.write_bytes(data[:at])
            with pytest.raises(ConfigError):
                context_of(**{**options, "ssl.keystore.location": str(damaged)})


def test_certificate_that_openssl_refuses_is_reported_with_its_reason() -> None:
    text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": text}

    with pytest.raises(ConfigError, match="a certificate cannot be used: no start line"):
        context_of(**PKCS12, **trust)


def test_clients_are_trusted_as_the_system_does_without_a_trust_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = Certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca))
    options = without(certificates.settings(), "ssl.truststore.location")

    assert 1 == len(context_of(**options, **{"ssl.client.auth": "required"}).get_ca_certs())


@pytest.mark.parametrize(
    ("suites", "version", "cipher"),
    [
        (f"{ECDSA}AES_128_GCM_SHA256", "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        (f"{ECDSA}CHACHA20_POLY1305_SHA256", "TLSv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        (NEWER, "TLSv1.3", NEWER),
        (f"{ECDSA}AES_128_GCM_SHA256,{NEWER}", "TLSv1.3", NEWER),
    ],
)
def test_cipher_suites_are_selected_by_name(suites: str, version: str, cipher: str) -> None:
    server = context_of(**PKCS12, **TRUST["JKS"], **{"ssl.cipher.suites": suites})

    client = client_context()

    assert version == shake_hands(server, client)
    assert cipher in {each["name"] for each in server.get_ciphers()}


def test_disabled_tls_version_is_refused() -> None:
    server = context_of(**PKCS12, **TRUST["JKS"], **{"ssl.enabled.protocols": "TLSv1.3"})
    client = client_context()
    client.maximum_version = ssl.TLSVersion.TLSv1_2

    with pytest.raises(ssl.SSLError):
        shake_hands(server, client)
