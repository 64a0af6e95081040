"""
Options of TLS and SASL, of the broker and of each of its listeners.

Each of them can be set for one listener: ``listener.name.<name in lower case>.<option>`` comes
before ``<option>`` (Kafka ``AbstractConfig.valuesWithPrefixOverride``). Options of one mechanism on
one listener have the mechanism in their prefix, too:
``listener.name.<name>.<mechanism in lower case>.sasl.jaas.config``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.storage.config.option_values import Update
from barnabas.storage.config.options import (
    Bool,
    Class,
    Int,
    Long,
    Names,
    Options,
    Password,
    Text,
    option,
    section,
    table,
)
from barnabas.storage.units import HOURS, KiB

LISTENER_PREFIX: Final = "listener.name."
STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")


@section
class SecurityOptions(Options):
    """
    TLS and SASL.
    """

    sasl_enabled_mechanisms: Names = option(
        ("GSSAPI",),
        "The SASL mechanisms that clients may choose: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, "
        "OAUTHBEARER.",
        update=Update.PER_BROKER,
    )
    sasl_jaas_config: Password | None = option(
        None,
        "The users of PLAIN; only with the prefix listener.name.<listener>.<mechanism>.",
        update=Update.PER_BROKER,
    )
    sasl_server_max_receive_size: Int = option(
        512 * KiB, "The largest request of a client that has not authenticated.", at_least=1
    )
    connections_max_reauth_ms: Long = option(
        0,
        "Close the connection of a client that does not authenticate again within this time; 0 "
        "never does.",
        at_least=0,
    )
    sasl_server_callback_handler_class: Class | None = option(
        None,
        "OAuthBearerValidatorCallbackHandler of Apache Kafka verifies the signatures of "
        "OAUTHBEARER's tokens; without it tokens have none.",
    )
    sasl_oauthbearer_jwks_endpoint_url: Text | None = option(
        None, "The keys of the issuer of tokens, as JSON Web Key Set: https:// or file://."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: Long = option(
        HOURS, "The age at which these keys are fetched again."
    )
    sasl_oauthbearer_expected_audience: Names = option(
        (), "A token has to be for one of these audiences; empty for any."
    )
    sasl_oauthbearer_expected_issuer: Text | None = option(
        None, "A token has to be of this issuer; empty for any."
    )
    sasl_oauthbearer_clock_skew_seconds: Int = option(
        30, "How far the clocks of issuer and broker may be apart."
    )
    sasl_oauthbearer_sub_claim_name: Text = option(
        "sub", "The claim of a token with the name of its user."
    )
    connection_failed_authentication_delay_ms: Int = option(
        100, "How long a client that failed to authenticate waits for its answer.", at_least=0
    )
    ssl_enabled_protocols: Names = option(
        ("TLSv1.2", "TLSv1.3"),
        "The versions of TLS.",
        one_of=("TLSv1.2", "TLSv1.3"),
        update=Update.PER_BROKER,
    )
    ssl_cipher_suites: Names = option(
        (),
        "The cipher suites by their IANA names; empty for those of OpenSSL.",
        update=Update.PER_BROKER,
    )
    ssl_client_auth: Text = option(
        "none",
        "Whether clients have to present a certificate.",
        one_of=("required", "requested", "none"),
        update=Update.PER_BROKER,
    )
    ssl_principal_mapping_rules: Text = option(
        "DEFAULT",
        "How the subject of a client's certificate becomes a principal: rules "
        "RULE:pattern/replacement/[LU], separated by commas, or DEFAULT.",
    )
    ssl_keystore_type: Text = option(
        "JKS", "The format of the key store.", one_of=STORE_TYPES, update=Update.PER_BROKER
    )
    ssl_keystore_location: Text | None = option(
        None, "The file with the broker's key and certificates.", update=Update.PER_BROKER
    )
    ssl_keystore_password: Password | None = option(
        None, "The password of a JKS or PKCS12 key store.", update=Update.PER_BROKER
    )
    ssl_keystore_key: Password | None = option(
        None, "The broker's key as PEM, in place of a file.", update=Update.PER_BROKER
    )
    ssl_keystore_certificate_chain: Password | None = option(
        None, "The broker's certificates as PEM, its own one first.", update=Update.PER_BROKER
    )
    ssl_allow_dn_changes: Bool = option(
        False, "Whether a new key store may have a certificate for another subject."
    )
    ssl_allow_san_changes: Bool = option(
        False,
        "Whether the certificate of a new key store may lack subject alternative names of the old "
        "one.",
    )
    ssl_key_password: Password | None = option(
        None, "The password of the key, if it has one of its own.", update=Update.PER_BROKER
    )
    ssl_truststore_type: Text = option(
        "JKS", "The format of the trust store.", one_of=STORE_TYPES, update=Update.PER_BROKER
    )
    ssl_truststore_location: Text | None = option(
        None,
        "The file with the certificates that clients' ones are verified by.",
        update=Update.PER_BROKER,
    )
    ssl_truststore_password: Password | None = option(
        None, "The password of a JKS or PKCS12 trust store.", update=Update.PER_BROKER
    )
    ssl_truststore_certificates: Password | None = option(
        None,
        "The certificates of the trust store as PEM, in place of a file.",
        update=Update.PER_BROKER,
    )


@table
class ListenerSecurityOptions(SecurityOptions):
    """
    What holds for one listener.
    """


def listener_options(
    name: str, texts: Mapping[str, str | None], mechanism: str = ""
) -> ListenerSecurityOptions:
    """
    The options of the listener *name*: those with its prefix before those of the broker, and those
    with the *mechanism* in the prefix before these.

    Raises:
        InvalidValue: a value is not of its option's type or range.
    """
    known = ListenerSecurityOptions.options()
    prefix = listener_prefix(name)
    values = {option: texts[option] for option in known if option in texts}
    for start in (prefix, f"{prefix}{mechanism.lower()}.") if mechanism else (prefix,):
        for full, text in texts.items():
            option = full.removeprefix(start)
            if full.startswith(start) and option in known:
                values[option] = text
    return ListenerSecurityOptions.parse(values)


def is_taken_while_running(name: str) -> bool:
    """
    Whether a running broker takes a new value of an option with the prefix of a listener: stores,
    users, mechanisms, and the number and rate of connections (KIP-226, 612). The others are read at
    the start.
    """
    return name.endswith((".max.connection.creation.rate", ".max.connections")) or any(
        name.endswith(f".{option.name}") and option.update is not Update.READ_ONLY
        for option in SecurityOptions.options().values()
    )


def listener_prefix(name: str) -> str:
    """
    The beginning of the names of a listener's own options.
    """
    return f"{LISTENER_PREFIX}{name.lower()}."
