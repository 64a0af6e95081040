"""
Options of delegation tokens.
"""

from __future__ import annotations

from barnabas.storage.config.options import Long, Options, Password, option, section
from barnabas.storage.units import DAYS, HOURS


@section
class DelegationTokenOptions(Options):
    """
    Delegation tokens (KIP-48).
    """

    delegation_token_secret_key: Password | None = option(
        None, "The key that delegation tokens are made with; without it there are none."
    )
    delegation_token_max_lifetime_ms: Long = option(
        7 * DAYS, "How long a delegation token can be renewed.", at_least=1
    )
    delegation_token_expiry_time_ms: Long = option(
        DAYS, "How long a delegation token is valid, unless it is renewed.", at_least=1
    )
    delegation_token_expiry_check_interval_ms: Long = option(
        HOURS, "How often delegation tokens are removed that have expired.", at_least=1
    )
