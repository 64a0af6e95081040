"""
Streaming queries from a broker without a jar: the tests of Spark's connector.
"""

from __future__ import annotations

import pytest

from tests.pipeline.connector.test_streaming import (  # noqa: F401  # pytest collects them here
    target,
    test_a_query_goes_on_where_it_ended,
    test_batches_of_a_given_size,
    test_committed_transactions,
    test_new_topics_and_partitions,
    test_records_that_were_removed_meanwhile,
    test_where_to_begin,
)

pytestmark = [pytest.mark.spark, pytest.mark.prove]
