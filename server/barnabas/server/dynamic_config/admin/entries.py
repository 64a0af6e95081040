"""
The description of one option.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.server.dynamic_config.brokers import ConfigSource, ConfigValue
from barnabas.storage.config.option_values import Option, OptionType

UNKNOWN_TYPE: Final = 0


@struct(kw_only=True)
class ConfigEntry:
    """
    One option of a resource: its value, the source of that, and its type.
    """

    name: str
    value: str | None
    source: ConfigSource
    synonyms: Sequence[ConfigValue] = ()  # all values by precedence, the most specific first
    read_only: bool = False
    is_sensitive: bool = False
    type: int = UNKNOWN_TYPE
    documentation: str | None = ""

    @classmethod
    def of(
        cls,
        option: Option,
        value: str | None,
        synonyms: Sequence[ConfigValue],
        *,
        read_only: bool = False,
    ) -> ConfigEntry:
        """
        The entry of a known option, whose source is that of the first of its *synonyms*.
        """
        is_secret = option.type is OptionType.PASSWORD
        if is_secret:
            synonyms = [synonym._replace(value=None) for synonym in synonyms]
        return cls(
            name=option.name,
            value=None if is_secret else value,
            source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
            synonyms=synonyms,
            read_only=read_only,
            is_sensitive=is_secret,
            type=option.type,
            documentation=option.doc,
        )
