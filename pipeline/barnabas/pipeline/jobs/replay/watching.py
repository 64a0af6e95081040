"""
The progress of a replay, as the broker knows it: a worker commits the offset up to which it has
sent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from barnabas.pipeline.jobs.archive.table import ArchivedFile
from barnabas.pipeline.jobs.replay.sending import (
    PartitionToSend,
    ReplayError,
    ReplayTarget,
    consumer_of,
    sent_before,
)
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_SECONDS: Final = 1.0
"""Between two looks, about."""


def bytes_before(files: Iterable[ArchivedFile], offset: int) -> int:
    """
    What the records below *offset* took in the log, if those of a file are of one size.
    """
    total = 0
    for file in files:
        start, end = file.offsets.start, file.offsets.end
        total += file.log_bytes * (min(max(offset, start), end) - start) // (end - start)
    return total


@contextmanager
def watched(
    archived: Sequence[PartitionToSend], target: ReplayTarget, advanced: Callable[[int], None]
) -> Iterator[None]:
    """
    Tell *advanced* meanwhile how many bytes of the log more were sent; at the end, it was told of
    all that was. What was sent before is none of it.
    """
    stop = threading.Event()
    watch = _Watch(archived, target, advanced)
    thread = threading.Thread(target=watch.run, args=(stop,), name="replay-progress", daemon=True)
    thread.start()
    try:
        yield
        stop.set()
        thread.join()
        watch.look()
    finally:
        stop.set()
        thread.join()
        watch.close()


class _Watch:
    def __init__(
        self,
        archived: Sequence[PartitionToSend],
        target: ReplayTarget,
        advanced: Callable[[int], None],
    ) -> None:
        self._archived = {each.topic_partition: each for each in archived}
        self._target = target
        self._consumers = {each.topic_partition: consumer_of(each, target) for each in archived}
        self._advanced = advanced
        self._known = {partition: self._sent(partition) for partition in self._archived}

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(_SECONDS):
            self.look()

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()

    def look(self) -> None:
        for partition, before in self._known.items():
            now = self._sent(partition)
            if now > before:
                self._known[partition] = now
                self._advanced(now - before)

    def _sent(self, partition: TopicPartition) -> int:
        archived = self._archived[partition]
        try:
            offset = sent_before(self._consumers[partition], archived, self._target)
        except ReplayError as error:
            # It is the sender's to say what is wrong with the broker.
            logger.debug("%s", error)
            offset = None
        return 0 if offset is None else bytes_before(archived.files, offset)
