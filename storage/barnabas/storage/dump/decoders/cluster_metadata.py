"""
The records of ``__cluster_metadata``.
"""

from __future__ import annotations

import re
from functools import cache

from barnabas.protocol.internal_topics.metadata_records import RECORDS
from barnabas.storage.dump.decoders import Decoded, DumpedRecord, Raw
from barnabas.storage.dump.decoders.framed import read_framed
from barnabas.storage.dump.decoders.message_reader import BadMessage, MessageReader, contents_of


class ClusterMetadataDecoder:
    """
    Decodes the values; the records have no keys (Kafka's ClusterMetadataLogMessageParser).
    """

    def decode(self, record: DumpedRecord) -> Decoded:
        try:
            _key, value = contents_of(record)
            found = read_framed(MessageReader(value or b""), RECORDS)
        except BadMessage as error:
            return Decoded(value=Raw(f"Error at {record.offset}, skipping. {error}"))
        return Decoded(
            value={
                "type": type_name(found.cls.__name__),
                "version": found.version,
                "data": found.data,
            }
        )


@cache
def type_name(class_name: str) -> str:
    """
    The name of a type of record: that of its class in capitals.
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name).upper()
