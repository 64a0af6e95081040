from __future__ import annotations

from typing import Any, cast

from barnabas.server.http.api.opened_logs import KEEP_S, MOST, OpenedLogs
from barnabas.storage.explain.logs import ReadOnlyLogs
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.manual_clock import ManualClock

FIRST = TopicPartition("t", 0)


class Logs:
    def __init__(self) -> None:
        self.opened: list[tuple[int, bool]] = []

    def open(self, partition: TopicPartition, again: object) -> Any:
        self.opened.append((partition.partition, again is not None))
        return object()


def use(kept: OpenedLogs, logs: Logs, partition: TopicPartition, stamp: object) -> None:
    kept.use(cast(ReadOnlyLogs, logs), partition, stamp, lambda opened: opened)


def test_unchanged_log_is_opened_once() -> None:
    kept, logs = OpenedLogs(), Logs()
    for stamp in (1, 1, 2, 2, None, None):
        use(kept, logs, FIRST, stamp)

    assert [False, True, False, True, False, False] == [again for _, again in logs.opened]


def test_only_recently_used_logs_are_kept_open() -> None:
    kept, logs = OpenedLogs(), Logs()
    for index in (*range(MOST + 1), MOST, 0):
        use(kept, logs, TopicPartition("t", index), 1)

    assert [(MOST, True), (0, False)] == logs.opened[-2:]


def test_log_that_could_not_be_used_is_reopened() -> None:
    kept, logs = OpenedLogs(), Logs()
    use(kept, logs, FIRST, 1)

    def fail(_: object) -> None:
        raise ValueError

    for work in (fail, lambda _: None):
        try:
            kept.use(cast(ReadOnlyLogs, logs), FIRST, 1, work)
        except ValueError:
            continue

    assert [(0, False), (0, True), (0, False)] == logs.opened


async def test_opened_logs_are_kept_for_a_while_after_the_last_request() -> None:
    clock = ManualClock(0)
    kept, logs = OpenedLogs(), Logs()
    for _ in range(3):
        use(kept, logs, FIRST, 1)
        kept.expire(clock)
        clock.advance(KEEP_S - 1)
    clock.advance(2)
    use(kept, logs, FIRST, 1)

    assert [False, True, True, False] == [again for _, again in logs.opened]
