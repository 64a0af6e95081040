"""
Containers of testcontainers: that of ``barnabas.testing``, and the stock ones for Apache Kafka and
for Confluent's image, which run the image of this project unchanged.
"""

from __future__ import annotations

import inspect
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import kafka  # type: ignore[import-untyped]  # the library has no type hints
import pytest
from docker.models.networks import Network
from testcontainers.community.kafka import KafkaContainer
from testcontainers.core.container import DockerContainer
from testcontainers.core.waiting_utils import WaitStrategy, WaitStrategyTarget

from barnabas.testing import InvalidConfig, InvalidTopic, StartFailed, WaitTimeout
from barnabas.testing.containers import BarnabasContainer
from tests.interop.clients.base import Client, NewRecord
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.kafka_python import KafkaPython, KafkaPythonSession
from tests.interop.conftest import needs_program
from tests.support.commands import output_of, run
from tests.support.docker_image import CONFLUENT_TAG, NAME, with_kafka_python
from tests.support.examples import run_example
from tests.support.java_programs import run_program
from tests.support.kafka_jars import cache_directory, require_java
from tests.support.maven import PrerequisiteMissing, jars

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "containers.md"
CLIENTS: tuple[Client, ...] = (KafkaPython(), Confluent())
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
VALUES = [b"one", b"two", b"three"]
FURTHER = {"config", "topics"}
"""
What this project's container takes beside the arguments of the stock one.
"""
INTERNAL = {"TC_START_SCRIPT", "MIN_KRAFT_TAG", "configure", "tc_start", "create_file"}
"""
How the stock container starts its image.
"""

pytestmark = [pytest.mark.prove, pytest.mark.usefixtures("image")]


def exchange(bootstrap: str) -> None:
    """
    Records go in and come out, also in a group.
    """
    for client in CLIENTS:
        topic = f"through-{client.name}"
        client.create_topic(bootstrap, topic, 2, {})
        client.produce(bootstrap, topic, [NewRecord(value, partition=0) for value in VALUES], "lz4")
        one, two = client.consume_in_group(bootstrap, topic, topic, len(VALUES))
        assert VALUES == [record.value for record in one + two]


def cluster_id(bootstrap: str) -> str:
    with KafkaPythonSession(bootstrap) as session:
        return session.cluster().cluster_id


def test_container_serves_clients_with_its_topics_and_options() -> None:
    topics, config = {"orders": 3, "payments": 1}, {"num.partitions": 2}

    with BarnabasContainer(NAME, topics=topics, config=config) as container:
        bootstrap = container.get_bootstrap_server()
        exchange(bootstrap)
        KafkaPython().produce(bootstrap, "created-by-use", [NewRecord(b"value")], "none")
        with KafkaPythonSession(bootstrap) as session:
            found = [session.partitions(name) for name in (*topics, "created-by-use")]
        assert bootstrap == container.bootstrap_servers

    assert [3, 1, 2] == found


def test_container_has_the_interface_of_the_stock_one() -> None:
    """
    The same arguments in the same places, with the same defaults but for the image, and the same
    methods.
    """

    def arguments(kind: type[DockerContainer]) -> list[tuple[str, object]]:
        parameters = inspect.signature(kind).parameters.values()
        return [(each.name, each.default) for each in parameters if each.name not in FURTHER]

    def public(kind: type[DockerContainer]) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert arguments(KafkaContainer)[1:] == arguments(BarnabasContainer)[1:]
    assert public(KafkaContainer) - public(BarnabasContainer) == INTERNAL


def test_container_accepts_every_argument_of_the_stock_one() -> None:
    """
    Another port, listener and pattern, the cluster's id, and KRaft, which is there in any case; one
    more thing to wait for, too.
    """
    strategy = Remembering()
    container = (
        BarnabasContainer(NAME, 19093, "Transitioning from RECOVERY", "OUTSIDE", "PLAINTEXT")
        .with_kraft()
        .with_cluster_id(CLUSTER_ID)
        .waiting_for(strategy)
    )

    with container:
        assert CLUSTER_ID == cluster_id(container.get_bootstrap_server())
        exchange(container.get_bootstrap_server())

    assert "Kafka Server started" in strategy.log


class Remembering(WaitStrategy):
    """
    Remembers the log at the moment at which it is asked to wait.
    """

    log = ""

    def wait_until_ready(self, container: WaitStrategyTarget) -> None:
        self.log = container.get_logs()[1].decode()


@pytest.fixture
def network(engine: docker.DockerClient) -> Iterator[Network]:
    made = engine.networks.create(f"barnabas-test-{uuid.uuid4().hex[:8]}")
    yield made
    made.remove()


@pytest.mark.parametrize("alias", ["kafka", None])
def test_network_listener_has_its_own_address(
    engine: docker.DockerClient, network: Network, alias: str | None
) -> None:
    """
    Its containers reach the broker by its alias, or by its host name without one.
    """
    program = (
        "import kafka, sys\n"
        "consumer = kafka.KafkaConsumer('orders', bootstrap_servers=sys.argv[1],\n"
        "    auto_offset_reset='earliest', consumer_timeout_ms=10000)\n"
        "print(next(consumer).value.decode())\n"
    )
    container = BarnabasContainer(NAME, network=network, topics={"orders": 1})
    if alias is not None:
        container.with_network_aliases(alias)

    with container:
        bootstrap = container.get_bootstrap_server()
        KafkaPython().produce(bootstrap, "orders", [NewRecord(b"from the host")], "none")
        host = alias or container.get_container_id()[:12]
        printed = with_kafka_python(engine, str(network.name), program, f"{host}:9092")

    assert "from the host" == printed


