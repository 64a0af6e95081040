"""
The TLS settings of a listener, as OpenSSL has them.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.server.config.security import ListenerSecurityOptions
from barnabas.server.security.files import read_file
from barnabas.server.security.tls import stores
from barnabas.server.security.tls.certificate import Certificate
from barnabas.server.security.tls.cipher_suites import openssl_names
from barnabas.storage.config.option_values import ConfigError, InvalidValue

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


@struct
class ListenerTls:
    """
    The context of a listener, and what is in its key store.
    """

    context: ssl.SSLContext
    entries: int
    """How many entries the key store has."""
    chain: list[Certificate]
    """The broker's certificate, and those that lead to its authority."""


def listener_tls(options: ListenerSecurityOptions) -> ListenerTls:
    """
    The TLS of a listener.

    Raises:
        ConfigError: a store cannot be used, or options do not fit one another.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = [_VERSIONS[name] for name in options.ssl_enabled_protocols]
    if not versions:
        raise InvalidValue("ssl.enabled.protocols", "", "a version of TLS is required")
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    # What a peer could make the broker compute again and again.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _choose_ciphers(context, options)
    store = _key_store(options)
    _load_key(context, store, options)
    _load_trust(context, options)
    with _named(_origin(options, "keystore")):
        return ListenerTls(context, store.entries, store.certificates())


def check_replacement(old: ListenerTls, new: ListenerTls, options: ListenerSecurityOptions) -> None:
    """
    Check that clients which know the listener by its old certificate know it by the new one as well
    (Kafka ``SslFactory.CertificateEntries``).

    Raises:
        ConfigError: they would not.
    """
    allows_dn, allows_san = options.ssl_allow_dn_changes, options.ssl_allow_san_changes
    before, after = old.chain[0], new.chain[0]
    if old.entries != new.entries and not (allows_dn and allows_san):
        raise ConfigError(f"the key store has {old.entries} entries, and the new one {new.entries}")
    if not allows_dn and _canonical(before.subject) != _canonical(after.subject):
        raise ConfigError(
            f"the certificate is for {before.subject}, and the new one for {after.subject};"
            " ssl.allow.dn.changes=true would allow it"
        )
    if not allows_san and not before.alternative_names <= after.alternative_names:
        raise ConfigError(
            "the new certificate lacks some subject alternative names of the old one;"
            " ssl.allow.san.changes=true would allow it"
        )


def _canonical(subject: str) -> str:
    """
    A subject without what makes no difference: the case of letters, and blanks at ends of values.
    """
    parts = subject.replace("\\ ", " ").casefold().split(",")
    return ",".join(" ".join(part.split()) for part in parts)


def _choose_ciphers(context: ssl.SSLContext, options: ListenerSecurityOptions) -> None:
    suites = [name for name in options.ssl_cipher_suites if name]
    if not suites:
        return
    older, has_newer = openssl_names(context, suites)
    if older:
        context.set_ciphers(":".join(older))
    elif not has_newer:
        raise InvalidValue("ssl.cipher.suites", ",".join(suites), "OpenSSL has none of them")
    # Which suites of TLS 1.3 there are cannot be chosen; whether there are any, can.
    if not has_newer:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise InvalidValue(
            "ssl.cipher.suites", ",".join(suites), "none is of an enabled version of TLS"
        )


def _load_key(
    context: ssl.SSLContext, store: stores.KeyStore, options: ListenerSecurityOptions
) -> None:
    try:
        with _readable(store.chain) as chain, _readable(store.key) as key:
            # Without a password OpenSSL would ask for it on the terminal.
            context.load_cert_chain(chain, key, password=lambda: store.password or "")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"{_origin(options, 'keystore')}: its key cannot be used: {_plain(error)}"
        ) from None


def _key_store(options: ListenerSecurityOptions) -> stores.KeyStore:
    kind, key, chain = (
        options.ssl_keystore_type,
        options.ssl_keystore_key,
        options.ssl_keystore_certificate_chain,
    )
    if key or chain:
        _check_inline(options, "keystore", kind, options.ssl_keystore_location)
        if not (key and chain):
            raise ConfigError(
                "ssl.keystore.key and ssl.keystore.certificate.chain have to be set together"
            )
        with _named("ssl.keystore.key"):
            return stores.pem_key_store(f"{key}\n{chain}", options.ssl_key_password)
    data = _read(options.ssl_keystore_location, "ssl.keystore.location")
    password = options.ssl_keystore_password
    with _named(str(options.ssl_keystore_location)):
        if kind == "PEM":
            _check_no_password("keystore", password)
            return stores.pem_key_store(data.decode("utf-8", "replace"), options.ssl_key_password)
        if kind == "PKCS12":
            return stores.pkcs12_key_store(data, password)
        if password is None:
            raise ConfigError("ssl.keystore.password is required for a JKS key store")
        return stores.jks_key_store(data, password, options.ssl_key_password)


def _load_trust(context: ssl.SSLContext, options: ListenerSecurityOptions) -> None:
    context.verify_mode = _CLIENT_AUTH[options.ssl_client_auth]
    certificates = _trusted(options)
    if certificates is not None:
        try:
            context.load_verify_locations(cadata=certificates)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"{_origin(options, 'truststore')}: a certificate cannot be used: {_plain(error)}"
            ) from None
    elif context.verify_mode is not ssl.CERT_NONE:
        # As in Java: those that the system trusts.
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)


def _trusted(options: ListenerSecurityOptions) -> str | None:
    kind, inline = options.ssl_truststore_type, options.ssl_truststore_certificates
    if inline:
        _check_inline(options, "truststore", kind, options.ssl_truststore_location)
        with _named("ssl.truststore.certificates"):
            return stores.pem_certificates(inline)
    if options.ssl_truststore_location is None:
        return None
    data = _read(options.ssl_truststore_location, "ssl.truststore.location")
    password = options.ssl_truststore_password
    with _named(options.ssl_truststore_location):
        if kind == "PEM":
            _check_no_password("truststore", password)
            return stores.pem_certificates(data.decode("utf-8", "replace"))
        if kind == "PKCS12":
            return stores.pkcs12_certificates(data, password)
        if password is None:
            raise ConfigError("ssl.truststore.password is required for a JKS trust store")
        return stores.jks_certificates(data, password)


def _check_inline(
    options: ListenerSecurityOptions, store: str, kind: str, location: str | None
) -> None:
    if location is not None:
        raise ConfigError(f"ssl.{store}.location is set, and the {store} itself as well")
    if kind != "PEM":
        raise InvalidValue(f"ssl.{store}.type", kind, "what is in the configuration is PEM")


def _check_no_password(store: str, password: str | None) -> None:
    if password is not None:
        raise ConfigError(
            f"ssl.{store}.password is not for PEM; ssl.key.password is that of an encrypted key"
        )


def _read(location: str | None, option: str) -> bytes:
    if location is None:
        raise ConfigError(f"{option} is required for TLS")
    try:
        return read_file(location)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{option}: {location} cannot be read: {reason}") from None


@contextmanager
def _named(origin: str) -> Iterator[None]:
    """
    Let an error say where the store is.
    """
    try:
        yield
    except stores.InvalidStore as error:
        raise ConfigError(f"{origin}: {error}") from None


def _origin(options: ListenerSecurityOptions, store: str) -> str:
    location = getattr(options, f"ssl_{store}_location")
    inline = "ssl.keystore.key" if store == "keystore" else "ssl.truststore.certificates"
    return str(location or inline)


def _plain(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return reason.replace("_", " ").lower() if reason else str(error)


@contextmanager
def _readable(text: str) -> Iterator[str]:
    """
    The name of a file with *text*, which OpenSSL wants: in memory only, where the system can.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("barnabas")
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(text.encode())
            file.flush()
            yield file.name
