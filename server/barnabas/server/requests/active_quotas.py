"""
Whether there are quotas of clients.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.server.requests.request_quotas import RequestQuotas


class ActiveQuotas:
    """
    Has the quotas of clients while there are any.

    Every request asks for them: of an object of a compiled class that is a few instructions.
    """

    __slots__ = ("current",)

    def __init__(self) -> None:
        self.current: RequestQuotas | None = None
