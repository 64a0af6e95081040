from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.groups.assignors.range_assignor import assign
from barnabas.coordination.groups.assignors.spec import GroupSpec, SubscriptionType
from tests.support.assignments import A, B, C, group, member, owners, plain


def test_unchanged_target_is_returned_as_it_is() -> None:
    m0, m1 = member(A, B, target={B: [1, 0], A: [1, 0]}), member(A, B, target={A: [2], B: [1, 2]})

    assignments = assign(group(m0=m0, m1=m1), {A: 3, B: 3})

    assert m0.target is assignments["m0"]
    assert {A: [2], B: [2]} == plain(assignments)["m1"]


@given(
    st.lists(st.sets(st.sampled_from([A, B, C])), min_size=1, max_size=7),
    st.lists(st.integers(0, 20), min_size=3, max_size=3),
)
def test_every_partition_has_one_subscriber_and_ranges_are_contiguous(
    subscriptions: list[set[UUID]], counts: list[int]
) -> None:
    partition_counts = dict(zip((A, B, C), counts, strict=True))
    members = group(**{f"m{at}": member(*topics) for at, topics in enumerate(subscriptions)})

    assignments = assign(members, partition_counts)

    subscribed = set().union(*subscriptions)
    assert {(t, n): 1 for t in subscribed for n in range(partition_counts[t])} == owners(
        assignments
    )
    for member_id, assignment in assignments.items():
        assert assignment.keys() <= members.members[member_id].subscribed_topic_ids.as_set
        for numbers in assignment.values():
            assert list(range(numbers[0], numbers[-1] + 1)) == list(numbers)
    for topic_id in subscribed:
        lengths = [
            len(assignments[f"m{at}"].get(topic_id, ()))
            for at, topics in enumerate(subscriptions)
            if topic_id in topics
        ]
        assert max(lengths) - min(lengths) <= 1
        assert lengths == sorted(lengths, reverse=True)


def test_homogeneous_group_is_cut_like_a_heterogeneous_one() -> None:
    members = {f"m{at}": member(A, B, C) for at in range(5)}
    counts = {A: 7, B: 3, C: 20}

    together, each = (assign(GroupSpec(members, kind), counts) for kind in SubscriptionType)

    assert together == each
