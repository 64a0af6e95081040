from __future__ import annotations

import asyncio
import unittest

from barnabas.testing.unittest import KafkaBrokerMixin


class TestSynchronous(KafkaBrokerMixin, unittest.TestCase):
    kafka_topics = {"orders": 3}  # noqa: RUF012  # as a user writes it
    kafka_config = {"num.partitions": 2}  # noqa: RUF012  # the same

    def test_unittest_broker_has_the_given_topics(self) -> None:
        assert 3 == self.kafka_broker.topic("orders").partitions

    def test_unittest_broker_has_the_given_options(self) -> None:
        assert 2 == self.kafka_broker.topic("other").create(-1).partitions


class TestAsynchronous(KafkaBrokerMixin, unittest.IsolatedAsyncioTestCase):
    async def test_unittest_broker_answers(self) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", self.kafka_broker.port)
        writer.close()
