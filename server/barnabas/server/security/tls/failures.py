"""
Why a TLS handshake has failed, for people who read the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ssl import SSLError

_SENTENCES: Final = {
    "HTTP_REQUEST": "an HTTP request on the listener {listener}, which speaks Kafka's protocol in"
    " TLS",
    "HTTPS_PROXY_REQUEST": "an HTTP request on the listener {listener}, which speaks Kafka's"
    " protocol in TLS",
    "WRONG_VERSION_NUMBER": "the client does not speak TLS, and the listener {listener} does",
    "PACKET_LENGTH_TOO_LONG": "the client does not speak TLS, and the listener {listener} does",
    "UNSUPPORTED_PROTOCOL": "the client speaks no version of TLS that ssl.enabled.protocols has",
    "NO_SHARED_CIPHER": "the client has no cipher suite of the listener {listener}",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has no certificate, and ssl.client.auth"
    " requires one",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the certificate of the listener"
    " {listener}",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not accept the certificate of the listener"
    " {listener}",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept the certificate of the listener"
    " {listener}",
}


def handshake_failure(error: SSLError, listener: str) -> str:
    """
    What the log says of an *error* in a handshake on a *listener*.
    """
    verdict = getattr(error, "verify_message", None)
    if verdict:
        return f"its certificate is refused: {verdict}"
    reason = error.reason or str(error)
    sentence = _SENTENCES.get(reason)
    if sentence is not None:
        return sentence.format(listener=listener)
    return f"its TLS handshake failed: {reason.replace('_', ' ').lower()}"
