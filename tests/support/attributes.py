"""
The attributes of an object, compared by name.
"""

from __future__ import annotations

from typing import Any


def assert_has(found: object, **expected: Any) -> None:
    """
    Fail unless the object has these values under these names.
    """
    assert expected == {name: getattr(found, name) for name in expected}
