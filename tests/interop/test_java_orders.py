"""
Orders of keys beside Java's own collections, and Kafka's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias, TypeVar

import pytest

from barnabas.coordination.groups.assignors.java_order import hashing
from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.partition_set import (
    PartitionSet,
    copied_order,
)
from barnabas.coordination.groups.assignors.java_order.priority_queue import PriorityQueue
from barnabas.coordination.groups.assignors.java_order.timeline import timeline_order
from barnabas.coordination.java_strings import string_hash
from tests.support.java_programs import run_program

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "java" / "Orders.java"
CASES = 2000
K = TypeVar("K")
Case: TypeAlias = tuple[str, Callable[[], Sequence[object]]]
"""
A line, and what makes our answer.
"""

SAME_HASH = ["".join(parts) for parts in product(("Aa", "BB"), repeat=6)]


def choose_keys(choose: random.Random) -> list[str]:
    """
    Numbers; often with few different low bits, so that bins are crowded.
    """
    step = choose.choice([1, 1, 3, 16, 32, 64, 256, 1024, 65_536])
    count = choose.choice([3, 9, 20, 60, 200])
    start = choose.randrange(2000)
    spread = [start + step * at + choose.randrange(2) for at in range(count)]
    return [f"{number}" for number in spread]


def steps_of(choose: random.Random, keys: list[str], letters: str) -> list[str]:
    """
    Steps with these letters, and removals of keys that are there.
    """
    steps: list[str] = []
    present: dict[str, None] = {}
    removals = choose.choice([0, 0.1, 0.4])
    for _ in range(2 * len(keys)):
        if present and choose.random() < removals:
            key = choose.choice(list(present))
            del present[key]
            steps.append(f"r{key}")
        else:
            key = choose.choice(keys)
            present[key] = None
            steps.append(f"{choose.choice(letters)}{key}")
    return steps


def order_of(order: HashOrder[K], steps: list[str], key_of: Callable[[str], K]) -> list[K]:
    for step in steps:
        key = key_of(step[1:])
        match step[0]:
            case "p":
                order.put(key)
            case "c":
                order.compute_if_absent(key)
            case _:
                order.remove(key)
    return list(order)


def compare(cases: Iterator[Case]) -> None:
    """
    Compare the answers to lines with ours, which are made afterwards.
    """
    lines, ours = zip(*cases, strict=True)
    answers = run_program(SOURCE, lines=[f"{line}\n" for line in lines]).split("\n")
    hashing.java_release = int(answers[0])
    for line, answer, own in zip(lines, answers[1:], ours, strict=False):
        assert answer == " ".join(map(str, own())), line


@pytest.fixture(autouse=True)
def _keep_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "java_release", hashing.java_release)


def test_integer_hash_maps_iterate_as_in_java() -> None:
    def cases() -> Iterator[Case]:
        for seed in range(CASES):
            choose = random.Random(seed)
            steps = steps_of(choose, choose_keys(choose), choose.choice(["p", "c", "pc"]))
            capacity = choose.choice([0, 1, 3, 16, 17, 100])
            order = HashOrder[int](int, hashing.table_size(capacity))
            yield (
                f"numbers\t{capacity}\t{' '.join(steps)}",
                partial(order_of, order, steps, int),
            )

    compare(cases())


def test_string_hash_maps_iterate_as_in_java() -> None:
    def cases() -> Iterator[Case]:
        for seed in range(CASES // 4):
            choose = random.Random(seed)
            keys = [f"{choose.getrandbits(64):x}" for _ in range(100)]
            keys = SAME_HASH + keys if choose.random() < 0.5 else keys
            steps = steps_of(choose, keys, choose.choice(["p", "c", "pc"]))
            order = HashOrder(string_hash)
            yield (
                f"strings\t16\t{' '.join(steps)}",
                partial(order_of, order, steps, str),
            )

    compare(cases())


def test_copied_hash_sets_iterate_as_in_java() -> None:
    def given(numbers: list[int], steps: list[str]) -> Sequence[object]:
        partitions = PartitionSet(hashing.copied(len(numbers)), numbers)
        assert list(copied_order(numbers)) == partitions.ordered()
        for step in steps:
            if step[0] == "p":
                partitions.add(int(step[1:]))
            else:
                partitions.remove(int(step[1:]))
        return partitions.ordered()

    def cases() -> Iterator[Case]:
        for seed in range(CASES):
            choose = random.Random(seed)
            keys = choose_keys(choose)
            copied = list(dict.fromkeys(choose.sample(keys, choose.randrange(len(keys)) + 1)))
            later = [f"p{n}" for n in dict.fromkeys(keys) if n not in copied]
            later += [f"r{n}" for n in copied[::2]]
            steps = [f"k{n}" for n in copied] + later
            yield (
                f"copy\t0\t{' '.join(steps)}",
                partial(given, list(map(int, copied)), later),
            )

    compare(cases())


def test_timeline_hash_maps_iterate_as_in_kafka() -> None:
    def given(steps: list[str]) -> Sequence[object]:
        present: dict[str, None] = {}
        largest = 0
        for step in steps:
            if step[0] == "p":
                present[step[1:]] = None
                largest = max(largest, len(present))
            else:
                del present[step[1:]]
        return timeline_order(present, largest)

    def cases() -> Iterator[Case]:
        for seed in range(CASES // 4):
            choose = random.Random(seed)
            keys = [f"{choose.getrandbits(64):x}" for _ in range(choose.choice([2, 7, 40, 300]))]
            # A coordinator puts each member again soon after it came.
            steps = [
                again
                for step in steps_of(choose, keys, "p")
                for again in ([step] if step[0] == "r" else [step, step])
            ]
            yield f"timeline\t0\t{' '.join(steps)}", partial(given, steps)

    compare(cases())


def test_priority_queues_order_as_in_java() -> None:
    def given(steps: list[str]) -> Sequence[object]:
        queue = PriorityQueue[str](lambda item: ord(item[0]))
        answers: list[object] = []
        for step in steps:
            if step[0] == "p":
                queue.add(step[1:])
            else:
                answers.append(queue.poll() or "null")
        return answers

    def cases() -> Iterator[Case]:
        for seed in range(CASES // 4):
            choose = random.Random(seed)
            letters = "abc" if seed % 2 else "abcdefghijklmnop"
            steps = [
                f"p{choose.choice(letters)}{number}" if choose.random() < 0.6 else "g"
                for number in range(choose.randrange(1, 60))
            ]
            yield f"queue\t0\t{' '.join(steps)}", partial(given, steps)

    compare(cases())
