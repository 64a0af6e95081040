"""
Writing to topics without a jar.
"""

from __future__ import annotations

import pytest

from tests.pipeline.connector.test_sink import (  # noqa: F401  # pytest collects them here
    source,
    test_a_copy_of_a_topic,
    test_a_record_that_is_too_large,
    test_rows_choose_their_topic,
)

pytestmark = pytest.mark.spark
