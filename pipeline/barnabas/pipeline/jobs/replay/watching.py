"""
The progress of a replay, as the broker knows it: a worker commits the offset up to which it has
sent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from barnabas.pipeline.jobs.archive.commit import Commit
from barnabas.pipeline.jobs.replay.sending import (
    ReplayError,
    Target,
    consumer_of,
    sent_before,
)
from barnabas.storage.state_files.file_names import TopicPartition

logger = logging.getLogger(__name__)

_SECONDS: Final = 1.0
"""Between two looks, about."""


def bytes_before(commits: Sequence[Commit], offset: int) -> int:
    """
    What the records below *offset* took in the log, if those of a file are of one size.
    """
    return sum(
        commit.log_bytes
        * (min(max(offset, commit.start_offset), commit.end_offset) - commit.start_offset)
        // (commit.end_offset - commit.start_offset)
        for commit in commits
    )


@contextmanager
def watched(
    archived: Mapping[TopicPartition, Sequence[Commit]],
    target: Target,
    advanced: Callable[[int], None],
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
        archived: Mapping[TopicPartition, Sequence[Commit]],
        target: Target,
        advanced: Callable[[int], None],
    ) -> None:
        self._archived = archived
        self._target = target
        self._consumers = {
            partition: consumer_of(commits[0], target) for partition, commits in archived.items()
        }
        self._advanced = advanced
        self._known = {partition: self._sent(partition) for partition in archived}

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
        commits = self._archived[partition]
        try:
            offset = sent_before(self._consumers[partition], commits[0], self._target)
        except ReplayError as error:
            # It is the sender's to say what is wrong with the broker.
            logger.debug("%s", error)
            offset = None
        return 0 if offset is None else bytes_before(commits, offset)
