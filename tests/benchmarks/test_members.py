from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from benchmarks import members as module
from benchmarks.members import LEAVING, Members

TOPIC = UUID(int=1)
Script = list[tuple[int, list[int] | None]]
"""For each heartbeat, the epoch that the broker answers, and the partitions if they are new."""


class Coordinator:
    """
    A broker with one connection, which answers heartbeats from a script.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[ConsumerGroupHeartbeatRequest] = []

    @contextmanager
    def connections(self) -> Iterator[list[socket.socket]]:
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=self._serve, args=[theirs])
        thread.start()
        with ours:
            yield [ours]
        thread.join(10)

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as frames:
            for epoch, partitions in self.script:
                frame = frames.read(int.from_bytes(frames.read(4), "big"))
                if not frame:
                    return
                body = frame[8 + 2 + len("bench") + 1 :]
                self.asked.append(decode(ConsumerGroupHeartbeatRequest, module.VERSION, body))
                self._answer(connection, epoch, partitions)

    def _answer(self, connection: socket.socket, epoch: int, partitions: list[int] | None) -> None:
        owned = [TopicPartitions(topic_id=TOPIC, partitions=partitions or [])]
        response = ConsumerGroupHeartbeatResponse(
            error_code=-min(epoch, 0),
            member_epoch=epoch,
            heartbeat_interval_ms=5000,
            assignment=None if partitions is None else Assignment(topic_partitions=owned),
        )
        data = bytes(module.HEADER_BYTES) + encode(response, module.VERSION)
        connection.sendall(len(data).to_bytes(4, "big") + data)


def test_members_are_settled_when_each_partition_has_one_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    One member has both partitions until it learns of the other and confirms a revocation.
    """
    monkeypatch.setattr(module, "ROUND_S", 0.0)
    said = iter([False, True])
    monkeypatch.setattr(Members, "_are_stable", lambda _: next(said))
    coordinator = Coordinator(
        [
            *[(1, [0, 1]), (2, [])],  # both join
            *[(1, [0]), (2, None)],  # the first one has to give up a partition
            (2, None),  # it has
            *[(2, None), (2, [1])],
            (2, None),
            *[(2, None), (2, None)],  # another assignment may be under way
            *[(2, None), (2, None)],  # steady
            *[(LEAVING + 1, None), (LEAVING + 1, None)],
        ]
    )
    with coordinator.connections() as connections:
        members = Members(connections, ["g", "g"], "t", 2)
        members.join()
        assert not members.are_settled()
        members.settle()
        assert members.are_settled()
        assert 2 == members.beat(round(2 / module.TICK_S), module.TICK_S)
        members.leave()

    asked = coordinator.asked
    assert [0, 0, 1, 2, 1, 2, 2, 2, 2, 2, 2, 2, -1, -1] == [each.member_epoch for each in asked]
    assert [["t"], ["t"], *[None] * 12] == [each.subscribed_topic_names for each in asked]
    assert [TopicPartitions(topic_id=TOPIC, partitions=[0])] == asked[4].topic_partitions
    assert None is asked[8].topic_partitions


def test_coordinator_that_is_loading_is_retried() -> None:
    coordinator = Coordinator([(-14, None), (1, [0])])
    with coordinator.connections() as connections:
        Members(connections, ["g"], "t", 1).join()

    assert 2 == len(coordinator.asked)


def test_error_ends_the_wait_for_members() -> None:
    coordinator = Coordinator([(-110, None)])
    with (
        coordinator.connections() as connections,
        pytest.raises(RuntimeError, match="110"),
    ):
        Members(connections, ["g"], "t", 1).join()


def test_wait_for_members_has_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ROUND_S", 0.01)
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    coordinator = Coordinator([(1, [0]), *[(1, None)] * 10])

    with coordinator.connections() as connections:
        members = Members(connections, ["g"], "t", 2)
        members.join()
        with pytest.raises(TimeoutError, match="1 members"):
            members.settle()
