from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaStorageError
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.server.broker import PROGRESS_S, Broker, _log_progress
from barnabas.server.network.acceptor import CannotListen
from barnabas.storage.errors import InvalidLogDirectory, LogDirectoryLocked
from barnabas.storage.manager.loading import LoadProgress
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.server import (
    PATIENCE,
    START_MS,
    TestBroker,
    batch,
    broker_config,
    fetch_request,
    fetch_topic,
    produce_request,
    running,
    until,
)
from tests.support.wire_client import Disconnected, WireClient

VERSION = 12


async def produce(client: WireClient, topic: str, partition: int = 0) -> Any:
    answer = await client.ask(produce_request(topic, batch("x"), partition=partition), VERSION)
    return answer.responses[0].partition_responses[0]


async def test_start_logs_the_listeners_and_loaded_logs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "barnabas.server.broker")
    files = MemoryFiles()
    async with running(files) as broker:
        await broker.create("orders", partitions=3)
    caplog.clear()

    async with running(files) as broker:
        ready, _, last = caplog.messages
        port = broker.port

    assert "is ready in 0.00 s (logs: 0.00 s), with 3 partitions of 1 topic in /data" in ready
    assert f"listening on PLAINTEXT://127.0.0.1:{port}, advertised as 127.0.0.1:{port}" == last


async def test_start_after_a_kill_logs_how_much_was_recovered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "barnabas")
    files = MemoryFiles()
    async with running(files) as broker:
        await broker.create("orders", partitions=40)
        async with await broker.client() as client:
            for partition in range(40):
                await produce(client, "orders", partition)
        revive = files.kill()
    revive()
    size = len(batch("x"))
    broken = Path("/data/orders-7") / f"{0:020}.log"
    file = files.open(broken)
    file.truncate(size - 1)
    file.close()
    caplog.clear()

    async with running(files):
        said = [line for line in caplog.messages if "recover" in line or "cut off" in line]

    assert "/data was not stopped cleanly: recovering 40 logs" == said[0]
    assert re.fullmatch(r"recovered 40 segments with [\d,]+ bytes of batches", said[1])
    assert (
        f"{size - 1} bytes at the ends of logs were no whole batches and are cut off;"
        " 0 segments behind lost records are set aside"
    ) == said[2]
    assert 3 == len(said)


@pytest.mark.parametrize(
    "pattern",
    [
        r".*\[KafkaServer id=\d+\] started.*",
        r".*Kafka Server started.*",
        r".*Transitioning from RECOVERY to RUNNING.*",
    ],
)
async def test_start_logs_the_line_that_testcontainers_waits_for_once(
    caplog: pytest.LogCaptureFixture, pattern: str
) -> None:
    """
    The patterns are those of testcontainers for Python, Java and Go.
    """
    caplog.set_level("INFO", "barnabas.server.broker")
    async with running():
        found = [re.fullmatch(pattern, message) is not None for message in caplog.messages]

    assert [True] == [each for each in found if each]


async def test_several_listeners_advertise_their_own_addresses() -> None:
    options = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "advertised_listeners": "INSIDE://inside:1,OUTSIDE://outside:2",
        "listener_security_protocol_map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    }
    found = []
    async with running(**options) as broker:
        for listener in broker.listeners:
            async with await WireClient.open(listener.port) as client:
                metadata = await client.ask(MetadataRequest(topics=[]), VERSION)
                coordinator = await client.ask(FindCoordinatorRequest(key="g"), 3)
                found += [(metadata.brokers[0].host, metadata.brokers[0].port)]
                found += [(coordinator.host, coordinator.port)]

    assert [("inside", 1)] * 2 + [("outside", 2)] * 2 == found


async def test_address_in_use_is_reported_before_anything_is_changed() -> None:
    files = MemoryFiles()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = Broker(broker_config(listeners=f"PLAINTEXT://127.0.0.1:{port}"), files=files)

        with pytest.raises(CannotListen, match=rf"PLAINTEXT://127.0.0.1:{port}: .*in use"):
            await broker.start()
        await broker.stop()

    assert not files.exists(Path("/data"))


async def test_directory_is_used_by_one_broker_only() -> None:
    files = MemoryFiles()
    async with running(files) as broker:
        await broker.create("orders")
        other = Broker(broker_config(), files=files, clock=ManualClock(START_MS))

        with pytest.raises(LogDirectoryLocked):
            await other.start()
        await other.stop()

        async with await broker.client() as client:
            assert 0 == (await produce(client, "orders")).error_code


async def test_ephemeral_broker_leaves_nothing_behind() -> None:
    broker = TestBroker(broker_config(), ephemeral=True)
    await broker.start()
    await broker.create("orders")
    (directory,) = broker.config.log_directories
    there = directory.exists()

    await broker.stop()

    assert there
    assert not directory.exists()


async def test_second_stop_does_nothing() -> None:
    broker = TestBroker(broker_config(), files=MemoryFiles(), clock=ManualClock(START_MS))
    await broker.start()

    await asyncio.gather(broker.stop(), broker.stop())
    await broker.stop()


async def test_unstarted_broker_can_be_stopped() -> None:
    await TestBroker(broker_config(), files=MemoryFiles()).stop()


async def test_stop_answers_waiting_requests() -> None:
    files = MemoryFiles()
    broker = TestBroker(broker_config(), files=files, clock=ManualClock(START_MS))
    await broker.start()
    await broker.create("orders")
    client = await broker.client()
    client.send(fetch_request(fetch_topic("orders", {0: 0}), max_wait_ms=60_000), version=VERSION)
    await until(lambda: broker.fetches.waiting)

    stopping = asyncio.create_task(broker.stop())
    answer = await client.receive()
    await stopping

    assert 0 == answer.responses[0].partitions[0].error_code
    assert await client.disconnected()
    await client.close()


