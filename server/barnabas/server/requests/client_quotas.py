"""
The client quotas that the metadata log has, and the parts of a broker that keep to them.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from barnabas.protocol.internal_topics.metadata_records import ClientQuotaRecord
from barnabas.server.security.host_address import host_address, is_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.server.requests.request_quotas import RequestQuotas


class ClientQuotas:
    """
    Quotas of users and clients meter requests; quotas of addresses limit new connections.
    """

    def __init__(
        self, parts: BrokerParts, limit_address_rate: Callable[[str | None, float | None], object]
    ) -> None:
        """
        Args:
            limit_address_rate: limits the new connections of an address, or of each address that
                has no limit of its own (None), to so many a second; None takes the limit away.
        """
        self._parts = parts
        self._limit_address_rate = limit_address_rate
        self._quotas: RequestQuotas | None = None

    def follow(self) -> None:
        """
        Let the quotas of the metadata count as they are, and as they change.
        """
        image = self._parts.image
        for record in image.kept.of_type(ClientQuotaRecord):
            assert isinstance(record, ClientQuotaRecord)
            self._change(record)
        image.on_client_quota = self._change

    def _change(self, record: ClientQuotaRecord) -> None:
        # Few brokers have any.
        from barnabas.coordination.cluster.client_quotas import IP, names_of, value_of  # noqa: PLC0415
        from barnabas.server.requests.request_quotas import RequestQuotas  # noqa: PLC0415

        parts = self._parts
        if self._quotas is None:
            self._quotas = RequestQuotas(parts.config, parts.clock, parts.metrics)
        names = names_of(record)
        if IP in names:
            self._limit_address(names[IP], value_of(record))
            return
        self._quotas.change(names, record.key, value_of(record))
        parts.quotas.current = self._quotas if self._quotas.are_any else None

    def _limit_address(self, name: str | None, rate: float | None) -> None:
        """
        Let a quota on the connections of an address, or of a host with that name, count.
        """
        if name is None or is_address(name):
            address = None if name is None else host_address(name)
            self._limit_address_rate(address, rate)
        else:
            self._parts.background.spawn("quota-host", self._limit_host(name, rate))

    async def _limit_host(self, name: str, rate: float | None) -> None:
        def resolve() -> str:
            *_, (address, *_) = socket.getaddrinfo(name, None)[0]
            return str(address)

        address = await self._parts.workers.in_upkeep(resolve)
        self._limit_address_rate(host_address(address), rate)
