"""
The tools that run between two topics of a broker, each with the version that is tested.
"""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple


class Guarantee(enum.Enum):
    """
    How often a record arrives that a tool copies, whatever is killed meanwhile.
    """

    AT_LEAST_ONCE = "at least once"
    EXACTLY_ONCE = "exactly once"


class Kind(enum.Enum):
    """
    What a tool is installed and run with.
    """

    PYTHON = "Python"
    NODE = "Node.js"
    PROGRAM = "a program of the system"
    GO = "Go"
    JAVA = "Java"
    RUST = "Rust"


class Tool(NamedTuple):
    """
    A tool, and the program of ours that copies records with it.
    """

    name: str
    """As the page calls it."""
    requirements: tuple[str, ...]
    """What is installed, as its registry names it, with versions; the tool is the first."""
    program: str
    """A file beside this one, in the folder `programs`."""
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    survives_kill: bool = True
    """Whether the guarantee holds, too, when the tool itself is killed."""
    ends_without_broker: bool = False
    """Whether it ends when its broker goes away, so that it needs a supervisor."""
    at_once: int = 5
    """Records that are sent to it every 20 ms."""
    newest_python: tuple[int, int] = (3, 99)
    """The newest Python that there is a package for."""
    is_of_the_system: bool = False

    @property
    def id(self) -> str:
        return re.sub(r"\W+", "-", self.name).strip("-")

    @property
    def kind(self) -> Kind:
        if self.is_of_the_system:
            return Kind.PROGRAM
        return KINDS[self.program.rpartition(".")[2]]

    @property
    def version(self) -> str:
        if self.is_of_the_system:
            return "Debian's"
        return re.split(r"==|@v?|:", self.requirements[0])[-1]

    @property
    def is_light(self) -> bool:
        """
        Whether its test is short enough to run each time, without ``--ecosystem all``.
        """
        return self.kind in (Kind.PYTHON, Kind.NODE, Kind.PROGRAM)


KINDS: Final = {
    "py": Kind.PYTHON,
    "mjs": Kind.NODE,
    "go": Kind.GO,
    "java": Kind.JAVA,
    "rs": Kind.RUST,
}
TOOLS: Final = (
    Tool("FastStream", ("faststream[kafka]==0.7.8",), "faststream_copier.py", at_once=2),
    Tool(
        "Quix Streams",
        ("quixstreams==3.28.1",),
        "quix_copier.py",
        guarantee=Guarantee.EXACTLY_ONCE,
        ends_without_broker=True,
    ),
    Tool("Faust", ("faust-streaming==0.15.3",), "faust_copier.py", at_once=2),
    Tool(
        "Bytewax",
        ("bytewax==0.21.1", "confluent-kafka==2.16.1"),
        "bytewax_copier.py",
        newest_python=(3, 12),
    ),
    Tool(
        "Celery and kombu",
        ("celery==5.7.0", "kombu[confluentkafka]==5.7.0"),
        "celery_copier.py",
        # kombu commits asynchronously, and the commit may include the message after the one that it
        # acknowledges, so a kill may lose the task that runs.
        survives_kill=False,
        at_once=1,
    ),
    Tool("streamz", ("streamz==0.6.6", "confluent-kafka==2.16.1"), "streamz_copier.py"),
    Tool(
        "kafkajs",
        ("kafkajs@2.2.4",),
        "kafkajs_copier.mjs",
        guarantee=Guarantee.EXACTLY_ONCE,
        ends_without_broker=True,
    ),
    Tool("@platformatic/kafka", ("@platformatic/kafka@1.35.0",), "platformatic_copier.mjs"),
    Tool(
        "rsyslog",
        ("rsyslogd", "rsyslog-kafka"),
        "rsyslog_copier.py",
        survives_kill=False,
        is_of_the_system=True,
    ),
    Tool("sarama", ("github.com/IBM/sarama@v1.61.1",), "sarama_copier.go"),
    Tool("kafka-go", ("github.com/segmentio/kafka-go@v0.4.51",), "kafka_go_copier.go"),
    Tool(
        "franz-go",
        ("github.com/twmb/franz-go@v1.22.3",),
        "franz_go_copier.go",
        guarantee=Guarantee.EXACTLY_ONCE,
        ends_without_broker=True,
    ),
    Tool(
        "Watermill",
        (
            "github.com/ThreeDotsLabs/watermill@v1.5.1",
            "github.com/ThreeDotsLabs/watermill-kafka/v3@v3.0.6",
        ),
        "watermill_copier.go",
    ),
    Tool(
        "confluent-kafka-go",
        ("github.com/confluentinc/confluent-kafka-go/v2@v2.11.1",),
        "confluent_go_copier.go",
        guarantee=Guarantee.EXACTLY_ONCE,
        ends_without_broker=True,
        at_once=1,
    ),
    Tool("Telegraf", ("github.com/influxdata/telegraf@v1.37.2",), "telegraf_copier.go"),
    Tool(
        "Spring Kafka",
        ("org.springframework.kafka:spring-kafka:4.1.2", "org.slf4j:slf4j-simple:2.0.17"),
        "SpringCopier.java",
        guarantee=Guarantee.EXACTLY_ONCE,
        at_once=2,
    ),
    Tool(
        "Pekko connectors",
        (
            "org.apache.pekko:pekko-connectors-kafka_2.13:1.1.0",
            "org.apache.pekko:pekko-stream_2.13:1.1.5",
            "org.slf4j:slf4j-simple:2.0.17",
        ),
        "PekkoCopier.java",
    ),
    Tool(
        "Debezium's engine",
        (
            "io.debezium:debezium-embedded:3.6.1.Final",
            "io.debezium:debezium-api:3.6.1.Final",
            "org.slf4j:slf4j-simple:1.7.36",
        ),
        "DebeziumCopier.java",
    ),
    Tool(
        "Flink's Kafka connector",
        (
            "org.apache.flink:flink-connector-kafka:5.0.0-2.2",
            "org.apache.flink:flink-connector-base:2.2.0",
            "org.apache.flink:flink-streaming-java:2.2.0",
            "org.apache.flink:flink-clients:2.2.0",
            "org.slf4j:slf4j-simple:1.7.36",
        ),
        "FlinkCopier.java",
        guarantee=Guarantee.EXACTLY_ONCE,
    ),
    Tool("rskafka", ("rskafka@0.6.0", "chrono@0.4", "tokio@1"), "rskafka_copier.rs"),
)
