from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.groups.assignors.java_order import hashing
from barnabas.coordination.groups.assignors.spec import GroupSpec, MemberSpec
from barnabas.coordination.groups.assignors.uniform_assignor import assign
from tests.support.assignments import A, B, C, group, member, owners, plain, sizes


def retarget(members: GroupSpec, counts: dict[UUID, int]) -> GroupSpec:
    assignments = assign(members, counts)
    changed = {m: s._replace(target=assignments[m]) for m, s in members.members.items()}
    return members._replace(members=changed)


class TestHomogeneous:
    @pytest.mark.parametrize(("release", "first"), [(17, 2), (21, 17)])
    def test_order_of_twelve_topics_depends_on_the_java_release(
        self, release: int, first: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # 17 is in bin 17 of 32, or in bin 1 of 16.
        monkeypatch.setattr(hashing, "java_release", release)
        topics = [UUID(int=number) for number in (17, *range(2, 13))]
        members = {f"m{at}": member(*topics) for at in range(12)}

        assignments = assign(group(**members), dict.fromkeys(topics, 1))

        assert {UUID(int=first): (0,)} == assignments["m0"]

    def test_new_member_gets_the_excess_of_others(self) -> None:
        members = group(
            m0=member(A, target={A: [0, 1, 2]}), m1=member(A, target={A: [3, 4, 5]}), m2=member(A)
        )

        assignments = assign(members, {A: 6})

        assert {"m0": {A: [0, 1]}, "m1": {A: [3, 4]}, "m2": {A: [2, 5]}} == plain(assignments)

    @given(
        st.lists(
            st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 15)), min_size=1, max_size=12
        ),
        st.integers(0, 30),
        st.integers(0, 30),
    )
    def test_members_that_come_and_go_keep_the_assignment_balanced(
        self, steps: list[tuple[int, bool, int]], first: int, second: int
    ) -> None:
        counts = {A: first, B: second}
        members: dict[str, MemberSpec] = {}
        for at, is_there, more in steps:
            counts[A] += more
            if is_there:
                members.setdefault(f"m{at}", member(A, B))
            else:
                members.pop(f"m{at}", None)
            if not members:
                continue
            before = group(**members)
            after = retarget(before, counts)
            members = dict(after.members)
            targets = {m: spec.target for m, spec in members.items()}

            expected = {(t, n): 1 for t, count in counts.items() for n in range(count)}
            assert expected == owners(targets)
            total = sizes(targets).values()
            assert max(total) - min(total) <= 1
            quota = sum(counts.values()) // len(members)
            for m, spec in before.members.items():
                had = owners({m: spec.target})
                kept = had & owners({m: targets[m]})
                assert min(quota, had.total()) <= kept.total()
            assert targets == {m: s.target for m, s in retarget(after, counts).members.items()}


class TestHeterogeneous:
    def test_most_loaded_members_release_their_last_partitions(self) -> None:
        members = group(
            m0=member(A, target={A: range(6)}), m1=member(A, B), m2=member(A, B, target={B: [0]})
        )

        assignments = assign(members, {A: 6, B: 1})

        expected = {"m0": {A: [0, 1, 2]}, "m1": {A: [4, 5]}, "m2": {A: [3], B: [0]}}
        assert expected == plain(assignments)

    def test_balanced_assignment_stays_unchanged(self) -> None:
        members = group(
            m0=member(A, target={A: [1]}), m1=member(A, B, target={A: [0]}), m2=member()
        )

        assignments = assign(members, {A: 2, B: 0})

        assert all(spec.target is assignments[m] for m, spec in members.members.items())

    @given(
        st.lists(
            st.tuples(st.integers(0, 5), st.sets(st.sampled_from([A, B, C]))),
            min_size=1,
            max_size=12,
        ),
        st.lists(st.integers(0, 25), min_size=3, max_size=3),
    )
    def test_members_that_change_their_subscriptions_keep_every_topic_assigned(
        self, steps: list[tuple[int, set[UUID]]], sizes_of_topics: list[int]
    ) -> None:
        counts = dict(zip((A, B, C), sizes_of_topics, strict=True))
        members: dict[str, MemberSpec] = {}
        for at, topics in steps:
            old = members.get(f"m{at}", member())
            members[f"m{at}"] = member(*topics, target=old.target)
            members = dict(retarget(group(**members), counts).members)

            targets = {m: spec.target for m, spec in members.items()}
            subscribed = set().union(*(s.subscribed_topic_ids for s in members.values()))
            assert {(t, n): 1 for t in subscribed for n in range(counts[t])} == owners(targets)
            for spec in members.values():
                assert spec.target.keys() <= spec.subscribed_topic_ids.as_set

    @given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 40), st.integers(0, 40))
    def test_subscribers_of_the_same_topics_differ_by_at_most_one_partition(
        self, first: int, second: int, of_a: int, of_b: int
    ) -> None:
        members = {f"a{at}": member(A) for at in range(first)}
        members |= {f"b{at}": member(B) for at in range(second)}

        result = sizes(assign(group(**members), {A: of_a, B: of_b}))

        for letter in "ab":
            total = [size for m, size in result.items() if m.startswith(letter)]
            assert max(total) - min(total) <= 1
