"""
A broker in a container, for tests that use testcontainers::

    with BarnabasContainer() as kafka:
        producer = KafkaProducer(bootstrap_servers=kafka.get_bootstrap_server())

It takes the place of testcontainers' ``KafkaContainer``, and needs the image of this project:
``docker build -t barnabas .`` in a checkout makes it.
"""

from __future__ import annotations

try:
    import testcontainers as _  # noqa: F401  # whether it is there
except ImportError as missing:
    raise ImportError(
        "barnabas.testing.containers needs testcontainers: pip install 'barnabas[testcontainers]'"
    ) from missing

from barnabas.testing.containers.container import BarnabasContainer

__all__ = ["BarnabasContainer"]
