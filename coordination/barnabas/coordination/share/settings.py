"""
What the configuration of a group says about its records (Kafka ``ShareGroupConfigProvider``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.structs import struct
from barnabas.storage.log.fetch_isolation import FetchIsolation

if TYPE_CHECKING:
    from barnabas.coordination.config.groups import GroupConfig, GroupConfigOf

_READ_COMMITTED: Final = "read_committed"
_MOST_KEPT: Final = 1000


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
    The settings of all groups, made once for each configuration.
    """

    def __init__(self, config_of: GroupConfigOf) -> None:
        self._config_of = config_of
        self._known: dict[int, tuple[GroupConfig, ShareGroupSettings]] = {}

    def of(self, group_id: str) -> ShareGroupSettings:
        """
        The settings of a group, as they are now.
        """
        config = self._config_of(group_id)
        known = self._known.get(id(config))
        if known is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            # The configuration is kept as well, so that no other one gets its identity.
            known = self._known[id(config)] = (config, _settings(config))
        return known[1]


def _settings(config: GroupConfig) -> ShareGroupSettings:
    is_committed = config.share_isolation_level.lower() == _READ_COMMITTED
    return ShareGroupSettings(
        record_lock_duration_ms=config.share_record_lock_duration_ms,
        delivery_count_limit=config.share_delivery_count_limit,
        max_record_locks=config.share_partition_max_record_locks,
        auto_offset_reset=config.share_auto_offset_reset.lower(),
        isolation=FetchIsolation.TXN_COMMITTED if is_committed else FetchIsolation.HIGH_WATERMARK,
        may_renew=config.share_renew_acknowledge_enable,
    )
