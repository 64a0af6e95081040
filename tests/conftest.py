"""
What tests of all packages share.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes is the affair of the machine, which may be busy with something else.
settings.register_profile("barnabas", deadline=None)
settings.load_profile("barnabas")


@pytest.fixture(scope="session")
def golden() -> Path:
    """
    The directory of log directories that Apache Kafka wrote, named by ``BARNABAS_GOLDEN``.
    """
    if directory := os.environ.get("BARNABAS_GOLDEN"):
        return Path(directory)
    sentence = "BARNABAS_GOLDEN does not name a directory that Apache Kafka has written"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)
