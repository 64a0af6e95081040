"""
``__share_group_state``: how far the members of a share group are.
"""

from __future__ import annotations

from barnabas.protocol.internal_topics.share_state_records import RECORDS
from barnabas.storage.dump.decoders.coordinator import CoordinatorDecoder


class ShareStateDecoder(CoordinatorDecoder):
    def __init__(self) -> None:
        super().__init__(RECORDS)
