from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.groups.assignors.simple_assignor import assign
from barnabas.coordination.groups.assignors.spec import MemberSpec
from tests.support.assignments import A, B, C, group, member, owners, plain, sizes


class TestHomogeneous:
    """
    The hash codes of the partitions of A are 31, 32, ...: 0 is the last one in a table of 16.
    """

    def test_only_assignable_partitions_are_assigned(self) -> None:
        members = group(m0=member(A, B))._replace(assignable={A: frozenset({1, 7})})

        assert {"m0": {A: [1]}} == plain(assign(members, {A: 3, B: 2}))
        assert {"m0": {}} == assign(members._replace(assignable={}), {A: 3, B: 2})

    def test_topics_without_partitions_stay_in_the_assignment(self) -> None:
        # Kafka keeps and writes them.
        members = group(m0=member(A, target={A: [0]}), m1=member(A, target={A: [0]}))

        assignments = assign(members._replace(assignable={}), {A: 1})

        assert {"m0": {A: []}, "m1": {A: []}} == plain(assignments)

    @given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1), st.integers(1, 12))
    def test_members_that_come_and_go_keep_the_assignment_balanced(
        self, steps: list[tuple[int, bool]], count: int
    ) -> None:
        members: dict[str, MemberSpec] = {}
        for at, is_there in steps:
            if is_there:
                members.setdefault(f"m{at}", member(A))
            else:
                members.pop(f"m{at}", None)
            if not members:
                continue
            assignments = assign(group(**members), {A: count})
            members = {m: s._replace(target=assignments[m]) for m, s in members.items()}

            sharing = -(-len(members) // count)
            shared = owners(assignments)
            assert {(A, number) for number in range(count)} == shared.keys()
            assert max(shared.values()) <= sharing
            desired = sharing * count / len(members)
            assert max(sizes(assignments).values()) < desired + 1


class TestHeterogeneous:
    @given(
        st.lists(
            st.tuples(st.integers(0, 5), st.sets(st.sampled_from([A, B, C]))),
            min_size=1,
            max_size=10,
        )
    )
    def test_members_that_change_their_subscriptions_keep_the_assignment_balanced(
        self, steps: list[tuple[int, set[UUID]]]
    ) -> None:
        counts = {A: 1, B: 4, C: 9}
        members: dict[str, MemberSpec] = {}
        for at, topics in steps:
            old = members.get(f"m{at}", member())
            members[f"m{at}"] = member(*topics, target=old.target)
            assignments = assign(group(**members), counts)
            members = {m: s._replace(target=assignments[m]) for m, s in members.items()}

            shared = owners(assignments)
            for topic_id in set().union(*(s.subscribed_topic_ids for s in members.values())):
                for number in range(counts[topic_id]):
                    assert shared[topic_id, number] >= 1


def test_unchanged_target_is_returned_as_it_is() -> None:
    members = group(m0=member(A, target={A: [2, 0]}), m1=member(A, target={A: [1]}))

    assignments = assign(members, {A: 3})

    assert all(spec.target is assignments[m] for m, spec in members.members.items())