async def test_stop_under_load_loses_nothing_acknowledged() -> None:
    files = MemoryFiles()
    broker = TestBroker(broker_config(), files=files, clock=ManualClock(START_MS))
    await broker.start()
    await broker.create("orders", partitions=4)
    acknowledged = [0] * 4

    async def load(partition: int) -> None:
        client = await broker.client()
        try:
            while True:
                answer = await produce(client, "orders", partition)
                assert 0 == answer.error_code
                acknowledged[partition] = answer.base_offset + 1
        except Disconnected:
            await client.close()

    loads = [asyncio.create_task(load(partition)) for partition in range(4)]
    await until(lambda: min(acknowledged) >= 50)

    await asyncio.wait_for(broker.stop(), PATIENCE)
    await asyncio.gather(*loads)

    async with running(files) as again:
        kept = [again.partitions.expect("orders", n).log.log_end_offset for n in range(4)]
    assert acknowledged <= kept
    assert max(k - a for k, a in zip(kept, acknowledged, strict=True)) <= 1


async def test_failed_directory_does_not_affect_the_others() -> None:
    files = FailingFiles()
    async with running(files, log_dirs="/first,/second") as broker:
        await broker.create("orders", partitions=4)
        dirs = {n: broker.partitions.expect("orders", n).log.parent_dir for n in range(4)}
        lost = next(n for n, parent in dirs.items() if str(parent) == "/second")
        kept = next(n for n, parent in dirs.items() if str(parent) == "/first")
        async with await broker.client() as client, await broker.client() as waiter:
            waiter.send(
                fetch_request(fetch_topic("orders", {lost: 0}), max_wait_ms=60_000),
                version=VERSION,
            )
            await until(lambda: broker.fetches.waiting)
            files.fail(only=frozenset({"write"}))

            failed = await produce(client, "orders", lost)
            told = await waiter.receive()
            served = await produce(client, "orders", kept)

        assert ErrorCode.KAFKA_STORAGE_ERROR == failed.error_code
        assert ErrorCode.KAFKA_STORAGE_ERROR == told.responses[0].partitions[0].error_code
        assert 0 == served.error_code
        assert 1 == broker.metrics.value("log_directories_offline")
        assert {lost: (-1, [1]), kept: (1, [])}.items() <= (await leaders(broker, lost)).items()


async def leaders(broker: TestBroker, lost: int) -> dict[int, tuple[int, list[int]]]:
    """
    The leaders and offline replicas of a topic, once *lost* is reported without a leader.
    """
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    async with await broker.client() as client:
        while True:
            answer = await client.ask(request, 12)
            found = {
                partition.partition_index: (partition.leader_id, partition.offline_replicas)
                for partition in answer.topics[0].partitions
            }
            if found[lost][0] == -1:
                return found


async def test_broker_terminates_when_all_directories_have_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    The log names the reason without a traceback, because a full disk is not a bug.
    """
    files = FailingFiles()
    broker = TestBroker(broker_config(), files=files, clock=ManualClock(START_MS))
    ended = asyncio.create_task(broker.run(asyncio.Event()))
    await until(lambda: broker.connections is not None)
    await broker.create("orders")
    files.fail(only=frozenset({"write"}), forever=True)

    async with await broker.client() as client:
        await produce(client, "orders")

        with pytest.raises(KafkaStorageError):
            await ended

    assert "the controller could not be stopped: " in caplog.text
    assert [] == [record for record in caplog.records if record.exc_info]


def serve(
    directory: Path, *options: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "barnabas.server", "serve", "--data-dir", str(directory)]
    return subprocess.Popen(
        [*command, "--set", "listeners=PLAINTEXT://127.0.0.1:0", *options],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | dict(environment or {}),
    )


async def test_directory_is_formatted_with_the_given_cluster_id() -> None:
    files = MemoryFiles()
    async with running(files, barnabas_cluster_id="the-castle"):
        pass
    async with running(files) as broker, await broker.client() as client:
        answer = await client.ask(MetadataRequest(topics=[]), VERSION)

    assert "the-castle" == answer.cluster_id
    with pytest.raises(InvalidLogDirectory, match="the-castle"):
        async with running(files, barnabas_cluster_id="another"):
            pass


def test_process_uses_the_asyncio_loop_without_uvloop(tmp_path: Path) -> None:
    (tmp_path / "uvloop.py").write_text("raise ImportError('not on this system')")
    process = serve(tmp_path / "data", environment={"PYTHONPATH": str(tmp_path)})
    assert process.stderr is not None
    told = ""
    while "listening" not in told:
        assert process.poll() is None, told
        told += process.stderr.readline()

    process.terminate()
    process.communicate(timeout=PATIENCE)

    assert 0 == process.returncode
    assert "uvloop is not installed" in told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_process_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    process = serve(tmp_path / "data")
    assert process.stderr is not None
    while "listening" not in process.stderr.readline():
        assert process.poll() is None

    process.send_signal(number)
    _, told = process.communicate(timeout=PATIENCE)

    assert 0 == process.returncode, told
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


async def test_long_load_logs_its_progress(caplog: pytest.LogCaptureFixture) -> None:
    class Loading:
        load_progress = LoadProgress(logs=100, done=40)

    caplog.set_level("INFO", "barnabas.server.broker")
    clock = ManualClock(START_MS)
    logging_progress = asyncio.create_task(_log_progress(cast(Any, Loading()), clock))
    await asyncio.sleep(0)
    for _ in range(2):
        clock.advance(PROGRESS_S + 0.1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    logging_progress.cancel()

    assert ["40 of 100 logs are loaded"] * 2 == caplog.messages
