"""
A schema registry, and a broker whose records were written with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.support.schema_registry import SchemaRegistry

if find_spec("fastavro") is None and "CI" not in os.environ:
    # The extra ``registry`` is not installed.
    collect_ignore_glob = ["test_*"]


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as running:
        yield running
