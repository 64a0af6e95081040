"""
A group whose members are processes of their own: they are closed or killed, and say what they do.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Generic, Self, TypeVar

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from tests.interop.clients.base import NewRecord
from tests.interop.clients.confluent import Confluent
from tests.interop.committed import group_offsets
from tests.support.apache_kafka import java
from tests.support.broker_process import BrokerProcess
from tests.support.java_programs import compiled

ROOT = Path(__file__).parents[2]
JAVA_MEMBER = Path(__file__).parent / "java" / "Member.java"
PATIENCE = 60.0
_ADMIN_PATIENCE = 30.0


def java_member(source: Path, *arguments: str) -> list[str]:
    """
    The command of a member that is a program of ours in Java.
    """
    classes = compiled(source)
    return java(source.stem, *arguments, heap="96m", level="error", extra_class_path=classes)


class MemberProcess:
    """
    A member in a process of its own. Subclasses read its lines in `hear`, in a thread.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the process has ended
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            text=True,
        )
        self._reader = threading.Thread(target=self._listen)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def hear(self, words: Sequence[str]) -> None:
        """
        Take the words of a line that it printed.
        """
        raise AssertionError("each kind of member has its own lines")

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def wait(self) -> None:
        """
        Wait until it has ended, and take its last lines.
        """
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        if not self._errors.closed:
            self._errors.seek(0)
            if said := self._errors.read().decode(errors="replace"):
                print(said[-2000:])
            self._errors.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.hear(line.split())


M = TypeVar("M", bound=MemberProcess)


class LiveGroup(Generic[M]):
    """
    The members of one group, and the topics that they read.
    """

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self.broker, self.topic = broker, topic
        self.group_id = f"group-of-{topic}"
        self.members: list[M] = []
        self.admin = AdminClient(
            {
                "bootstrap.servers": broker.bootstrap,
                # librdkafka 2.16 bootstraps again when the only broker stops, and a request that
                # waits for the coordinator it knew before then waits until it times out.
                "metadata.recovery.strategy": "none",
            }
        )
        self.client = Confluent()
        self.partition_counts: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()

    def create(self, topic: str, partitions: int) -> None:
        self.client.create_topic(self.broker.bootstrap, topic, partitions, {})
        self.partition_counts[topic] = partitions

    def grow(self, partitions: int) -> None:
        (done,) = self.admin.create_partitions([NewPartitions(self.topic, partitions)]).values()
        done.result(_ADMIN_PATIENCE)
        self.partition_counts[self.topic] = partitions

    def delete(self) -> None:
        (done,) = self.admin.delete_topics([self.topic]).values()
        done.result(_ADMIN_PATIENCE)

    def wait_until(
        self, condition: Callable[[], bool], what: str, seconds: float = PATIENCE
    ) -> float:
        """
        Wait, and return how long it took.
        """
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < seconds, f"{what}: {self.situation()}"
            time.sleep(0.02)
        return time.monotonic() - began

    def situation(self) -> str:
        """
        What is told of the group if a wait was in vain.
        """
        raise AssertionError("each kind of group says what it waits for")


class ReadingMember(MemberProcess):
    def __init__(self, library: str, *arguments: str) -> None:
        self.assignments: list[set[str]] = []
        self.read: set[tuple[str, int, int]] = set()
        if library == "Java":
            command = java_member(JAVA_MEMBER, *arguments)
        elif "consumer" in arguments:
            command = [sys.executable, "-m", "tests.interop.consumer_member", *arguments]
        else:
            command = [sys.executable, "-m", "tests.interop.group_member", library, *arguments]
        super().__init__(command)

    @property
    def assigned(self) -> set[str]:
        return self.assignments[-1] if self.assignments else set()

    def hear(self, words: Sequence[str]) -> None:
        match words:
            case ["assigned", "-"]:
                self.assignments.append(set())
            case ["assigned", listed]:
                self.assignments.append(set(listed.split(",")))
            case ["read", topic, partition, offset]:
                self.read.add((topic, int(partition), int(offset)))


class ReadingGroup(LiveGroup[ReadingMember]):
    """
    Members of one consumer group with one topic, or those of a pattern.
    """

    def __init__(
        self,
        broker: BrokerProcess,
        topic: str,
        partitions: int = 4,
        library: str = "confluent-kafka",
        protocol: str = "consumer",
    ) -> None:
        super().__init__(broker, topic)
        self.library, self.protocol = library, protocol
        self.sent: set[tuple[str, int, int]] = set()
        self._numbers = count()
        self.create(topic, partitions)

    def join(
        self,
        instance: str | None = None,
        *,
        protocol: str | None = None,
        pattern: str | None = None,
        library: str | None = None,
    ) -> ReadingMember:
        member = ReadingMember(
            library or self.library,
            self.broker.bootstrap,
            self.group_id,
            protocol or self.protocol,
            pattern or self.topic,
            instance or "-",
        )
        self.members.append(member)
        return member

    def send(self, topic: str | None = None) -> None:
        """
        Produce three records to each partition.
        """
        topic = topic or self.topic
        records = [
            NewRecord(b"%d" % next(self._numbers), partition=partition)
            for partition in range(self.partition_counts[topic])
            for _ in range(3)
        ]
        for place in self.client.produce(self.broker.bootstrap, topic, records, "none"):
            self.sent.add((topic, *place))

    def situation(self) -> str:
        unread = sorted(self.sent - self.all_read())[:5]
        return f"{[m.assigned for m in self.members]}, not read: {unread}"

    def wait_for_shares(self, *members: ReadingMember, seconds: float = PATIENCE) -> float:
        """
        Wait until these members, and nobody else, share all partitions evenly.
        """
        wanted = {
            f"{topic}:{partition}"
            for topic, partitions in self.partition_counts.items()
            for partition in range(partitions)
        }

        def are_shared() -> bool:
            parts = [member.assigned for member in members]
            sizes = sorted(map(len, parts))
            return (
                sum(sizes) == len(wanted)
                and set().union(*parts) == wanted
                and sizes[-1] - sizes[0] <= 1
            )

        return self.wait_until(are_shared, "shares", seconds)

    def all_read(self) -> set[tuple[str, int, int]]:
        return set().union(*(member.read for member in self.members))

    def send_and_wait(self) -> None:
        """
        Wait until new records, and all before, are read and committed, and nothing else is.
        """
        self.send()
        self.wait_for_records()

    def wait_for_records(self) -> None:
        self.wait_until(lambda: self.all_read() >= self.sent, "records")
        ends: dict[tuple[str, int], int] = {}
        for topic, partition, offset in self.sent:
            ends[topic, partition] = max(ends.get((topic, partition), 0), offset + 1)

        def are_committed() -> bool:
            return ends.items() <= group_offsets(self.broker.bootstrap, self.group_id).items()

        self.wait_until(are_committed, f"committed {ends}")
        assert self.all_read() == self.sent

    def type_and_state(self) -> tuple[str, str] | None:
        """
        As the group is listed; `None` if it is not.
        """
        groups = self.admin.list_consumer_groups().result(30).valid
        found = {g.group_id: (g.type.name, g.state.name) for g in groups}
        return found.get(self.group_id)
