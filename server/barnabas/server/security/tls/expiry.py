"""
Whether the certificates of listeners end soon.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Final

from barnabas.server.security.tls.certificate import Certificate
from barnabas.server.security.tls.context import ListenerTls
from barnabas.storage.units import DAYS

logger = logging.getLogger(__name__)

WARNED_MS: Final = 30 * DAYS
"""
How long before its end a certificate is warned of.
"""


def first_to_end(tls: ListenerTls) -> Certificate:
    """
    The certificate of the listener's chain that ends first: clients refuse all of it then.
    """
    return min(tls.chain, key=lambda each: each.ends_ms)


def warn_of_expiry(listener: str, tls: ListenerTls, now_ms: int) -> None:
    """
    Log whether a certificate of the *listener* has ended, or ends soon.
    """
    certificate = first_to_end(tls)
    left_ms = certificate.ends_ms - now_ms
    if left_ms > WARNED_MS:
        return
    moment = datetime.fromtimestamp(certificate.ends_ms / 1000, UTC)
    what = (listener, certificate.subject, f"{moment:%Y-%m-%d %H:%M} UTC")
    if left_ms <= 0:
        logger.error("listener %s: the certificate of %s has ended at %s; clients refuse it", *what)
    else:
        days = max(0, left_ms // DAYS)
        logger.warning("listener %s: the certificate of %s ends at %s, in %d days", *what, days)
