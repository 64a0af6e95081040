"""
Members of consumer groups that send heartbeats (KIP-848) and consume nothing: thousands of them in
one process.

::

    join      a heartbeat of each member, which subscribes to the topic
    settle    rounds of heartbeats, until every partition has its owner and all epochs are the same
    beat      heartbeats that change nothing, at a fixed rate
    leave     the last heartbeat of each member

Members share connections. A member tells the broker what it owns when that has changed, as the Java
client does.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.protocol.codec.codec import decode
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from benchmarks.topics import LOCAL, PATIENCE
from benchmarks.wire import ask, exactly
from tests.support.wire_client import request_frame

VERSION: Final = 1
DESCRIBE: Final = 0
"""The version of ConsumerGroupDescribe."""
DESCRIBED_AT_ONCE: Final = 500
HEADER_BYTES: Final = 5
"""The correlation id of a response, and no tagged fields."""
CONNECTIONS: Final = 50
UNDER_WAY: Final = 20
"""Heartbeats that a connection has unanswered."""
ROUND_S: Final = 0.5
"""Seconds between the beginnings of two rounds, unless a round takes longer."""
TICK_S: Final = 0.005
LONGEST_MS: Final = 300_000
LEAVING: Final = -1
NOT_READY: Final = frozenset({14, 15, 16})
"""The coordinator is still loading, not there yet, or elsewhere: the heartbeat is sent again."""


@dataclass(slots=True)
class _Member:
    group: str
    member_id: str
    epoch: int = 0
    owned: list[TopicPartitions] = field(default_factory=list)
    has_news: bool = True
    """Whether the next heartbeat tells the broker what the member owns."""

    def frame(self, **fields: Any) -> bytes:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=fields.pop("epoch", self.epoch),
            topic_partitions=self.owned if self.has_news else None,
            **fields,
        )
        return request_frame(request, VERSION, 1, "bench")

    def learn(self, answer: bytes) -> None:
        response = decode(ConsumerGroupHeartbeatResponse, VERSION, answer[HEADER_BYTES:])
        if response.error_code in NOT_READY:
            return
        if response.error_code:
            raise RuntimeError(f"{response.error_code}: {response.error_message}")
        self.epoch = response.member_epoch
        self.has_news = response.assignment is not None
        if response.assignment is not None:
            self.owned = [
                TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                for each in response.assignment.topic_partitions
            ]

    @property
    def partitions(self) -> int:
        return sum(len(each.partitions) for each in self.owned)


class Members:
    """
    One member for each of *groups*, which may name a group many times.

    Args:
        topic: what all of them subscribe to.
        partitions: of the topic.

    Raises:
        RuntimeError: the broker answers a heartbeat with an error.
    """

    def __init__(
        self,
        connections: Sequence[socket.socket],
        groups: Iterable[str],
        topic: str,
        partitions: int,
    ) -> None:
        self._connections = connections
        self._members = [_Member(group, f"member-{at}") for at, group in enumerate(groups)]
        self._topic = topic
        self._partitions = partitions

    def __len__(self) -> int:
        return len(self._members)

    def join(self) -> None:
        """
        Send the first heartbeat of each member.

        Raises:
            TimeoutError: the coordinator is not ready, after a long time.
        """
        joining = {"subscribed_topic_names": [self._topic], "rebalance_timeout_ms": LONGEST_MS}
        deadline = time.monotonic() + PATIENCE
        while outside := [member for member in self._members if not member.epoch]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(outside)} members cannot join")
            self._send((member, member.frame(**joining)) for member in outside)

    def settle(self) -> None:
        """
        Send heartbeats until all groups are stable.

        Raises:
            TimeoutError: they are not, after a long time.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            began = time.monotonic()
            self._send((member, member.frame()) for member in self._members)
            while news := [member for member in self._members if member.has_news]:
                self._send((member, member.frame()) for member in news)
            if self.are_settled() and self._are_stable():
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self)} members have no stable assignment")
            time.sleep(max(0.0, began + ROUND_S - time.monotonic()))

    def are_settled(self) -> bool:
        """
        Whether each group has one epoch, and an owner for each partition.
        """
        epochs: defaultdict[str, set[int]] = defaultdict(set)
        owned: defaultdict[str, int] = defaultdict(int)
        for member in self._members:
            epochs[member.group].add(member.epoch)
            owned[member.group] += member.partitions
        return all(
            len(found) == 1 and owned[group] == self._partitions for group, found in epochs.items()
        )

    def _are_stable(self) -> bool:
        """
        Whether the broker says so: another assignment may be under way that no member knows of.
        """
        groups = sorted({member.group for member in self._members})
        for at in range(0, len(groups), DESCRIBED_AT_ONCE):
            request = ConsumerGroupDescribeRequest(
                group_ids=groups[at : at + DESCRIBED_AT_ONCE], include_authorized_operations=False
            )
            answer = ask(self._connections[0], request_frame(request, DESCRIBE, 1, "bench"))
            described = decode(ConsumerGroupDescribeResponse, DESCRIBE, answer[4 + HEADER_BYTES :])
            if any(group.group_state != "Stable" for group in described.groups):
                return False
        return True

    def beat(self, per_second: int, seconds: float) -> int:
        """
        Send heartbeats that change nothing, each when it is due; return how many there were.
        """
        frames = itertools.cycle([(member, member.frame()) for member in self._members])
        in_a_tick = round(per_second * TICK_S)
        ticks = round(seconds / TICK_S)
        began = time.monotonic()
        for tick in range(ticks):
            self._send(itertools.islice(frames, in_a_tick))
            time.sleep(max(0.0, began + (tick + 1) * TICK_S - time.monotonic()))
        return ticks * in_a_tick

    def leave(self) -> None:
        """
        Send the last heartbeat of each member.
        """
        self._send((member, member.frame(epoch=LEAVING)) for member in self._members)

    def _send(self, frames: Iterable[tuple[_Member, bytes]]) -> None:
        """
        Send the heartbeats, spread over the connections, and learn from the answers.
        """
        rest = iter(frames)
        while turn := [
            (connection, some)
            for connection in self._connections
            if (some := [*itertools.islice(rest, UNDER_WAY)])
        ]:
            for connection, some in turn:
                connection.sendall(b"".join(frame for _, frame in some))
            for connection, some in turn:
                for member, _ in some:
                    size = int.from_bytes(exactly(connection, 4), "big")
                    member.learn(exactly(connection, size))


@contextmanager
def connections(port: int, count: int = CONNECTIONS) -> Iterator[list[socket.socket]]:
    """
    So many connections to the broker.
    """
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            opened.append(socket.create_connection((LOCAL, port), timeout=PATIENCE))
        yield opened
    finally:
        for connection in opened:
            connection.close()
