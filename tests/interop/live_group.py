"""
A group whose members are processes of their own: they are closed or killed, and say what they do.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Self, TypeVar

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from tests.interop.clients.confluent import Confluent
from tests.support.apache_kafka import java
from tests.support.broker_process import BrokerProcess
from tests.support.java_programs import compiled

ROOT = Path(__file__).parents[2]
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
        """
        Write a line to its standard input.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """
        Let it leave the group.
        """
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
