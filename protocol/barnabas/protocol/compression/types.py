"""
Types that the codecs share.
"""

from __future__ import annotations

from enum import IntEnum

from barnabas.protocol.errors import UnknownServerError


class UnknownCompression(UnknownServerError):
    """
    The attributes of a batch name a codec that does not exist. Kafka foresaw no answer to it.
    """


class CorruptCompressedData(UnknownServerError):
    """
    The data are not a stream of their codec. Kafka has no error code for it.
    """


class DecompressedTooLarge(CorruptCompressedData):
    """
    A stream becomes more than it may.
    """


class CompressionType(IntEnum):
    """
    A codec by its number in the attributes of a batch. Its name in configs is in lower case.
    """

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, number: int) -> CompressionType:
        """
        Raises:
            UnknownCompression: there is no such codec.
        """
        if number > cls.ZSTD:
            raise UnknownCompression(f"Unknown compression type id: {number}")
        return cls(number)
