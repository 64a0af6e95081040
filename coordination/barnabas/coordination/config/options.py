"""
The options of all coordinators.
"""

from __future__ import annotations

from barnabas.coordination.config.coordinators import GroupOptions, TransactionOptions
from barnabas.coordination.config.group_protocols import (
    ConsumerProtocolOptions,
    ShareProtocolOptions,
    StreamsProtocolOptions,
)
from barnabas.coordination.config.share import ShareCoordinatorOptions, SharePartitionOptions
from barnabas.storage.config.options import section


@section
class CoordinatorOptions(
    GroupOptions,
    ConsumerProtocolOptions,
    ShareProtocolOptions,
    StreamsProtocolOptions,
    TransactionOptions,
    SharePartitionOptions,
    ShareCoordinatorOptions,
):
    """
    The sections that coordinators read.
    """
