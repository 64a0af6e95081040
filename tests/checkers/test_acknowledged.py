"""
The rule that acknowledged batches stay.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.checkers.fakes import partition
from tests.support.checkers.acknowledged import Acknowledged, Found, checksum_of
from tests.support.server import batch

WRITTEN_BY_THE_BROKER: list[dict[str, Any]] = [
    {"compression_type": "gzip"},
    {"message_timestamp_type": "LogAppendTime"},
]


def findings_after(there: Any, stored: dict[int, Found], *, checksum: int | None = 11) -> list[str]:
    """
    Return the findings if the batch at offset 3 was acknowledged, and *stored* is in the files.
    """
    found: list[str] = []
    acknowledged = Acknowledged(found.append)
    acknowledged.add(there, 3, checksum)
    acknowledged.check([there], lambda _: stored)
    return found


def test_batch_that_is_stored_as_acknowledged_is_in_order() -> None:
    assert [] == findings_after(partition(), {3: Found(4, 11)})


def test_batch_that_is_lost_is_found() -> None:
    found = findings_after(partition(), {0: Found(2, 11)})

    assert ["orders-0: the batch at offset 3 was acknowledged and is lost"] == found


def test_batch_with_other_bytes_is_found() -> None:
    (found,) = findings_after(partition(), {3: Found(4, 12)})

    assert "was acknowledged with records of the checksum 0000000b and is stored" in found


def test_batch_that_is_acknowledged_before_it_is_committed_is_found() -> None:
    (found,) = findings_after(partition(high=3), {3: Found(4, 11)})

    assert "orders-0: offset 3 is acknowledged, the high watermark is 3" == found


def test_batch_below_the_start_of_the_log_may_be_gone() -> None:
    assert [] == findings_after(partition(start=4), {})


def test_batch_of_a_compacted_topic_may_be_gone() -> None:
    assert [] == findings_after(partition(cleanup_policy=("compact",)), {})


def test_batch_of_a_topic_that_was_compacted_for_a_while_may_be_gone() -> None:
    found: list[str] = []
    acknowledged = Acknowledged(found.append)
    acknowledged.add(partition(), 3, 11)

    acknowledged.look([partition(cleanup_policy=("compact",))])
    acknowledged.check([partition()], lambda _: {})

    assert [] == found


@pytest.mark.parametrize(("end", "count"), [(4, 0), (3, 1)])
def test_batch_from_before_the_start_may_be_repeated_with_other_bytes(end: int, count: int) -> None:
    found: list[str] = []
    acknowledged = Acknowledged(found.append)

    acknowledged.begin([partition(end=end)])
    acknowledged.add(partition(), 3, 11)
    acknowledged.check([partition()], lambda _: {3: Found(4, 12)})

    assert count == len(found)


@pytest.mark.parametrize("config", WRITTEN_BY_THE_BROKER)
def test_batch_that_the_broker_writes_itself_may_have_other_bytes(config: dict[str, Any]) -> None:
    assert [] == findings_after(partition(**config), {2: Found(4, 12)})


@pytest.mark.parametrize("config", WRITTEN_BY_THE_BROKER)
def test_batch_that_the_broker_writes_itself_may_not_be_lost(config: dict[str, Any]) -> None:
    assert 1 == len(findings_after(partition(**config), {0: Found(2, 12)}))


def test_checksum_differs_with_the_records_of_a_batch() -> None:
    one, other = batch("one"), batch("other")

    assert checksum_of(one) != checksum_of(other)
    assert checksum_of(b"") is checksum_of(None) is None
