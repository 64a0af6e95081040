"""
The protocols of groups: whether members may use them, and who sends a request.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from barnabas.coordination.cluster.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.security.acl.permissions import DESCRIBE_TOPIC
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.server.requests.context import RequestContext

_FEATURES: Final = {
    GroupType.CONSUMER: GROUP_VERSION,
    GroupType.SHARE: SHARE_VERSION,
    GroupType.STREAMS: STREAMS_VERSION,
}


def check_protocol(context: RequestContext, protocol: GroupType) -> None:
    """
    See whether members of groups may use a protocol. The broker's configuration may leave out that
    of consumer groups and that of streams groups; share groups follow their feature alone.

    Raises:
        UnsupportedVersion: the feature is off, or the configuration leaves the protocol out.
    """
    broker, feature = context.broker, _FEATURES[protocol]
    if not broker.image.feature_levels.get(feature, 0):
        raise UnsupportedVersion(f"{feature} is 0: `kafka-features upgrade` sets it to 1.")
    if protocol is GroupType.SHARE:
        return
    if protocol.value not in broker.config.group_coordinator_rebalance_protocols:
        raise UnsupportedVersion(
            f"group.coordinator.rebalance.protocols of this broker leaves out {protocol.value}."
        )


def caller_of(context: RequestContext) -> Caller:
    """
    The sender, as groups know it.
    """
    return Caller(
        context.version,
        context.client_id or "",
        f"/{context.client.address}",
        partial(context.sees, DESCRIBE_TOPIC),
    )
