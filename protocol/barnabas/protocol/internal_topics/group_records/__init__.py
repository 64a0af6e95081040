"""
Records of ``__consumer_offsets``: committed offsets, and groups of all protocols.

Key and value begin with an int16: the type of the record, and the version of its value. A key is of
version 0 and never flexible. A record without a value deletes what had its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.internal_topics.group_records import classic, consumer, share, streams
from barnabas.protocol.internal_topics.group_records.classic import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

__all__ = [
    "RECORDS",
    "GroupMetadataKey",
    "GroupMetadataValue",
    "LegacyOffsetCommitKey",
    "LegacyOffsetCommitValue",
    "MemberMetadata",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "consumer",
    "share",
    "streams",
]

RECORDS: Final[Mapping[int, tuple[type[Message], type[Message]]]] = {
    key.api.key: (key, vars(module)[f"{name.removesuffix('Key')}Value"])
    for module in (classic, consumer, share, streams)
    for name, key in vars(module).items()
    if name.endswith("Key")
}
"""
The classes of key and value by the type of the record.
"""
