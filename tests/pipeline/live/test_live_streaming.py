"""
Streaming queries from a broker without a jar: the tests of Spark's connector.
"""

from __future__ import annotations

import pytest

from tests.pipeline.connector.test_streaming import (  # noqa: F401  # pytest collects them here
    target,
    test_max_offsets_per_trigger_limits_each_batch,
    test_query_includes_new_topics_and_partitions,
    test_query_resumes_at_its_checkpoint,
    test_read_committed_stream_returns_only_committed_records,
    test_records_deleted_meanwhile_fail_only_with_fail_on_data_loss,
    test_stream_may_begin_at_given_offsets,
)

pytestmark = [pytest.mark.spark, pytest.mark.prove]
