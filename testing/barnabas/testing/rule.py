"""
A rule by which a broker fails requests.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


class Kind(Enum):
    """
    What happens to a request.
    """

    FAIL = "fail"
    DELAY = "delay"
    DROP = "drop"
    CLOSE = "close"
    HANG = "hang"
    THROTTLE = "throttle"


class Rule(NamedTuple):
    """
    Which requests a fault meets, and how.
    """

    kind: Kind
    api: str
    """The name of the API, such as Produce."""
    error: ErrorCode = ErrorCode.NONE
    """In the answer, of FAIL."""
    seconds: float = 0.0
    """Real time before the work, of DELAY; of silence that is asked for, of THROTTLE."""
    times: int | None = None
    """How many requests; None is all."""
    client_id: str | None = None
    """Of the client; None is any."""
    topic: str | None = None
    """That the request names; None is any."""
