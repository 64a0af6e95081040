"""
What tests of all packages share.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


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
