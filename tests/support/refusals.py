"""
Refusals in responses and errors.
"""

from __future__ import annotations

from types import NoneType
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.codec.schema import fields
from barnabas.protocol.errors import KafkaError


def codes(answer: Any, version: int) -> list[int]:
    if isinstance(answer, list):
        return [code for each in answer for code in codes(each, version)]
    if isinstance(answer, int | str | bytes | memoryview | UUID | NoneType):
        return []
    found: list[int] = []
    for field in fields(type(answer)):
        if field.is_in(version):
            value = getattr(answer, field.name)
            is_code = field.name.endswith("error_code")
            found += [value] if is_code else codes(value, version)
    return found


def refusal(call: Any) -> tuple[type[KafkaError], str]:
    with pytest.raises(KafkaError) as refused:
        call()
    return type(refused.value), str(refused.value)
