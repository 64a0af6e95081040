"""
A broker for each test of a ``unittest.TestCase``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal
from unittest import TestCase

from barnabas.testing.broker import Broker
from barnabas.testing.defaults import Config


class KafkaBrokerMixin(TestCase):
    """
    Gives each test a broker of its own, in ``self.kafka_broker``::

        class TestOrders(KafkaBrokerMixin, unittest.TestCase):
            kafka_topics = {"orders": 3}

    A class for asynchronous tests puts it in front of ``unittest.IsolatedAsyncioTestCase``.
    """

    kafka_config: ClassVar[Config] = {}
    """Options of the broker."""
    kafka_topics: ClassVar[Mapping[str, int] | Sequence[str]] = ()
    """Topics to create, with their numbers of partitions."""
    kafka_clock: ClassVar[Literal["running", "still"]] = "running"
    """Whether the clock runs with real time."""

    kafka_broker: Broker

    def setUp(self) -> None:
        super().setUp()
        self.kafka_broker = self.enterContext(
            Broker(config=self.kafka_config, topics=self.kafka_topics, clock=self.kafka_clock)
        )
