"""
Apache Kafka's command-line tools, kept warm: one virtual machine runs all of them.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from tests.support.apache_kafka import java
from tests.support.java_programs import compiled

SOURCE: Final = Path(__file__).parents[1] / "java" / "Toolbox.java"

_PACKAGE = "org.apache.kafka.tools."
TOOLS: Final[Mapping[str, str]] = {
    "kafka-acls": f"{_PACKAGE}AclCommand",
    "kafka-broker-api-versions": f"{_PACKAGE}BrokerApiVersionsCommand",
    "kafka-client-metrics": f"{_PACKAGE}ClientMetricsCommand",
    "kafka-cluster": f"{_PACKAGE}ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{_PACKAGE}consumer.ConsoleConsumer",
    "kafka-console-producer": f"{_PACKAGE}ConsoleProducer",
    "kafka-console-share-consumer": f"{_PACKAGE}consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": f"{_PACKAGE}consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": f"{_PACKAGE}ConsumerPerformance",
    "kafka-delegation-tokens": f"{_PACKAGE}DelegationTokenCommand",
    "kafka-delete-records": f"{_PACKAGE}DeleteRecordsCommand",
    "kafka-dump-log": f"{_PACKAGE}DumpLogSegments",
    "kafka-e2e-latency": f"{_PACKAGE}EndToEndLatency",
    "kafka-features": f"{_PACKAGE}FeatureCommand",
    "kafka-get-offsets": f"{_PACKAGE}GetOffsetShell",
    "kafka-groups": f"{_PACKAGE}GroupsCommand",
    "kafka-leader-election": f"{_PACKAGE}LeaderElectionCommand",
    "kafka-log-dirs": f"{_PACKAGE}LogDirsCommand",
    "kafka-metadata-quorum": f"{_PACKAGE}MetadataQuorumCommand",
    "kafka-producer-perf-test": f"{_PACKAGE}ProducerPerformance",
    "kafka-reassign-partitions": f"{_PACKAGE}reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": f"{_PACKAGE}ReplicaVerificationTool",
    "kafka-share-groups": f"{_PACKAGE}consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-application-reset": f"{_PACKAGE}StreamsResetter",
    "kafka-streams-groups": f"{_PACKAGE}streams.StreamsGroupCommand",
    "kafka-topics": f"{_PACKAGE}TopicCommand",
    "kafka-transactions": f"{_PACKAGE}TransactionsCommand",
    "kafka-verifiable-consumer": f"{_PACKAGE}VerifiableConsumer",
    "kafka-verifiable-producer": f"{_PACKAGE}VerifiableProducer",
}

_ALONE: Final = frozenset({"kafka-verifiable-consumer", "kafka-verifiable-producer"})
"""
They print what they have done while the virtual machine goes down, and so need one each.
"""

PATIENCE: Final = 90.0
"""
Seconds after which a tool that still runs has failed.
"""


class Printed(NamedTuple):
    status: int
    out: str
    err: str


class Running(Protocol):
    def wait(self) -> Printed:
        """
        What it left, once it has ended.
        """

    def interrupt(self) -> None:
        """
        Ask it to end, as a signal does.
        """


class Process:
    def __init__(self, *command: str, given: str = "", until: str = "") -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8"
        )
        self._given = given
        self._until = until

    def wait(self) -> Printed:
        """
        What it left, once it has ended, or has been ended for a line that it printed.
        """
        killer = threading.Timer(PATIENCE, self._process.kill)
        killer.start()
        try:
            out = self._read_until() if self._until else ""
            rest, err = self._process.communicate(None if self._until else self._given)
        finally:
            killer.cancel()
        return Printed(self._process.returncode, out + rest, err)

    def interrupt(self) -> None:
        self._process.terminate()

    def _read_until(self) -> str:
        assert self._process.stdout is not None
        lines = []
        for line in self._process.stdout:
            lines.append(line)
            if self._until in line:
                self.interrupt()
                break
        return "".join(lines)


class Toolbox:
    """
    Runs tools, as many at a time as are asked for.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Printed]] = {}
        self._writing = threading.Lock()
        self._machine = subprocess.Popen(
            java("Toolbox", heap="512m", extra_class_path=compiled(SOURCE)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        threading.Thread(target=self._read_answers, daemon=True).start()

    def start(self, tool: str, *arguments: str, given: str = "", until: str = "") -> Running:
        """
        Begin a run of *tool* with *given* as its standard input.

        Args:
            until: what the line has in it after which a tool is ended that would go on forever.
        """
        if tool in _ALONE or until:
            return Process(*java(TOOLS[tool], *arguments), given=given, until=until)
        if tool not in TOOLS:
            return Process(tool, *arguments, given=given)
        number = next(self._numbers)
        result = self._waiting[number] = Future()
        self.ask(number, {"class": TOOLS[tool], "arguments": arguments, "given": given})
        return Warm(self, number, result)

    def close(self) -> None:
        self._machine.kill()
        self._machine.communicate()

    def ask(self, number: int, request: Mapping[str, Any]) -> None:
        assert self._machine.stdin is not None
        with self._writing:
            self._machine.stdin.write(json.dumps({"id": number, **request}) + "\n")
            self._machine.stdin.flush()

    def _read_answers(self) -> None:
        assert self._machine.stdout is not None
        for line in self._machine.stdout:
            answer = json.loads(line)
            printed = Printed(answer["status"], answer["out"], answer["err"])
            self._waiting.pop(answer["id"]).set_result(printed)
        for left in self._waiting.values():
            left.set_exception(AssertionError("the virtual machine of the tools has ended"))


class Warm:
    """
    A tool in the virtual machine of all.
    """

    def __init__(self, toolbox: Toolbox, number: int, result: Future[Printed]) -> None:
        self._toolbox = toolbox
        self._number = number
        self._result = result

    def wait(self) -> Printed:
        return self._result.result(PATIENCE)

    def interrupt(self) -> None:
        self._toolbox.ask(self._number, {"interrupt": True})
