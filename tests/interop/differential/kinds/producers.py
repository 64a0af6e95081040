"""
Idempotent and transactional producers, well behaved and not.
"""

from __future__ import annotations

from dataclasses import replace

from tests.interop.differential.kinds.appends import rounds
from tests.interop.differential.recipes import Batch, Producer
from tests.interop.differential.scripts import CODECS, Script

LAST_SEQUENCE = 2**31 - 1


class SomeProducer:
    """
    A producer that numbers its records, and the batches that it sent.
    """

    def __init__(self, number: int, sequence: int) -> None:
        self.next = Producer(number, 0, sequence)
        self.sent: list[Batch] = []

    def batch(self, script: Script, *, transactional: bool = False) -> Batch:
        """
        The next batch; the sequence wraps after the largest int32.
        """
        chance = script.chance
        count = chance.choice((1, 1, 2, 5))
        made = Batch(
            times=tuple(script.now_ms - 1000 + n for n in range(count)),
            value_bytes=chance.choice((10, 200)),
            codec=chance.choice(CODECS),
            producer=self.next,
            transactional=transactional,
            seed=chance.randrange(1 << 30),
        )
        sequence = (self.next.sequence + count) % (LAST_SEQUENCE + 1)
        self.next = self.next._replace(sequence=sequence)
        self.sent.append(made)
        return made

    def odd(self, script: Script) -> Batch:
        """
        A batch that a producer does not send when all goes well.
        """
        chance = script.chance
        expected = self.next
        match chance.randrange(8):
            case 0 | 1 if self.sent:
                return chance.choice(self.sent)
            case 2 if self.sent:
                # The same batch, longer.
                last = self.sent[-1]
                return replace(last, times=(*last.times, last.times[-1]))
            case 3:
                self.next = Producer(expected.id, expected.epoch + 1, chance.choice((0, 0, 0, 5)))
                return self.batch(script)
            case 4:
                odd = expected._replace(epoch=expected.epoch - 1)
            case 5:
                odd = expected._replace(sequence=chance.choice((0, 1, expected.sequence + 1)))
            case 6:
                odd = Producer(expected.id, 32767 if chance.random() < 0.1 else expected.epoch, -1)
            case _:
                odd = expected._replace(sequence=max(expected.sequence - 1, 0))
        return Batch(times=(script.now_ms,), producer=odd, seed=chance.randrange(1 << 30))


def idempotence(script: Script) -> None:
    """
    Duplicates, gaps, epochs that go up and down, sequences that wrap.
    """
    chance = script.chance
    script.create(internal_segment_bytes=chance.choice((700, 1 << 20)), retention_ms=-1)
    producers = [
        SomeProducer(4000 + n, chance.choice((0, 0, 0, LAST_SEQUENCE - 4, 7))) for n in range(3)
    ]
    for _ in rounds(script, 12):
        producer = chance.choice(producers)
        odd = chance.random() < 0.4
        script.produce(producer.odd(script) if odd else producer.batch(script))


def open_transactions(script: Script) -> None:
    """
    Transactions that no marker ends: the last stable offset stays where the first began.
    """
    chance = script.chance
    script.create(internal_segment_bytes=chance.choice((900, 1 << 20)), retention_ms=-1)
    plain = SomeProducer(5000, 0)
    others = [SomeProducer(5001 + n, 0) for n in range(2)]
    for number in rounds(script, 8):
        if number < 3 or chance.random() < 0.4:
            script.produce(plain.batch(script))
        else:
            producer = chance.choice(others)
            some = producer.batch(script, transactional=True)
            version = chance.choice((3, 9, 11))
            name = f"t-{producer.next.id}"
            script.produce(some, version=version, transactional_id=name)
            if chance.random() < 0.2:
                script.produce(some, version=version, transactional_id=name)
            if chance.random() < 0.2:
                # Not transactional any more, in the middle of its transaction.
                script.produce(producer.batch(script))


def markers(script: Script) -> None:
    """
    Transactions side by side that markers commit and abort, also such that do not belong there.
    """
    chance = script.chance
    script.create(
        internal_segment_bytes=chance.choice((600, 2000, 1 << 20)),
        index_interval_bytes=chance.choice((0, 4096)),
        retention_ms=-1,
    )
    producers = [SomeProducer(5100 + n, 0) for n in range(3)]
    for _ in rounds(script, 14):
        producer = chance.choice(producers)
        if chance.random() < 0.4:
            who = producer.next._replace(
                epoch=producer.next.epoch + chance.choice((0, 0, 0, 1, -1))
            )
            commit = chance.random() < 0.5
            script.end_transaction(who, commit=commit, coordinator_epoch=chance.choice((0, 0, 1)))
        else:
            some = producer.batch(script, transactional=True)
            name = f"t-{producer.next.id}"
            script.produce(some, version=chance.choice((3, 9, 11)), transactional_id=name)
