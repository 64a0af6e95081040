"""
kcat: the metadata, records in and out, offsets by time, and a group.
"""

from __future__ import annotations

from tests.interop.tools.guide import Guide

KCAT = "kcat"


def kcat_reads_and_writes(guide: Guide) -> None:
    """
    With keys, headers, tombstones and every codec.
    """
    guide("kafka-topics", "--create", "--topic", "cats", "--partitions", "2")
    guide(KCAT, "-L", "-t", "cats")
    guide(KCAT, "-L", "-J", "-t", "cats")
    write = (KCAT, "-P", "-t", "cats", "-p", "0")
    guide(*write, "-K:", "-H", "name=value", "-H", "empty=", given="key:value\nother:one\n")
    guide(*write, "-K:", "-Z", given="gone:\n")
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        guide(*write, "-z", codec, given=f"with {codec}\n")
    guide(KCAT, "-P", "-t", "cats", "-p", "7", given="nowhere\n")
    read = (KCAT, "-C", "-t", "cats", "-e")
    guide(*read, "-q", "-o", "beginning")
    guide(*read, "-p", "0", "-o", "beginning", "-f", "%t %p %o %k %s %h\n")
    guide(*read, "-p", "0", "-o", "-2")
    guide(*read, "-p", "0", "-o", "3", "-c", "1")
    guide(*read, "-p", "0", "-o", "s@0", "-c", "1")
    guide(KCAT, "-Q", "-t", "cats:0:-1", "-t", "cats:0:-2", "-t", "cats:1:0")
    group = (KCAT, "-G", "cat-lovers", "-X", "auto.offset.reset=earliest")
    guide(*group, "-c", "4", "-q", "cats")
    guide(*read, "-t", "nothing", "-X", "allow.auto.create.topics=false")


PARTS = (kcat_reads_and_writes,)
