"""
The documentation matches the API.
"""

from __future__ import annotations

import re
from pathlib import Path

from barnabas.server.http.api import PREFIX, context, explaining, records
from barnabas.server.http.api.app import LIMITS, OPERATIONS
from tests.support.limits import stated

PAGE = (Path(__file__).parents[4] / "docs" / "http-api.md").read_text()


def test_documentation_lists_every_api_path() -> None:
    listed = re.findall(r"^\| `(/[^`]+)` \| (.+) \|$", PAGE, re.MULTILINE)

    assert [(PREFIX + each.path, each.says) for each in OPERATIONS] == listed


def test_api_limits_match_the_documentation() -> None:
    assert stated("api-answer") == LIMITS.most_bytes
    assert stated("api-answers") == LIMITS.most_at_once
    assert stated("api-waiting") == LIMITS.most_waiting
    assert stated("api-contents") == records.MOST_CONTENT_BYTES
    assert stated("api-batch") == explaining.MOST_READ_BYTES
    assert stated("api-threads") == context.THREADS
