"""
Fetches of a session, between appends and deletions, and requests that the session does not expect.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.protocol.codec.schema import Message
from tests.interop.differential.kinds.appends import batch, rounds
from tests.interop.differential.scripts import Script
from tests.interop.differential.sides import Session
from tests.interop.differential.steps import Ask
from tests.support.build import api_request

VERSIONS: Final = (7, 9, 11, 12, 13, 15, 16, 18)
FIRST_BY_ID: Final = 13
WRONG_EPOCHS: Final = (-1, 1, 1000)


@dataclass(slots=True)
class Fetcher:
    """
    One client with a session, whose number each broker chooses for itself.
    """

    script: Script
    version: int
    epoch: int = 0
    numbers: dict[str, int] = field(default_factory=dict)  # by the name of the broker

    def fetch(
        self,
        offsets: dict[int, int],
        *,
        epoch: int | None = None,
        version: int | None = None,
        forgotten: tuple[int, ...] = (),
        **options: Any,
    ) -> None:
        """
        One request; of the session's epoch unless another is said.
        """
        used_epoch = self.epoch if epoch is None else epoch
        used_version = self.version if version is None else version
        is_taken = epoch is None and version is None

        def make(session: Session) -> Message:
            named = session.named(self.script.topic, "topic", by_id=used_version >= FIRST_BY_ID)
            partitions = [
                {"partition": p, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
                for p, offset in offsets.items()
            ]
            fields: dict[str, Any] = {
                "max_wait_ms": 0,
                "min_bytes": 0,
                "max_bytes": 1 << 26,
                "session_id": self.numbers.get(session.side.name, 0),
                "session_epoch": used_epoch,
                "topics": [{"partitions": partitions, **named}] if offsets else [],
                "forgotten_topics_data": [{"partitions": forgotten, **named}] if forgotten else [],
            }
            return api_request("fetch", **(fields | options))

        def learn(session: Session, answer: Any) -> None:
            if is_taken:
                self.numbers[session.side.name] = answer.session_id

        text = f"fetch {offsets}, epoch {used_epoch}, forget {forgotten}, {options}"
        self.script.do(Ask(text, used_version, make, learn))
        if is_taken:
            self.epoch += 1


def sessions(script: Script) -> None:
    """
    A session for each act: no session outlives its broker.
    """
    chance = script.chance
    script.create(partitions=3, retention_ms=-1)
    fetcher = Fetcher(script, chance.choice(VERSIONS))
    act = -1
    for _ in rounds(script, 12):
        if script.act != act:
            if act >= 0:
                fetcher.fetch({})
            act = script.act
            fetcher = Fetcher(script, chance.choice(VERSIONS))
            fetcher.fetch({0: 0, 1: 0, 5: 0})
        _happens(script, chance)
        _fetches(script, fetcher, chance)
    fetcher.fetch({}, forgotten=(0, 1, 2, 5))
    fetcher.fetch({})


def _happens(script: Script, chance: random.Random) -> None:
    for _ in range(chance.randrange(3)):
        partition = chance.randrange(3)
        if chance.random() < 0.3:
            script.delete_records(chance.randrange(script.end(partition) + 1), partition=partition)
        else:
            script.produce(batch(script), partition=partition)


def _fetches(script: Script, fetcher: Fetcher, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 3)):
        partition = chance.randrange(4)
        match chance.randrange(8):
            case 0:
                fetcher.fetch({}, epoch=fetcher.epoch + chance.choice(WRONG_EPOCHS))
            case 1:
                other = 13 if fetcher.version < FIRST_BY_ID else 12
                fetcher.fetch({}, version=other)
            case 2:
                fetcher.fetch({}, forgotten=(partition,))
            case 3:
                replica = chance.choice((1, 3))
                fetcher.fetch({}, replica_id=replica, replica_state={"replica_id": replica})
            case 4:
                fetcher.fetch({}, max_bytes=chance.choice((1, 500)))
            case _:
                offset = chance.randrange(-1, script.end(partition) + 2)
                fetcher.fetch({partition: offset}, isolation_level=chance.randrange(2))
