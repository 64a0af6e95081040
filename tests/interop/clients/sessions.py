"""
The sessions of all client libraries.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.interop.clients.aio import AioKafkaSession
from tests.interop.clients.base import Session
from tests.interop.clients.confluent import ConfluentSession
from tests.interop.clients.kafka_python import KafkaPythonSession

SESSIONS: Mapping[str, type[Session]] = {
    kind.name: kind for kind in (KafkaPythonSession, ConfluentSession, AioKafkaSession)
}
