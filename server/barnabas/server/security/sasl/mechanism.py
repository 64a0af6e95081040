"""
What a SASL mechanism does on the broker's side of a connection.
"""

from __future__ import annotations

from typing import Protocol


class SaslServer(Protocol):
    """
    One exchange of tokens with a client.
    """

    @property
    def user(self) -> str | None:
        """
        The name of the client, once it has proved it.
        """

    @property
    def expires_ms(self) -> int | None:
        """
        When the credential ends, in ms since 1970 UTC; None if it does not.
        """

    @property
    def is_by_token(self) -> bool:
        """
        Whether the credential is a delegation token.
        """

    def evaluate(self, token: bytes) -> bytes:
        """
        Take the client's next token, and return the broker's.

        Raises:
            AuthenticationFailed: the client is not who it says it is, or the token is malformed.
            NeedsWork: the same token has to be evaluated once more, after some work.
        """
