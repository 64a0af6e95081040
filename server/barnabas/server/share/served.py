"""
The share-partitions of this broker.
"""

from __future__ import annotations

from typing import TypeAlias

from barnabas.coordination.share.partition import SharePartition
from barnabas.server.partitions.partition import Partition

ServedSharePartition: TypeAlias = SharePartition[Partition]
"""
A share-partition whose records are in the log of a partition here.
"""
