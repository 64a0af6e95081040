"""
The container that ``barnabas.testing.containers`` exports.

A broker advertises the port that is published on the host, which is known only when the container
runs. So the container waits for a file at first: it has the advertised listeners, and the broker
starts when it is there.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from testcontainers.core.container import DockerContainer

from barnabas.storage.clock import seconds_now, sleep
from barnabas.testing.containers.topics import create_topics
from barnabas.testing.defaults import Config, partition_counts, texts_of
from barnabas.testing.errors import InvalidConfig, StartFailed, WaitTimeout, hides_frame

if TYPE_CHECKING:
    from docker.models.containers import Container
    from testcontainers.core.waiting_utils import WaitStrategy

__tracebackhide__ = hides_frame

NETWORK_PORT: Final = 9092
"""
The port for clients in the network of the container.
"""

READY: Final = r".*\[KafkaServer id=\d+\] started.*"

_ADVERTISED: Final = "/etc/barnabas/advertised-listeners.sh"
_SCRIPT: Final = f"""\
until [ -s {_ADVERTISED} ]; do sleep 0.05; done
. {_ADVERTISED}
exec barnabas serve --config /etc/barnabas/server.properties "$@"
"""
_NETWORK_LISTENER: Final = "BROKER"
_OPTIONS: Final[Mapping[str, str]] = {
    # One test has few consumers and transactions: no need to spread them, or to wait for more.
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
}
_EXIT_USAGE: Final = 2
_PAUSE_S: Final = 0.05
_LAST_CHARACTERS: Final = 4000


class BarnabasContainer(DockerContainer):
    """
    A container with a broker, with the methods of testcontainers' ``KafkaContainer``::

        with BarnabasContainer(topics={"orders": 3}) as kafka:
            consumer = KafkaConsumer("orders", bootstrap_servers=kafka.get_bootstrap_server())

    Clients in a network of the container connect to its alias, and port 9092.
    """

    def __init__(
        self,
        image: str = "barnabas",
        port: int = 9093,
        wait_strategy_check_string: str = READY,
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        *,
        config: Config | None = None,
        topics: Mapping[str, int] | Iterable[str] = (),
        **kwargs: Any,
    ) -> None:
        """
        Args:
            image: the image of this project.
            port: the port inside of the container; the host gets a free one for it.
            wait_strategy_check_string: a pattern that the log has when the broker serves clients.
            listener_name: the name of the listener for clients on the host.
            security_protocol: its security protocol; *config* has the stores and users for it.
            config: options of the broker, such as ``{"log.retention.ms": 60_000}``.
            topics: topics to create unless they exist: names, or numbers of partitions by name.
            kwargs: what ``DockerContainer`` takes: ``env``, ``network``, ``volumes``, ...

        Raises:
            ValueError: the *port* is that for clients in the network of the container, or there
                are topics to create and no PLAINTEXT to do it with.
        """
        if topics and security_protocol != "PLAINTEXT":
            raise ValueError(
                f"topics are created with PLAINTEXT only, not {security_protocol}: create them with"
                " a client"
            )
        if port == NETWORK_PORT:
            raise ValueError(
                f"port {port} is for clients in the network of the container: choose another one"
            )
        super().__init__(image, **kwargs)
        self.port = port
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.cluster_id: str | None = None
        self.wait_for = re.compile(wait_strategy_check_string)
        self._config = dict(config or {})
        self._topics = partition_counts(topics)
        self._then: list[WaitStrategy] = []
        self.with_exposed_ports(port)
        self.env = {**_OPTIONS, **self._listeners(), **self.env}

    def _listeners(self) -> dict[str, str]:
        name, protocol = self.listener_name, self.security_protocol
        return {
            "KAFKA_LISTENERS": (
                f"{name}://0.0.0.0:{self.port},{_NETWORK_LISTENER}://0.0.0.0:{NETWORK_PORT}"
            ),
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                f"{name}:{protocol},{_NETWORK_LISTENER}:PLAINTEXT"
            ),
            "KAFKA_INTER_BROKER_LISTENER_NAME": _NETWORK_LISTENER,
        }

    def with_kraft(self) -> Self:
        """
        Without effect: a broker of this project always has a metadata log, and never a ZooKeeper.
        """
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """
        Set the id of the cluster, as Kafka encodes a UUID; by default it is a new one.
        """
        self.cluster_id = cluster_id
        return self.with_env("CLUSTER_ID", cluster_id)

    def waiting_for(self, strategy: WaitStrategy) -> Self:
        """
        Wait for one more thing, after the broker has said that it serves clients.
        """
        self._then.append(strategy)
        return self

    def start(self, timeout: float = 30) -> Self:
        """
        Start; when this returns, clients are served.

        Args:
            timeout: the patience in seconds, from the start of the broker on.

        Raises:
            InvalidConfig: an option is unknown, or its value is not acceptable.
            InvalidTopic: one of the topics cannot be created.
            StartFailed: the broker has ended.
            WaitTimeout: the broker has not started in time.
        """
        options = [f"{name}={value}" for name, value in texts_of(self._config).items()]
        sets = [word for option in options for word in ("--set", option)]
        self.with_command(["sh", "-c", _SCRIPT, "barnabas", *sets])
        super().start()
        container = self.get_wrapped_container()
        _put(container, _ADVERTISED, f"export KAFKA_ADVERTISED_LISTENERS={self._advertised()}\n")
        self._wait(container, timeout)
        if self._topics:
            create_topics(
                self.get_container_host_ip(), self.get_exposed_port(self.port), self._topics
            )
        for strategy in self._then:
            strategy.wait_until_ready(self)
        return self

    def get_bootstrap_server(self) -> str:
        """
        The address for clients on the host, ``host:port``.
        """
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(self.port)}"

    @property
    def bootstrap_servers(self) -> str:
        """
        The same, with the name that a ``Broker`` has for it.
        """
        return self.get_bootstrap_server()

    def _advertised(self) -> str:
        """
        The advertised listeners, for a shell.
        """
        # Names are resolved in networks that have been created, and not in Docker's default one.
        own_address = "$(hostname -i | cut -d' ' -f1)"
        host = self._network_aliases[0] if self._network_aliases else own_address
        return (
            f"{self.listener_name}://{self.get_bootstrap_server()},"
            f"{_NETWORK_LISTENER}://{host}:{NETWORK_PORT}"
        )

    def _wait(self, container: Container, seconds: float) -> None:
        deadline = seconds_now() + seconds
        while True:
            container.reload()
            log = container.logs().decode(errors="replace")
            if self.wait_for.search(log):
                return
            end = log[-_LAST_CHARACTERS:].strip()
            if container.status not in ("created", "running"):
                status = container.attrs["State"]["ExitCode"]
                if status == _EXIT_USAGE:
                    raise InvalidConfig(end)
                raise StartFailed(f"the container has ended with status {status}. Its log:\n{end}")
            if seconds_now() > deadline:
                raise WaitTimeout(
                    f"the log of the container has no {self.wait_for.pattern!r} after"
                    f" {seconds:g} s. It ends:\n{end}"
                )
            sleep(_PAUSE_S)


def _put(container: Container, path: str, text: str) -> None:
    """
    Write a file of the container.
    """
    data = text.encode()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        info = tarfile.TarInfo(path.lstrip("/"))
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    container.put_archive("/", archive.getvalue())
