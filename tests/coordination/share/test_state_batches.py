"""
State batches that overlap: which one counts.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.share.coordinator.batches import combine
from barnabas.protocol.internal_topics.share_state_records import StateBatch


def batch(first: int, size: int, state: int, count: int) -> StateBatch:
    return StateBatch(
        first_offset=first, last_offset=first + size, delivery_state=state, delivery_count=count
    )


BATCHES = st.lists(
    st.builds(
        batch,
        st.integers(0, 30),
        st.integers(0, 10),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 4),
    ),
    max_size=8,
)


@given(batches=BATCHES, start=st.integers(-1, 25))
def test_state_with_more_deliveries_takes_precedence(batches: list[StateBatch], start: int) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for each in batches:
        for offset in range(max(start, each.first_offset), each.last_offset + 1):
            state = (each.delivery_count, each.delivery_state)
            expected[offset] = max(state, expected.get(offset, state))

    combined = combine(batches, start)

    found = {}
    for each in combined:
        for offset in range(each.first_offset, each.last_offset + 1):
            assert offset not in found
            found[offset] = (each.delivery_count, each.delivery_state)
    assert expected == found
    for before, after in pairwise(combined):
        is_equal = (before.delivery_count, before.delivery_state) == (
            after.delivery_count,
            after.delivery_state,
        )
        assert before.last_offset + 1 < after.first_offset or not is_equal
