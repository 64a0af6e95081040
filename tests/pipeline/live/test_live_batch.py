"""
Batch queries from a broker without a jar: the tests of Spark's connector.
"""

from __future__ import annotations

import pytest

from tests.pipeline.connector.test_batch import (  # noqa: F401  # pytest collects them here
    disordered,
    full,
    test_a_removed_beginning_is_not_missed,
    test_a_timestamp_that_no_record_has,
    test_all_records,
    test_an_unknown_topic,
    test_committed_records,
    test_every_record_comes_as_it_was_sent,
    test_given_partitions,
    test_more_tasks_than_partitions,
    test_offsets,
    test_removed_records_that_are_wanted,
    test_tasks_of_at_most_so_many_offsets,
    test_the_other_columns,
    test_the_time_of_the_append,
    test_timestamps,
    test_timestamps_of_each_partition,
    test_topics_by_pattern,
    test_topics_without_records,
    transactional,
)

pytestmark = [pytest.mark.spark, pytest.mark.prove]
