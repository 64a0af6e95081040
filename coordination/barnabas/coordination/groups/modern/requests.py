"""
What is checked of every heartbeat of the later protocols.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

from barnabas.coordination.groups.group_type import GroupType
from barnabas.protocol.errors import FencedMemberEpoch, InvalidRequest

_TRIMMED: Final = "".join(map(chr, range(ord(" ") + 1)))
"""
What Java's ``String.trim`` removes.
"""


def check_text(name: str, text: str | None) -> None:
    """
    See whether a field has some text, if it is there.

    Raises:
        InvalidRequest: nothing is left of it after ``String.trim``.
    """
    if text is not None and not text.strip(_TRIMMED):
        raise InvalidRequest(f"{name} can't be empty.")


def fenced(kind: GroupType, epoch: int, known: int, more: str = "") -> FencedMemberEpoch:
    """
    The error for a member that is at another epoch.

    Args:
        known: the epoch that the group knows.
        more: the end of the sentence.
    """
    return FencedMemberEpoch(
        f"The {kind.value} group member has a {'greater' if epoch > known else 'smaller'} member"
        f" epoch ({epoch}) than the one known by the group coordinator ({known}){more}. The member"
        " must abandon all its partitions and rejoin."
    )
