"""
Why a cluster's metadata cannot be served.

::

    KafkaError (protocol)
    └── MetadataError                 -1
        ├── InconsistentMetadata         a record does not fit what came before it
        ├── InconsistentSnapshots        the log begins behind the end of every snapshot
        ├── UnknownMetadataRecord        a later release wrote the record
        ├── UnsupportedFeatureLevel      a later release finalized the feature
        └── ForeignQuorum                other controllers have a vote

Damaged bytes are a ``CorruptMessage``, as anywhere. All of them end the start of a broker: to go on
without a part of the metadata would be to lose it.
"""

from __future__ import annotations

from barnabas.protocol.errors import KafkaError


class MetadataError(KafkaError):
    """
    The metadata log, or what lies beside it, cannot be served.
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

    To pass over it would be to lose it with the next snapshot.
    """


class UnsupportedFeatureLevel(MetadataError):
    """
    A feature was finalized at a level that this release does not know.
    """


class ForeignQuorum(MetadataError):
    """
    The log belongs to a quorum that this node does not make up alone.
    """
