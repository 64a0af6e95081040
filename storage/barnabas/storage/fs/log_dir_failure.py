"""
The log directories that have failed.

Code that meets an error of the disk reports the log directory here and raises the error again. From
then on the directory is offline: its logs refuse all work, and the log manager, which waits for
reports in a thread of its own, closes them (Kafka's LogDirFailureChannel).
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from barnabas.storage.errors import CorruptCheckpoint, KafkaStorageError

logger = logging.getLogger(__name__)


class LogDirFailureChannel:
    """
    The failed log directories, and the news of each, once. Safe from any thread.
    """

    def __init__(self, *, takes_offline: bool = True) -> None:
        """
        Args:
            takes_offline: false where nothing is written: an error then fails the request that met
                it, and the rest of the directory can still be read.
        """
        self.takes_offline = takes_offline
        self._said: set[str] = set()
        self._offline: dict[Path, BaseException] = {}
        self._news: list[Path] = []
        self._guard = threading.Lock()
        self.any_offline = False
        """Whether a directory has failed: logs test this first, as it nearly never is true."""
        self.reported = threading.Event()
        """Set while there are reports that ``take_news`` has not returned."""

    def maybe_add_offline_log_dir(self, log_dir: Path, sentence: str, error: BaseException) -> None:
        """
        Report that *log_dir* has failed; only its first report counts, and is logged.

        A traceback is logged for errors of this program only: for one of the disk, or of the
        content of a file, its sentence is enough.
        """
        with self._guard:
            if log_dir in self._offline:
                return
            if not self.takes_offline:
                if (message := f"{sentence}: {error}") not in self._said:
                    self._said.add(message)
                    logger.error("%s", message)
                return
            self._offline[log_dir] = error
            self.any_offline = True
            self._news.append(log_dir)
            self.reported.set()
        from_disk = isinstance(error, CorruptCheckpoint) or (
            isinstance(error, KafkaStorageError)
            and isinstance(error.__cause__, CorruptCheckpoint | OSError)
        )
        trace = None if from_disk and not logger.isEnabledFor(logging.DEBUG) else error
        logger.error("%s: %s", sentence, error, exc_info=trace)

    def has_offline_log_dir(self, log_dir: Path) -> bool:
        return log_dir in self._offline

    def check_online(self, log_dir: Path) -> None:
        """
        Raises:
            KafkaStorageError: *log_dir* has failed.
        """
        if log_dir in self._offline:
            raise KafkaStorageError(f"The log directory {log_dir} is offline") from self._offline[
                log_dir
            ]

    def take_news(self) -> list[Path]:
        """
        The directories that have failed since the last call.
        """
        with self._guard:
            news, self._news = self._news, []
            self.reported.clear()
            for path in news:
                _forget_tracebacks(self._offline[path])
        return news


def _forget_tracebacks(error: BaseException) -> None:
    """
    Free the frames in which *error* and its causes were raised: they keep files open.
    """
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.append(cause)
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
