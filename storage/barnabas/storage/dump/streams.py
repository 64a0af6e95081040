"""
Decompressing records, with Kafka's errors.

Kafka fails in one of two ways: with the codec's own error when it opens the stream and the first
bytes are wrong, or with one error for all codecs later on.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.compression import CompressionType, CorruptCompressedData, decompress
from barnabas.protocol.compression.xxhash32 import xxhash32
from barnabas.storage.dump.failure import KAFKA_EXCEPTION, DumpFailure

_GZIP_HEADER_BYTES: Final = 10
_DEFLATE: Final = 8
_LZ4_MAGIC: Final = bytes.fromhex("04224d18")
_IO: Final = "java.io.IOException: "
_RUNTIME: Final = "java.lang.RuntimeException: "
_ZIP: Final = "java.util.zip.ZipException: "
_ENDS_EARLY: Final = _IO + "Stream ended prematurely"


def decompressed(codec: CompressionType, payload: memoryview) -> bytes:
    """
    Raises:
        DumpFailure: *payload* is not a stream of this codec.
    """
    try:
        return bytes(decompress(codec, payload))
    except CorruptCompressedData as error:
        flaw = "Failed to decompress record stream"
        if codec is CompressionType.GZIP:
            flaw = _gzip_flaw(payload) or flaw
        elif codec is CompressionType.LZ4:
            flaw = _lz4_flaw(payload) or flaw
        raise DumpFailure(KAFKA_EXCEPTION, flaw) from error


def _gzip_flaw(payload: memoryview) -> str | None:
    """
    The flaw in the header of the stream (Java's GZIPInputStream).
    """
    if payload[:2] != b"\x1f\x8b"[: len(payload)]:
        return _ZIP + "Not in GZIP format"
    if len(payload) > 2 and payload[2] != _DEFLATE:
        return _ZIP + "Unsupported compression method"
    return "java.io.EOFException" if len(payload) < _GZIP_HEADER_BYTES else None


def _lz4_flaw(payload: memoryview) -> str | None:
    """
    The flaw in the descriptor of the frame (Kafka's Lz4BlockInputStream).
    """
    if len(payload) < 6:
        return _ENDS_EARLY
    if payload[:4] != _LZ4_MAGIC:
        return _IO + "Stream unsupported (invalid magic bytes)"
    flags, descriptor = payload[4], payload[5]
    reasons = (
        (flags & 0x03, "Reserved bits must be 0"),
        (not flags & 0x20, "Dependent block stream is unsupported"),
        (flags >> 6 != 1, f"Version {flags >> 6} is unsupported"),
        (descriptor & 0x0F, "Reserved2 field must be 0"),
        (not descriptor & 0x40, "Block size value must be between 4 and 7"),
        (descriptor & 0x80, "Reserved3 field must be 0"),
    )
    for wrong, reason in reasons:
        if wrong:
            return _RUNTIME + reason
    end = 14 if flags & 0x08 else 6
    if len(payload) <= end:
        return _ENDS_EARLY if len(payload) < end else "java.nio.BufferUnderflowException"
    if xxhash32(bytes(payload[4:end])) >> 8 & 0xFF != payload[end]:
        return _IO + "Stream frame descriptor corrupted"
    return None
