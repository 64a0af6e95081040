"""
The extra ``http``.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

NEEDED: Final = ("starlette", "uvicorn")


class MissingExtra(Exception):
    """
    The packages that HTTP needs are not installed.
    """


def require_http(*more: str) -> None:
    """
    Check that the packages are there.

    Args:
        more: packages of the extra that not every HTTP server needs.

    Raises:
        MissingExtra: one is not; the sentence says how to install it.
    """
    missing = [name for name in (*NEEDED, *more) if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"{' and '.join(missing)} cannot be found: pip install 'barnabas[http]'")
