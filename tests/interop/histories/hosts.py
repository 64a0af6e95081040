"""
The brokers of histories, and the faults that they meet.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from tests.interop.histories.history import Fault
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import Barnabas, BrokerProcess
from tests.support.control_client import ControlledBroker

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "auto.create.topics.enable": "false",
}

DURABLE: Final = {"log.flush.interval.messages": "1"}
"""
With this, what is acknowledged survives a loss of power.
"""


class Host(Protocol):
    @property
    def port(self) -> int: ...
    async def start(self) -> None: ...
    async def close(self) -> None: ...
    async def meet(self, kind: str, values: Mapping[str, Any]) -> Fault: ...
    async def heal(self) -> None: ...
    async def kill(self) -> Fault: ...
    def log_text(self) -> str: ...


class ProcessHost:
    """
    A broker on a directory.
    """

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process

    @classmethod
    def of(cls, directory: Path, *, apache: bool = False) -> ProcessHost:
        kind = ApacheKafka if apache else Barnabas
        settings = dict(SETTINGS)
        if not apache:
            settings |= {"log.index.size.max.bytes": "65536"}
        return cls(kind(directory, settings=settings))

    @property
    def port(self) -> int:
        return self.process.port

    async def start(self) -> None:
        await asyncio.to_thread(self.process.start)

    async def close(self) -> None:
        with suppress(ProcessLookupError, AssertionError):
            os.kill(self.process.pid, signal.SIGCONT)
        await asyncio.to_thread(self.process.close)

    async def kill(self) -> Fault:
        return await self.meet("kill", {"ms": 0})

    async def meet(self, kind: str, values: Mapping[str, Any]) -> Fault:
        began = time.monotonic()
        match kind:
            case "kill":
                await asyncio.to_thread(self.process.kill)
            case "stop":
                await asyncio.to_thread(self.process.stop)
            case "pause":
                os.kill(self.process.pid, signal.SIGSTOP)
            case "full disk" if isinstance(self.process, Barnabas):
                # No file may become longer, as on a full disk with EFBIG in place of ENOSPC.
                resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (5000, -1))
            case "full disk":
                return Fault(actor="", kind="none", began=began)
            case _:
                raise AssertionError(kind)
        await asyncio.sleep(values["ms"] / 1000)
        if kind == "pause":
            os.kill(self.process.pid, signal.SIGCONT)
        else:
            await asyncio.to_thread(self.process.kill)
            await self.start()
        return Fault(
            actor="faults",
            began=began,
            ended=time.monotonic(),
            kind=kind,
            ends_sessions=kind != "pause",
        )

    async def heal(self) -> None:
        if not self.process.is_running:
            await self.start()

    def log_text(self) -> str:
        return self.process.log_text()


class MemoryHost:
    """
    A broker on a disk in memory, with a clock that can be moved.
    """

    def __init__(self) -> None:
        self._broker: ControlledBroker | None = None
        self._port = 0

    @property
    def broker(self) -> ControlledBroker:
        assert self._broker is not None
        return self._broker

    @property
    def port(self) -> int:
        return self._port

    async def start(self) -> None:
        settings = {**SETTINGS, **DURABLE, "log.index.size.max.bytes": "16384"}
        arguments = [a for name, value in settings.items() for a in ("--set", f"{name}={value}")]
        self._broker = await asyncio.to_thread(lambda: ControlledBroker(*arguments))
        self._port = await asyncio.to_thread(lambda: self.broker.port)

    async def close(self) -> None:
        if self._broker is not None:
            await asyncio.to_thread(self._broker.close)

    async def _post(self, path: str, **fields: object) -> Any:
        return await asyncio.to_thread(lambda: self.broker.control.post(path, **fields))

    async def _end(self, how: str = "kill", **fields: object) -> None:
        running = await asyncio.to_thread(lambda: self.broker.control.get("/v1/broker"))
        if running["running"]:
            await self._post(f"/v1/broker/{how}", **fields)

    async def kill(self) -> Fault:
        return await self.meet("kill", {"ms": 0})

    async def meet(self, kind: str, values: Mapping[str, Any]) -> Fault:
        began = time.monotonic()
        milliseconds = values["ms"]
        match kind:
            case "kill":
                await self._end()
            case "power loss":
                await self._end("power-loss", keep=milliseconds)
            case "failed write":
                fields = {"error": "ENOSPC", "only": ["write"], "at": milliseconds // 5}
                await self._post("/v1/disk/fail", **fields, forever=True, written=milliseconds // 5)
            case "failed sync":
                await self._post("/v1/disk/fail", error="EIO", only=["sync"], at=milliseconds // 10)
            case "slow disk":
                await self._post("/v1/disk/delay", seconds=0.01, only=["sync", "write"])
            case "clock jump":
                await self._post("/v1/clock/advance", seconds=milliseconds / 2)
            case _:
                raise AssertionError(kind)
        await asyncio.sleep(max(milliseconds, 20) / 1000)
        is_down = kind in ("kill", "power loss", "failed write", "failed sync")
        if kind != "clock jump":
            await self._post("/v1/disk/heal")
        if is_down:
            if kind == "failed sync":
                # The pages that were not written may be gone: only what is synced counts.
                await self._end("power-loss", keep="nothing")
            await self._end()
            await self._post("/v1/broker/start")
        return Fault(
            actor="faults",
            began=began,
            ended=time.monotonic(),
            kind=kind,
            ends_sessions=is_down,
            moves_time=kind == "clock jump",
        )

    async def heal(self) -> None:
        await self._post("/v1/disk/heal")
        running = await asyncio.to_thread(lambda: self.broker.control.get("/v1/broker"))
        if not running["running"]:
            await self._post("/v1/broker/start")

    def log_text(self) -> str:
        return "\n".join(self.broker.control.get("/v1/log")["lines"])
