"""
The codecs of a batch's records.
"""

from __future__ import annotations

from enum import IntEnum

from barnabas.protocol.errors import UnknownServerError

Buffer = bytes | bytearray | memoryview


class UnknownCompression(UnknownServerError):
    """
    The attributes of a batch name a codec that does not exist. Kafka foresaw no answer to it.
    """


class CorruptCompressedData(UnknownServerError):
    """
    What is said to be a stream of some codec is none. Kafka foresaw no answer to it.
    """


class CompressionType(IntEnum):
    """
    A codec by its number in the attributes of a batch; its name in configs is the lower case one.
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


def decompress(codec: CompressionType, data: Buffer) -> Buffer:
    """
    Raises:
        CorruptCompressedData: the stream is broken.
    """
    if codec:
        raise UnknownCompression(f"{codec.name} is not there yet")
    return data


def compress(codec: CompressionType, data: Buffer, level: int | None = None) -> Buffer:
    """
    Args:
        level: the codec's own, None for its default.
    """
    if codec:
        raise UnknownCompression(f"{codec.name} {level} is not there yet")
    return data
