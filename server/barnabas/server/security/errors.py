"""
Why a client is not authenticated.
"""

from __future__ import annotations

from typing import Final

OTHER_USER: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
"""
What a client is told that would act for another user.
"""


class AuthenticationFailed(Exception):
    """
    A client is not who it says it is.

    Args:
        reason: for the log of the broker.
        message: for the client, where Kafka tells it more than that it has failed.
    """

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(reason)
        self.message = message
