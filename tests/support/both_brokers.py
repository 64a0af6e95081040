"""
Apache Kafka and Barnabas for one test: side by side, or in turn on one directory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from barnabas.protocol.codec.schema import Message
from tests.support.apache_kafka import ApacheKafka, class_path
from tests.support.broker_process import Barnabas, BrokerProcess, free_port
from tests.support.likeness import in_order, plain, without_common_sentences
from tests.support.wire_client import WireClient

PATIENCE = 60.0
NO_SETTINGS: Mapping[str, str] = {}


class BothBrokers(NamedTuple):
    """
    Both, running or not. As a context manager, it ends them and prints their last lines.

    Raises:
        PrerequisiteMissing: Apache Kafka cannot be had on this machine.
    """

    kafka: BrokerProcess
    barnabas: BrokerProcess

    @classmethod
    def side_by_side(
        cls,
        directory: Path,
        settings: Mapping[str, str] = NO_SETTINGS,
        *,
        of_barnabas: Mapping[str, str] = NO_SETTINGS,
        secured: Sequence[str] = (),
    ) -> Self:
        """
        Each has ports and a directory of its own.
        """
        class_path()
        return cls(
            ApacheKafka(directory / "kafka", settings=settings, secured=secured),
            Barnabas(directory / "barnabas", settings={**settings, **of_barnabas}, secured=secured),
        )

    @classmethod
    def in_turn(
        cls,
        directory: Path,
        settings: Mapping[str, str] = NO_SETTINGS,
        *,
        of_kafka: Mapping[str, str] = NO_SETTINGS,
    ) -> Self:
        """
        They share a port and a directory, so that each continues where the other stopped.
        """
        class_path()
        port = free_port()
        return cls(
            ApacheKafka(directory, port=port, settings={**settings, **of_kafka}),
            Barnabas(directory, port=port, settings=settings),
        )

    def start(self) -> Self:
        for broker in self:
            broker.start()
        return self

    def close(self) -> None:
        for broker in self:
            broker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        for path in sorted({broker.log_path for broker in self if broker.log_path.exists()}):
            print(path.read_text(errors="replace")[-8000:])


def check_answers(
    both: BothBrokers,
    requests: Iterable[tuple[Message, int]],
    *,
    prepared_by: Iterable[tuple[Message, int]],
    own: Container[str],
) -> None:
    """
    Compare the answers to *requests* whatever the order of their lists, but for common sentences
    and fields that are each broker's *own*.
    """
    asyncio.run(
        assert_answered_alike(
            both,
            requests,
            prepared_by=prepared_by,
            plain=lambda answer: plain(answer, own),
            as_ours=lambda kafkas, ours: in_order(without_common_sentences(ours, kafkas), ours),
        )
    )


async def assert_answered_alike(
    both: BothBrokers,
    requests: Iterable[tuple[Message, int]],
    *,
    prepared_by: Iterable[tuple[Message, int]],
    plain: Callable[[Any], Any],
    as_ours: Callable[[Any, Any], Any] = lambda kafkas, ours: kafkas,
) -> None:
    """
    Send *requests*, each in a version, to both brokers, and compare the answers.

    Apache Kafka's broker learns of a change a moment after the change was answered. A request that
    changes nothing is therefore repeated until both answers are equal, for ``PATIENCE`` seconds.

    Args:
        prepared_by: requests that are sent first and whose answers are not compared.
        plain: makes an answer comparable.
        as_ours: Kafka's plain answer, without what may differ from ours.
    """
    found: list[str] = []
    async with (
        await WireClient.open(both.kafka.port) as kafka,
        await WireClient.open(both.barnabas.port) as barnabas,
    ):
        for request, version in prepared_by:
            for client in (kafka, barnabas):
                await client.ask(request, version)
        for request, version in requests:
            ours = plain(await barnabas.ask(request, version))
            deadline = asyncio.get_running_loop().time() + PATIENCE
            looks = type(request).__name__.startswith(("Describe", "List"))
            while True:
                theirs = as_ours(plain(await kafka.ask(request, version)), ours)
                if theirs == ours or not looks or asyncio.get_running_loop().time() > deadline:
                    break
            if theirs != ours:
                found.append(f"{request}, version {version}:\n  Kafka {theirs}\n  Barnabas {ours}")
    assert not found, "\n".join(found)
