"""
Batch queries from a broker without a jar: the tests of Spark's connector.
"""

from __future__ import annotations

import pytest

from tests.pipeline.connector.test_batch import (  # noqa: F401  # pytest collects them here
    disordered,
    full,
    test_assign_reads_only_the_named_partitions,
    test_deleted_beginning_is_not_reported_as_data_loss,
    test_deleted_requested_records_fail_only_with_fail_on_data_loss,
    test_every_record_is_read_as_it_was_sent,
    test_log_append_time_is_read_with_its_type,
    test_max_records_per_partition_limits_tasks,
    test_min_partitions_splits_partitions_without_loss,
    test_read_committed_query_returns_only_committed_records,
    test_read_uncommitted_query_returns_all_records_but_no_markers,
    test_starting_and_ending_offsets_bound_the_query,
    test_starting_and_ending_timestamps_bound_the_query,
    test_subscribe_pattern_matches_topics_but_no_internal_ones,
    test_timestamp_beyond_all_records_fails_unless_the_end_is_allowed,
    test_timestamps_may_differ_by_partition,
    test_topic_timestamp_type_and_header_columns_are_read,
    test_topic_without_records_has_no_rows,
    test_unknown_topic_fails_the_query,
    transactional,
)

pytestmark = [pytest.mark.spark, pytest.mark.prove]