@pytest.mark.parametrize(
    ("container", "error", "says"),
    [
        (
            lambda: BarnabasContainer(NAME, config={"log.retention.mss": 1}),
            InvalidConfig,
            "log.retention.ms",
        ),
        (lambda: BarnabasContainer(NAME, topics={"no/name": 1}), InvalidTopic, "no/name"),
        (
            lambda: BarnabasContainer(NAME, user="nobody"),
            StartFailed,
            r"ended with status 1.*/var/lib/barnabas",
        ),
        (
            lambda: BarnabasContainer(NAME, wait_strategy_check_string="never said"),
            WaitTimeout,
            "'never said' after 2 s.*Kafka Server started",
        ),
    ],
    ids=["option", "topic", "directory", "patience"],
)
def test_failed_start_reports_the_reason(
    engine: docker.DockerClient,
    container: Callable[[], BarnabasContainer],
    error: type[Exception],
    says: str,
) -> None:
    there = len(engine.containers.list(all=True, filters={"ancestor": NAME}))
    made = container()

    with pytest.raises(error, match=f"(?s){says}"):
        made.start(timeout=2)
    made.stop()
    assert there == len(engine.containers.list(all=True, filters={"ancestor": NAME}))


def test_network_port_is_not_for_the_host() -> None:
    with pytest.raises(ValueError, match="choose another one"):
        BarnabasContainer(NAME, 9092)


def test_topics_are_not_created_over_a_secured_listener() -> None:
    with pytest.raises(ValueError, match="topics are created with PLAINTEXT only, not SASL_SSL"):
        BarnabasContainer(NAME, security_protocol="SASL_SSL", topics={"orders": 1})


def test_listener_authenticates_its_configured_users() -> None:
    prefix = "listener.name.plaintext"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    config = {
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN",
        f"{prefix}.plain.sasl.jaas.config": f'{module} user_ann="secret";',
    }
    user = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ann",
    }

    with BarnabasContainer(NAME, security_protocol="SASL_PLAINTEXT", config=config) as container:
        bootstrap = container.get_bootstrap_server()
        admin = kafka.KafkaAdminClient(
            bootstrap_servers=bootstrap, sasl_plain_password="secret", **user
        )
        topics = admin.list_topics()
        admin.close()
        with pytest.raises(kafka.errors.KafkaError):
            kafka.KafkaAdminClient(
                bootstrap_servers=bootstrap,
                sasl_plain_password="wrong",
                bootstrap_timeout_ms=1000,
                **user,
            )
        log = container.get_logs()[1].decode()

    assert [] == topics
    assert "Invalid username or password" in log


@pytest.mark.parametrize(
    ("container", "cluster"),
    [
        (lambda: KafkaContainer(NAME), None),
        (lambda: KafkaContainer(NAME, listener_name="OUTSIDE", port=19093), None),
        (
            lambda: (
                KafkaContainer(f"{NAME}:{CONFLUENT_TAG}").with_kraft().with_cluster_id(CLUSTER_ID)
            ),
            CLUSTER_ID,
        ),
    ],
    ids=["with ZooKeeper", "another listener", "KRaft"],
)
def test_stock_python_container_runs_the_image(
    container: Callable[[], KafkaContainer], cluster: str | None
) -> None:
    """
    With the script that it puts into the container, whether that starts ZooKeeper or formats a
    directory.
    """
    with container() as running:
        bootstrap = running.get_bootstrap_server()
        exchange(bootstrap)
        assert cluster in (None, cluster_id(bootstrap))


def test_java_containers_run_the_image() -> None:
    """
    For Apache Kafka's image, for Confluent's, and the deprecated one with ZooKeeper and with KRaft.
    """
    require_java()
    library = jars(
        cache_directory(), "testcontainers", {"org.testcontainers:testcontainers-kafka": "2.0.5"}
    )

    printed = run_program(
        HERE / "java" / "Containers.java",
        f"{NAME}:{CONFLUENT_TAG}",
        extra_class_path=f"{library}/*",
        # A machine that looks like a container would look for its gateway with an image of its own.
        environment={"TESTCONTAINERS_HOST_OVERRIDE": "localhost"},
        seconds=120,
    )

    names = ["KafkaContainer", "ConfluentKafkaContainer", "deprecated", "deprecated withKraft"]
    assert [f"{name}\tthrough {name}" for name in names] == printed.splitlines()


def test_node_container_runs_the_image(tmp_path: Path) -> None:
    needs_program("node")
    needs_program("npm")
    shutil.copytree(HERE / "node_containers", tmp_path, dirs_exist_ok=True)
    install = ["npm", "install", "--silent", "--no-package-lock", "--no-audit"]
    done = run(*install, cwd=tmp_path, seconds=600)
    if done.returncode:
        raise PrerequisiteMissing(f"npm install: {done.stderr[-1000:]}")

    printed = output_of("node", "containers.mjs", f"{NAME}:{CONFLUENT_TAG}", cwd=tmp_path)
    assert "through JavaScript\n" == printed


def test_documented_container_examples_run(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)

    for number, example in enumerate(examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        run_example(example.replace('"barnabas"', f'"{NAME}"'), folder)

    assert examples
