"""
Load through librdkafka: the program ``load.c``, for Python's share in the work would show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import confluent_kafka

from benchmarks.programs import Program

Settings = Mapping[str, str | int | float | bool]

BIG_BATCHES: Final[Settings] = {
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 200_000,
    "acks": 1,
}
FAR_AHEAD: Final[Settings] = {
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 200_000,
    "fetch.message.max.bytes": 10_000_000,
    "check.crcs": False,
}


class Loader:
    """
    Produces to and consumes from one partition of a topic.

    The library is that of the confluent-kafka wheel. The program is compiled into *directory*.
    """

    name: Final = "librdkafka"

    def __init__(self, directory: Path) -> None:
        libraries = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
        [library] = libraries.glob("librdkafka*.so*")
        self._program = Program("load", directory, [str(library), f"-Wl,-rpath,{libraries}"])

    def produce(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        size: int,
        settings: Settings,
        *,
        partition: int = 0,
    ) -> float:
        """
        Seconds until *count* records of *size* bytes are acknowledged.

        Raises:
            Unavailable: there is no compiler.
            SubprocessError: a record was not acknowledged.
        """
        numbers = (str(partition), str(count), str(size))
        return float(self._program.output("produce", bootstrap, topic, *numbers, *_pairs(settings)))

    def consume(self, bootstrap: str, topic: str, count: int, settings: Settings) -> float:
        """
        Seconds until the first *count* records of partition 0 have arrived.

        Raises: as ``produce``.
        """
        with self.consuming(bootstrap, topic, count, settings) as seconds:
            return seconds()

    @contextmanager
    def consuming(
        self, bootstrap: str, topic: str, count: int, settings: Settings
    ) -> Iterator[Callable[[], float]]:
        """
        The same beside the body; the function waits for the seconds.
        """
        arguments = ("consume", bootstrap, topic, "0", str(count), *_pairs(settings))
        with self._program.running(*arguments) as result:
            yield lambda: float(result())


def _pairs(settings: Settings) -> list[str]:
    return [f"{name}={str(value).lower()}" for name, value in settings.items()]
