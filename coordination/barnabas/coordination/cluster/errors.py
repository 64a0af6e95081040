"""
Errors of a cluster's metadata.

::

    KafkaError (protocol)
    └── MetadataError                 -1
        ├── InconsistentMetadata         a record does not fit what came before it
        ├── InconsistentSnapshots        the log begins behind the end of every snapshot
        ├── UnknownMetadataRecord        a later release wrote the record
        ├── UnsupportedFeatureLevel      a later release finalized the feature
        └── ForeignQuorum                other controllers have a vote

Damaged bytes are a ``CorruptMessage``, as in other logs. Each of these errors ends the start of the
broker, which would otherwise lose a part of the metadata.
"""

from __future__ import annotations

from barnabas.protocol.errors import KafkaError


class MetadataError(KafkaError):
    """
    The metadata log or a file beside it cannot be served.
    """


class InconsistentMetadata(MetadataError):
    """
    A record of the metadata log does not fit what came before it.
    """


class InconsistentSnapshots(MetadataError):
    """
    The log begins behind the end of every snapshot: a part of the metadata is missing.
    """


class UnknownMetadataRecord(MetadataError):
    """
    A record is of a type, a version or a frame that this release cannot read.

    If it were ignored, the next snapshot would lose it.
    """


class UnsupportedFeatureLevel(MetadataError):
    """
    A feature was finalized at a level that this release does not know.
    """


class ForeignQuorum(MetadataError):
    """
    The log belongs to a quorum that this node does not make up alone.
    """
