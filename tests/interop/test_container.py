"""
The image, built and run on a Docker engine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import docker
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from docker.models.containers import Container
from testcontainers.core.container import DockerContainer

from barnabas.protocol.messages.metadata import MetadataRequest
from tests.interop.clients.base import PATIENCE, Client, NewRecord
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.kafka_python import KafkaPython, KafkaPythonSession
from tests.interop.page_reader import blocks_of
from tests.support.broker_process import answers, free_port, wait_for
from tests.support.certificates import Certificates
from tests.support.commands import run as run_command
from tests.support.docker_image import OPTIMIZATION, ROOT, with_kafka_python
from tests.support.maven import PrerequisiteMissing, alone, cache
from tests.support.some import some
from tests.support.wire_client import WireClient

CLIENTS: tuple[Client, ...] = (KafkaPython(), Confluent())
RECORDS = 500
SOON = 15
"""
Seconds: three times what a stop may take, since the machine has something else to do as well.
"""
BUILD_PATIENCE = 900
"""
Seconds: minutes on a machine that runs other tests meanwhile.
"""

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def volume(engine: docker.DockerClient) -> Iterator[str]:
    """
    A named volume that is gone after the test.
    """
    made = engine.volumes.create(f"barnabas-test-{uuid.uuid4().hex}")
    yield made.name
    made.remove(force=True)


@contextmanager
def running(image: str, volume: str, port: int, **environment: str) -> Iterator[Container]:
    """
    A container as careful people run one: nothing writable but the volume, no capabilities.
    """
    container = (
        DockerContainer(image, read_only=True, cap_drop=["ALL"])
        .with_bind_ports(9092, port)
        .with_volume_mapping(volume, "/var/lib/barnabas", "rw")
        .with_envs(**environment)
    )
    with container:
        wrapped: Container = container.get_wrapped_container()
        try:
            wait_for(lambda: answers(port), "the broker in the container", PATIENCE)
            yield wrapped
        finally:
            print(wrapped.logs().decode()[-4000:])


def stop(container: Container) -> tuple[int, float]:
    began = time.monotonic()
    container.stop(timeout=30)
    took = time.monotonic() - began
    return container.wait()["StatusCode"], took


def health(container: Container) -> str:
    """
    What the image's own check says.
    """
    container.reload()
    return container.health


def test_records_on_a_volume_survive_the_container(plain_image: str, volume: str) -> None:
    """
    Clients on the host write and read through the published port; a second container on the same
    volume has their records and where their groups were. It is healthy by its own check, and both
    stop cleanly, and soon.
    """
    port = free_port()
    bootstrap = f"localhost:{port}"
    advertised = f"PLAINTEXT://{bootstrap}"
    values = [b"%d" % number for number in range(2 * RECORDS)]
    new = [NewRecord(value, partition=0) for value in values]
    left = {}

    with running(plain_image, volume, port, KAFKA_ADVERTISED_LISTENERS=advertised) as first:
        for client in CLIENTS:
            client.create_topic(bootstrap, client.name, 2, {})
            client.produce(bootstrap, client.name, new[:RECORDS], "lz4")
            one, two = client.consume_in_group(bootstrap, client.name, "group", RECORDS)
            assert values[:RECORDS] == [record.value for record in one + two]
        left["first"] = stop(first)
    with running(plain_image, volume, port, KAFKA_ADVERTISED_LISTENERS=advertised) as second:
        for client in CLIENTS:
            client.produce(bootstrap, client.name, new[RECORDS:], "lz4")
            one, two = client.consume_in_group(bootstrap, client.name, "group", RECORDS)
            assert values[RECORDS:] == [record.value for record in one + two]
            read = client.read(bootstrap, client.name, 2, 2 * RECORDS)
            assert values == [record.value for record in read]
        wait_for(lambda: health(second) == "healthy", "the health check", 60)
        left["second"] = stop(second)

    for status, seconds in some(left.values()):
        assert status == 0
        assert seconds < SOON


@pytest.mark.prove
async def test_container_is_reachable_without_configuration(
    engine: docker.DockerClient, image: str
) -> None:
    """
    ``docker run -p 9092:9092`` is all that it takes: it is reached through the published port, and
    calls itself what that is for the host. Here the host has another port, for somebody may listen
    on that one, and who goes where it is told to is in the container's own network.
    """
    port = free_port()
    container = engine.containers.run(image, ports={"9092/tcp": port}, detach=True)
    try:
        wait_for(lambda: answers(port), "the broker in the container", PATIENCE)
        async with await WireClient.open(port) as client:
            told = await client.ask(MetadataRequest(topics=[]), 12)
        program = (
            "import kafka\n"
            "producer = kafka.KafkaProducer(bootstrap_servers='localhost:9092')\n"
            "producer.send('topic', b'value').get(60)\n"
            "consumer = kafka.KafkaConsumer('topic', bootstrap_servers='localhost:9092',\n"
            "    auto_offset_reset='earliest', consumer_timeout_ms=60000)\n"
            "print(next(consumer).value.decode())\n"
        )
        printed = with_kafka_python(engine, f"container:{container.id}", program)

        assert [("localhost", 9092)] == [(one.host, one.port) for one in told.brokers]
        assert "value" == printed
    finally:
        print(container.logs().decode()[-4000:])
        container.remove(force=True, v=True)


PAGE: Final = ROOT / "docs" / "containers.md"


@pytest.fixture
def named() -> Iterator[str]:
    """
    The name of a container that is gone after the test.
    """
    name = f"barnabas-test-{uuid.uuid4().hex}"
    yield name
    on_docker("rm", "--force", "--volumes", name)


def on_docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("docker") is None:
        raise PrerequisiteMissing("there is no docker command here")
    return run_command("docker", *arguments)


def in_ticks(beginning: str) -> list[str]:
    """
    The words of the code on the page that begins so.
    """
    (found,) = re.findall(rf"`({re.escape(beginning)}[^`]*)`", PAGE.read_text())
    return shlex.split(" ".join(found.split()))


@pytest.mark.prove
def test_documented_container_commands_work(image: str, volume: str, named: str) -> None:
    """
    Run as they are written, but for the names and the ports, which may be taken here.
    """
    port, http = free_port(), free_port()
    shown = re.search(r"^docker run -d .*$", PAGE.read_text(), re.MULTILINE)
    assert shown is not None
    run = shlex.split(shown[0])
    mine = {
        "127.0.0.1:9092:9092": f"127.0.0.1:{port}:9092",
        "barnabas:/var/lib/barnabas": f"{volume}:/var/lib/barnabas",
    }
    run = [mine.get(word, word) for word in run[1:-1]]
    run[run.index("--name") + 1] = named
    advertised = in_ticks("-p 25099:9092")[2:]
    advertised = [word.replace("25099", str(port)) for word in advertised]
    page = [word.replace("127.0.0.1:9644:", f"127.0.0.1:{http}:") for word in in_ticks("-p 127.")]

    done = on_docker(*run, *advertised, *page, image)
    assert 0 == done.returncode, done.stderr
    wait_for(lambda: answers(port), "the broker in the container", PATIENCE)

    with urllib.request.urlopen(f"http://localhost:{http}/readyz", timeout=30) as answer:
        assert 200 == answer.status
    assert f"localhost:{port}" in on_docker("logs", named).stderr
    doctor = [named if word == "barnabas" else word for word in in_ticks("docker exec")[1:3]]
    checked = on_docker(*doctor, *in_ticks("docker exec")[3:])
    assert 0 == checked.returncode, checked.stdout + checked.stderr
    assert "a broker runs" in checked.stdout


def shown_runs() -> list[str]:
    """
    The lines of the documentation that run the image, each with those that continue it.
    """
    pages = ("README.md", "docs/containers.md", "examples/README.md")
    blocks = (block for page in pages for language, block in blocks_of(page) if language == "sh")
    return [
        line
        for block in blocks
        for line in re.sub(r"\\\n *", " ", block).splitlines()
        if line.startswith("docker run")
    ]


@pytest.mark.prove
@pytest.mark.parametrize("command", shown_runs())
def test_shown_docker_run_starts_a_broker(
    command: str, image: str, volume: str, named: str
) -> None:
    """
    As it is written, but in the background, and with other names and ports of the host.
    """
    port = free_port()
    command = re.sub(r"127\.0\.0\.1:\d+:9092", f"127.0.0.1:{port}:9092", command)
    command = re.sub(r"127\.0\.0\.1:\d+:8099", f"127.0.0.1:{free_port()}:8099", command)
    command = re.sub(r"(-d|--name \w+) ", "", command)
    command = command.replace("barnabas:/var/lib", f"{volume}:/var/lib")
    words = [image if word == "barnabas" else word for word in shlex.split(command)[2:]]

    done = on_docker("run", "--detach", "--name", named, *words)

    assert 0 == done.returncode, done.stderr
    wait_for(lambda: answers(port), "the broker in the container", PATIENCE)


@pytest.mark.prove
def test_mounted_host_directory_requires_its_owner(image: str, named: str, tmp_path: Path) -> None:
    """
    Without, the log names the user; with the option of the page it is used.
    """
    tmp_path.chmod(0o755)
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    options = ["-v", f"{data}:/var/lib/barnabas"]

    refused = on_docker("run", "--rm", *options, image)
    assert 1 == refused.returncode
    assert "Permission denied (for user 1000)" in refused.stderr

    words = in_ticks('-v "$PWD/data')
    assert ["--user", "$(id -u)"] == words[2:]
    port = free_port()
    ports = ["-p", f"{port}:9092"]
    as_user = ["--user", str(os.geteuid())]
    assert (
        0 == on_docker("run", "-d", "--name", named, *ports, *options, *as_user, image).returncode
    )
    wait_for(lambda: answers(port), "the broker in the container", PATIENCE)
    assert (data / "meta.properties").exists()


@pytest.mark.prove
def test_variables_of_the_official_image_are_accepted(image: str, volume: str) -> None:
    """
    What the documentation of Apache Kafka's image sets, also for its controller, is taken.
    """
    port = free_port()
    variables = {
        "KAFKA_NODE_ID": "7",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://localhost:{port}",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "7@localhost:9093",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_NUM_PARTITIONS": "3",
        "KAFKA_HEAP_OPTS": "-Xmx256m",
        "CLUSTER_ID": "5L6g3nShT-eMCtK--X86sw",
    }

    with running(image, volume, port, **variables) as container:
        bootstrap = f"localhost:{port}"
        KafkaPython().produce(bootstrap, "created-by-use", [NewRecord(b"value")], "none")
        with KafkaPythonSession(bootstrap) as session:
            partitions, cluster = session.partitions("created-by-use"), session.cluster()
        stop(container)

    assert 3 == partitions
    assert (variables["CLUSTER_ID"], 7) == (cluster.cluster_id, cluster.node_id)


@pytest.fixture
def compose(image: str) -> Iterator[tuple[str, int]]:
    """
    The project of ``docker/compose.yaml`` brought up: its name and the published port.
    """
    with composed("compose.yaml") as (project, port):
        wait_for(lambda: answers(port), "the broker of the compose file", PATIENCE)
        yield project, port


@contextmanager
def composed(file: str, **variables: str) -> Iterator[tuple[str, int]]:
    """
    The project of a file brought up: its name and the published port.
    """
    command = _compose_command()
    project, port = f"barnabas-test-{uuid.uuid4().hex[:8]}", free_port()
    arguments = [*command, "-p", project, "-f", str(ROOT / "docker" / file)]
    environment = os.environ | {"BARNABAS_PORT": str(port), "DOCKER_BUILDKIT": "0"} | variables
    try:
        with alone(cache("image")):
            subprocess.run(
                [*arguments, "build", "--build-arg", f"OPTIMIZATION={OPTIMIZATION}"],
                env=environment,
                check=True,
                timeout=BUILD_PATIENCE,
            )
        subprocess.run([*arguments, "up", "-d"], env=environment, check=True, timeout=300)
        yield project, port
    finally:
        subprocess.run([*arguments, "logs"], env=environment, check=False, timeout=60)
        subprocess.run([*arguments, "down", "-v"], env=environment, check=False, timeout=120)


def _compose_command() -> list[str]:
    if shutil.which("docker") is not None:
        plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        if plugin.returncode == 0:
            return ["docker", "compose"]
    if shutil.which("docker-compose") is None:
        raise PrerequisiteMissing("neither docker compose nor docker-compose is there")
    return ["docker-compose"]


@pytest.mark.prove
def test_host_and_network_each_get_a_working_address(
    engine: docker.DockerClient, compose: tuple[str, int]
) -> None:
    """
    With the two listeners of ``docker/compose.yaml``, what the host wrote through the published
    port is read by a container in the same network through the other.
    """
    project, port = compose
    bootstrap = f"localhost:{port}"
    for client in CLIENTS:
        client.create_topic(bootstrap, client.name, 1, {})
        client.produce(bootstrap, client.name, [NewRecord(b"from the host")], "none")
    program = (
        "import kafka, sys\n"
        "consumer = kafka.KafkaConsumer(*sys.argv[1:], bootstrap_servers='barnabas:19092',\n"
        "    auto_offset_reset='earliest', consumer_timeout_ms=10000)\n"
        "print(*sorted(next(consumer).value.decode() for _ in sys.argv[1:]), sep=', ')\n"
    )

    names = [client.name for client in CLIENTS]
    printed = with_kafka_python(engine, f"{project}_default", program, *names)

    assert "from the host, from the host" == printed


@pytest.mark.prove
@pytest.mark.usefixtures("image")
def test_secure_compose_file_starts_a_broker_with_tls_and_a_user(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "secrets")
    for path in (certificates.directory, certificates.broker):
        path.chmod(0o755)  # as the user of the container reads it
    variables = {"BARNABAS_SECRETS": str(certificates.directory), "BARNABAS_PASSWORD": "p=w"}

    with composed("compose.secure.yaml", **variables) as (_, port):

        def login(password: str) -> dict[str, str | int | float | bool]:
            return {
                "bootstrap.servers": f"localhost:{port}",
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(certificates.ca),
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "admin",
                "sasl.password": password,
                "log_level": 0,
            }

        def topics_of(password: str) -> list[str] | None:
            try:
                return list(AdminClient(login(password)).list_topics(timeout=3).topics)
            except KafkaException:
                return None

        wait_for(lambda: topics_of("p=w") == [], "the broker of the compose file", PATIENCE)
        producer = Producer(login("p=w"))
        producer.produce("orders", b"1")
        assert 0 == producer.flush(30)
        assert topics_of("p=w") == ["orders"]
        assert topics_of("guess") is None
