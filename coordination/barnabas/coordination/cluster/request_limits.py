"""
Limits of a request that changes the metadata.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Final

from barnabas.protocol.codec.primitives import utf8_size
from barnabas.protocol.errors import InvalidConfig, PolicyViolation

MAX_RECORDS_PER_REQUEST: Final = 10_000
MAX_CONFIG_VALUE_LENGTH: Final = 32_767


def check_size(records: Sized) -> None:
    """
    Check the number of records, or of topics, of one request (Kafka's ``QuorumController``).

    Raises:
        PolicyViolation: there are too many.
    """
    if len(records) > MAX_RECORDS_PER_REQUEST:
        raise PolicyViolation("Unable to perform excessively large batch operation.")


def check_config_value(value: str) -> None:
    """
    Check the size of a config (Kafka's ``ConfigurationControlManager``). Kafka counts characters
    and fails later, as no string of a record may have more bytes.

    Raises:
        InvalidConfig: it is too long.
    """
    if utf8_size(value) > MAX_CONFIG_VALUE_LENGTH:
        raise InvalidConfig(
            "The configuration value cannot be added because it exceeds the maximum value size of"
            f" {MAX_CONFIG_VALUE_LENGTH} bytes."
        )
