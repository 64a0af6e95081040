"""
The output of a dump: text to standard output, in large pieces, and remarks to standard error.
"""

from __future__ import annotations

from typing import BinaryIO, Final

_PIECE_CHARACTERS: Final = 256 * 1024


class Output:
    """
    Two streams of UTF-8.

    A remark is written behind everything that was printed before.
    """

    __slots__ = ("_err", "_out", "_pending", "_size")

    def __init__(self, out: BinaryIO, err: BinaryIO) -> None:
        self._out = out
        self._err = err
        self._pending: list[str] = []
        self._size = 0

    def print(self, *texts: str) -> None:
        """
        Print *texts* one after the other, without ends of lines.
        """
        before = len(self._pending)
        self._pending += texts
        self._size += sum(map(len, self._pending[before:]))
        if self._size >= _PIECE_CHARACTERS:
            self.flush()

    def remark(self, text: str) -> None:
        """
        Print a line to standard error.
        """
        self.flush()
        self._err.write(text.encode(errors="surrogateescape") + b"\n")
        self._err.flush()

    def flush(self) -> None:
        """
        Write everything that was printed.
        """
        text, self._pending, self._size = "".join(self._pending), [], 0
        self._out.write(text.encode(errors="surrogateescape"))
        self._out.flush()
