"""
Rows become batches, as another reader of records sees them.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from barnabas.client.partitioner import murmur2
from barnabas.pipeline.errors import RowError
from barnabas.pipeline.schemas import HEADERS
from barnabas.pipeline.writing import partitioning
from barnabas.pipeline.writing.encode import RecordSet, halves, record_sets
from barnabas.pipeline.writing.rows import Rows, encoded_headers
from barnabas.pipeline.writing.task import chunks
from barnabas.protocol.records.record import iter_records
from barnabas.storage.topic_partition import TopicPartition

BATCH_BYTES = 50_000
PLACES = {number: TopicPartition("t", number) for number in range(3)}


def some_bytes(chance: random.Random, most: int) -> bytes | None:
    return (
        None if chance.random() < 0.2 else chance.randbytes(chance.choice((0, 1, 3, 4, 70, most)))
    )


def some_headers(chance: random.Random) -> list[dict[str, Any]] | None:
    if chance.random() < 0.3:
        return None
    return [
        {
            "key": f"name {chance.random()}"[: chance.randint(0, 12)],
            "value": some_bytes(chance, 300),
        }
        for _ in range(chance.randrange(4))
    ]


class Written:
    def __init__(self, seed: int, *, keys: bool = True) -> None:
        chance = random.Random(seed)
        count = 400
        self.keys = [some_bytes(chance, 9000) if keys else None for _ in range(count)]
        self.values = [some_bytes(chance, 9000) for _ in range(count)]
        self.headers = [some_headers(chance) for _ in range(count)]
        self.times = [chance.choice((0, -1, 2**40, 2**62, 1_700_000_000_000)) for _ in range(count)]
        self.groups = [chance.randrange(3) for _ in range(count)]
        numbers = np.arange(count)
        lists = pa.array([None, *self.headers], HEADERS).slice(1)
        rows = Rows(
            pa.array([b"x", *self.values], pa.binary()).slice(1),
            pa.array(self.keys, pa.binary()) if keys else None,
            np.array(self.times, np.int64),
            encoded_headers(lists, numbers, 0),
            numbers,
        )
        groups = np.array(self.groups, np.int64)
        self.sets = record_sets(rows, groups, PLACES, BATCH_BYTES)

    def check(self, records: RecordSet) -> list[int]:
        """
        The numbers of the rows in a batch; every row has to be unchanged.
        """
        numbers: list[int] = records.rows.numbers.tolist()
        read = iter_records(
            bytes(records.payload),
            len(records),
            base_timestamp=int(records.rows.timestamps[0]),
        )
        for place, (number, record) in enumerate(zip(numbers, read, strict=True)):
            assert place == record.offset
            assert (self.keys[number], self.values[number]) == (record.key, record.value)
            assert self.times[number] == record.timestamp
            assert [(each["key"], each["value"]) for each in self.headers[number] or ()] == [
                (each.key, each.value) for each in record.headers
            ]
            assert PLACES[self.groups[number]] == records.partition
        return numbers


@pytest.mark.parametrize("seed", range(5))
def test_encoded_records_equal_the_rows(seed: int) -> None:
    """
    Rows keep their order within a partition, and no batch exceeds the maximum size.
    """
    written = Written(seed, keys=seed != 0)

    seen: dict[TopicPartition, list[int]] = {place: [] for place in PLACES.values()}
    for records in written.sets:
        seen[records.partition] += written.check(records)

    for number, place in PLACES.items():
        assert [n for n, group in enumerate(written.groups) if group == number] == seen[place]
    assert all(len(each.payload) <= BATCH_BYTES for each in written.sets)
    assert 1 < len(written.sets) < 400


def test_batch_can_be_split_in_two() -> None:
    written = Written(7)
    whole = max(written.sets, key=len)

    first, second = halves(whole)

    assert whole.rows.numbers.tolist() == [*written.check(first), *written.check(second)]
    assert abs(len(first) - len(second)) <= 1


def test_keys_are_hashed_as_in_the_java_producer() -> None:
    chance = random.Random(3)
    keys = [chance.randbytes(size) for size in [*range(20), 100, 1001] for _ in range(5)]

    assert [murmur2(key) for key in keys] == partitioning.murmur2(pa.array(keys)).tolist()
    assert [murmur2(key) for key in keys[3:]] == partitioning.murmur2(
        pa.array(keys).slice(3)
    ).tolist()


def test_rows_without_keys_are_distributed_round_robin() -> None:
    rotation = partitioning.Rotation()
    chosen = [part for _ in range(3) for part in rotation.take(np.full(10, 100), 400, 4).tolist()]

    assert {0, 1, 2, 3} == set(chosen)
    changes = sum(a != b for a, b in pairwise(chosen))
    assert 14 == changes, "half a batch goes to each"


@pytest.mark.parametrize("header", [None, {"key": None, "value": b""}])
def test_invalid_header_is_reported_with_its_row(header: Any) -> None:
    lists = pa.array([None, [], [{"key": "a", "value": b""}, header]], HEADERS)

    with pytest.raises(RowError, match="header of row 12 of task 4 is null or has no name"):
        encoded_headers(lists, np.arange(10, 13), 4)


def test_small_batches_are_merged_and_large_ones_split() -> None:
    small = pa.record_batch({"value": [b"x" * 1000] * 100})
    large = pa.record_batch({"value": [b"x" * 1_000_000] * 150})

    gathered = [each.num_rows for each in chunks([small] * 200)]
    cut = [each.num_rows for each in chunks([large])]

    assert 20_000 == sum(gathered)
    assert 3 == len(gathered)
    assert 150 == sum(cut)
    assert max(cut) <= 64
