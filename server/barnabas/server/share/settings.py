"""
What the configs of a group say about its records (Kafka ``ShareGroupConfigProvider``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from barnabas.protocol.structs import struct
from barnabas.server.config.share import SharePartitionOptions
from barnabas.storage.log.fetch_isolation import FetchIsolation

_READ_COMMITTED: Final = "read_committed"
_MOST_KEPT: Final = 1000

GroupTexts: TypeAlias = Callable[[str], Mapping[str, str]]
"""
Returns the configs that are stored for a group, by name.
"""


@struct(kw_only=True)
class ShareGroupSettings:
    """
    The settings of one group.
    """

    record_lock_duration_ms: int
    delivery_count_limit: int
    max_record_locks: int
    auto_offset_reset: str
    isolation: FetchIsolation
    may_renew: bool


class ShareSettings:
    """
    The settings of all groups: their own configs, within the bounds of the broker's options, and
    those options for the rest.
    """

    def __init__(self, options: SharePartitionOptions, texts: GroupTexts) -> None:
        self._options = options
        self._texts = texts
        self._known: dict[tuple[tuple[str, str], ...], ShareGroupSettings] = {}

    def of(self, group_id: str) -> ShareGroupSettings:
        """
        The settings of a group, as they are now.
        """
        texts = self._texts(group_id)
        key = tuple(texts.items())
        settings = self._known.get(key)
        if settings is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            settings = self._known[key] = self._settings(texts)
        return settings

    def _settings(self, texts: Mapping[str, str]) -> ShareGroupSettings:
        def number(name: str) -> int:
            attribute = name.replace(".", "_")
            options = self._options
            text = texts.get(f"share.{name}")
            value: int = getattr(options, f"group_share_{attribute}")
            if text is None:
                return value
            least: int = getattr(options, f"group_share_min_{attribute}")
            most: int = getattr(options, f"group_share_max_{attribute}")
            return max(least, min(most, int(text)))

        is_committed = texts.get("share.isolation.level", "").lower() == _READ_COMMITTED
        return ShareGroupSettings(
            record_lock_duration_ms=number("record.lock.duration.ms"),
            delivery_count_limit=number("delivery.count.limit"),
            max_record_locks=number("partition.max.record.locks"),
            auto_offset_reset=texts.get("share.auto.offset.reset", "latest").lower(),
            isolation=(
                FetchIsolation.TXN_COMMITTED if is_committed else FetchIsolation.HIGH_WATERMARK
            ),
            may_renew=texts.get("share.renew.acknowledge.enable", "true").lower() == "true",
        )
