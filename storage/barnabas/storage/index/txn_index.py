"""
The transaction index: the transactions that were aborted in a segment.

::

    version             int16   0
    producer id         int64
    first offset        int64   of the transaction; it may lie in an earlier segment
    last offset         int64   that of the ABORT marker, which lies in this segment
    last stable offset  int64   of the log when the marker was written

Entries are in the order of the markers. The file is made with the first one: most segments have
none. A consumer that reads committed records only gets these transactions with its records.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import CorruptIndex, KafkaError
from barnabas.storage.fs.interface import Files, WouldBlock
from barnabas.storage.fs.open_file import OpenFile

ENTRY: Final = Struct(">hqqqq")
CURRENT_VERSION: Final = 0
ENTRIES_AT_ONCE: Final = 2_000
"""
How many entries are read at a time, and looked at without a thread: there may be millions.
"""


class CompletedTxn(NamedTuple):
    """
    A transaction that a marker has ended; the marker is at its last offset.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class AbortedTxn(NamedTuple):
    """
    One entry.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndexSearchResult(NamedTuple):
    """
    The transactions that a search has found, and whether later segments need not be searched.
    """

    aborted_transactions: list[AbortedTxn]
    is_complete: bool


class TransactionIndex:
    """
    The aborted transactions of one segment.

    Invariants:

    1. Last offsets grow along the file.
    2. There is no file before the first entry; a file that is there at the start is opened.

    Reading is safe from any thread; the log that owns the segment holds its lock to append.
    """

    __slots__ = (
        "_directory",
        "_file",
        "_files",
        "_last_offset",
        "_name",
        "_size",
        "start_offset",
    )

    def __init__(
        self,
        files: Files,
        directory: Path,
        name: str,
        start_offset: int,
        *,
        exists: bool,
    ) -> None:
        """
        Args:
            exists: whether there is a file; the directory was listed when the log was opened.
        """
        self._files = files
        # A path is several objects, and there may be very many indexes that have no file.
        self._directory = directory
        self._name = name
        self.start_offset = start_offset
        self._last_offset: int | None = None
        self._size = 0
        self._file: OpenFile | None = None
        if exists:
            self._open()

    @property
    def path(self) -> Path:
        return self._directory / self._name

    @property
    def is_empty(self) -> bool:
        return self._size < ENTRY.size

    def open_for_writing(self) -> None:
        """
        Open the file, and make it if there is none, before an entry is appended.
        """
        (self._file or self._open()).get()

    def append(self, aborted_txn: AbortedTxn) -> None:
        """
        Raises:
            ValueError: the last offset is not larger than that of the entry before.
        """
        if self._last_offset is not None and self._last_offset >= aborted_txn.last_offset:
            raise ValueError(
                "The last offset of appended transactions must increase sequentially, but "
                f"{aborted_txn.last_offset} is not greater than current last offset "
                f"{self._last_offset} of index {self.path}"
            )
        file = (self._file or self._open()).get()
        file.write_at(self._size, ENTRY.pack(CURRENT_VERSION, *aborted_txn))
        self._size += ENTRY.size
        self._last_offset = aborted_txn.last_offset

    def collect_aborted_txns(
        self,
        fetch_offset: int,
        upper_bound_offset: int,
        *,
        most: int | None = None,
        nowait: bool = False,
    ) -> TxnIndexSearchResult:
        """
        The transactions that overlap a read from *fetch_offset* up to *upper_bound_offset*.

        Args:
            most: end the search after so many and one more.

        Raises:
            WouldBlock: with *nowait*, very many entries have to be looked at.
        """
        found: list[AbortedTxn] = []
        for number, txn in enumerate(self._entries(self._first_slot(fetch_offset))):
            if nowait and number == ENTRIES_AT_ONCE:
                raise WouldBlock
            if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound_offset:
                found.append(txn)
                if most is not None and len(found) > most:
                    return TxnIndexSearchResult(found, True)
            if txn.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(found, True)
        return TxnIndexSearchResult(found, False)

    def truncate_to(self, offset: int) -> None:
        """
        Forget the entries from the first one on whose last offset is *offset* or greater.
        """
        kept = None
        for slot, txn in enumerate(self._entries()):
            if txn.last_offset >= offset:
                self._cut(slot * ENTRY.size)
                self._last_offset = kept
                return
            kept = txn.last_offset

    def reset(self) -> None:
        """
        Forget all entries; a file that is there stays, empty.
        """
        self._cut(0)
        self._last_offset = None

    def sanity_check(self) -> None:
        """
        Raises:
            CorruptIndex: a transaction ends before the segment begins.
        """
        for txn in self._entries():
            if txn.last_offset < self.start_offset:
                raise CorruptIndex(
                    f"Last offset of aborted transaction {txn} in index {self.path} is less than "
                    f"start offset {self.start_offset}",
                    path=self.path,
                )

    def flush(self) -> None:
        """
        Return once the entries survive a crash of the machine. Safe from any thread.
        """
        if (file := self._file) is not None:
            file.get().sync()

    def rename_to(self, path: Path) -> None:
        """
        Rename the file, if there is one.
        """
        with self._files.open_files.lock:
            try:
                if self._files.exists(self.path):
                    self._files.rename(self.path, path)
            finally:
                self._set_path(path)

    def update_parent_dir(self, directory: Path) -> None:
        """
        Follow the directory, which was renamed.
        """
        self._set_path(directory / self._name)

    def delete_if_exists(self) -> bool:
        """
        Remove the file; return whether there was one. Readers of the index keep it.
        """
        file = self._file
        return self._files.remove(self.path) if file is None else file.delete_if_exists()

    def close(self) -> None:
        file, self._file, self._size = self._file, None, 0
        if file is not None:
            file.close()

    def _open(self) -> OpenFile:
        file = self._file = OpenFile(self._files, self.path, create=True, read_only=False)
        self._size = file.size_at_first()
        return file

    def _set_path(self, path: Path) -> None:
        self._directory, self._name = path.parent, path.name
        if self._file is not None:
            self._file.set_path(path)

    def _cut(self, size: int) -> None:
        if self._file is not None:
            self._file.get().truncate(size)
            self._size = size

    def _first_slot(self, offset: int) -> int:
        """
        The first entry whose last offset is *offset* or greater; 0 if there are few.
        """
        file = self._file
        low, high = 0, self._size // ENTRY.size
        if file is None or high <= ENTRIES_AT_ONCE:
            return 0
        while low < high:
            middle = (low + high) // 2
            data = file.get().read(middle * ENTRY.size, ENTRY.size)
            if ENTRY.unpack(data)[3] >= offset:
                high = middle
            else:
                low = middle + 1
        return low

    def _entries(self, slot: int = 0) -> Iterator[AbortedTxn]:
        """
        The entries from *slot* on.
        """
        file = self._file
        if file is None:
            return
        end = self._size - self._size % ENTRY.size
        for start in range(slot * ENTRY.size, end, ENTRIES_AT_ONCE * ENTRY.size):
            size = min(ENTRIES_AT_ONCE * ENTRY.size, end - start)
            yield from self._decoded(file.get().read(start, size))

    def _decoded(self, data: bytes | bytearray) -> Iterator[AbortedTxn]:
        whole = len(data) - len(data) % ENTRY.size
        for version, *fields in ENTRY.iter_unpack(memoryview(data)[:whole]):
            if version > CURRENT_VERSION:
                raise KafkaError(
                    f"Unexpected aborted transaction version {version} in transaction index "
                    f"{self.path}, current version is {CURRENT_VERSION}"
                )
            yield AbortedTxn._make(fields)
