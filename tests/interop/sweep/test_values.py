"""
The requests of the whole sweep exist in the versions that they are sent in.
"""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

import pytest

from tests.interop.sweep.cases import cases_of, swept_apis
from tests.interop.sweep.values import Size, largest_values
from tests.interop.sweep.world import World
from tests.support.wire_client import request_frame

WORLD = World(topic_ids=defaultdict(lambda: UUID(int=1)), hmac=b"h", bomb=b"b")


@pytest.mark.parametrize("api", swept_apis())
def test_largest_values_fit_into_requests_of_the_first_and_the_last_version(api: str) -> None:
    for case in cases_of(api, all_versions=True):
        for make in largest_values(case, WORLD, Size(100_000, 100)):
            assert request_frame(make(0), case.version)
