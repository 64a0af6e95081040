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
    version: str
    kind: Kind
    requirements: tuple[str, ...]
    """What is installed, by the names of the registry of its kind, with versions."""
    program: str
    """A file beside this one, in the folder `programs`."""
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    survives_kill: bool = True
    """Whether the guarantee holds, too, when the tool itself is killed."""
    ends_without_broker: bool = False
    """Whether it ends when its broker goes away, so that it needs a supervisor."""
    at_once: int = 5
    """Records that are sent to it every 20 ms."""
    is_light: bool = True
    """Whether its test is short enough to run each time, without ``--ecosystem all``."""
    newest_python: tuple[int, int] = (3, 99)
    """The newest Python that there is a package for."""

    @property
    def id(self) -> str:
        return re.sub(r"\W+", "-", self.name).strip("-")


TOOLS: Final = (
    Tool(
        name="FastStream",
        version="0.7.8",
        kind=Kind.PYTHON,
        requirements=("faststream[kafka]==0.7.8",),
        program="faststream_copier.py",
        at_once=2,
    ),
    Tool(
        name="Quix Streams",
        version="3.28.1",
        kind=Kind.PYTHON,
        requirements=("quixstreams==3.28.1",),
        program="quix_copier.py",
        guarantee=Guarantee.EXACTLY_ONCE,
        ends_without_broker=True,
    ),
    Tool(
        name="Faust",
        version="0.15.3",
        kind=Kind.PYTHON,
        requirements=("faust-streaming==0.15.3",),
        program="faust_copier.py",
        at_once=2,
    ),
    Tool(
        name="Bytewax",
        version="0.21.1",
        kind=Kind.PYTHON,
        requirements=("bytewax==0.21.1", "confluent-kafka==2.16.1"),
        program="bytewax_copier.py",
        newest_python=(3, 12),
    ),
    Tool(
        name="Celery and kombu",
        version="5.7.0",
        kind=Kind.PYTHON,
        requirements=("celery==5.7.0", "kombu[confluentkafka]==5.7.0"),
        program="celery_copier.py",
        at_once=1,
    ),
    Tool(
        name="streamz",
        version="0.6.6",
        kind=Kind.PYTHON,
        requirements=("streamz==0.6.6", "confluent-kafka==2.16.1"),
        program="streamz_copier.py",
    ),
    Tool(
        name="kafkajs",
        version="2.2.4",
        kind=Kind.NODE,
        requirements=("kafkajs@2.2.4",),
        program="kafkajs_copier.mjs",
        guarantee=Guarantee.EXACTLY_ONCE,
        ends_without_broker=True,
    ),
    Tool(
        name="@platformatic/kafka",
        version="1.35.0",
        kind=Kind.NODE,
        requirements=("@platformatic/kafka@1.35.0",),
        program="platformatic_copier.mjs",
    ),
    Tool(
        name="rsyslog",
        version="Debian's",
        kind=Kind.PROGRAM,
        requirements=("rsyslogd", "rsyslog-kafka"),
        program="rsyslog_copier.py",
        survives_kill=False,
    ),
    Tool(
        name="sarama",
        version="1.61.1",
        kind=Kind.GO,
        requirements=("github.com/IBM/sarama@v1.61.1",),
        program="sarama_copier.go",
        is_light=False,
    ),
    Tool(
        name="kafka-go",
        version="0.4.51",
        kind=Kind.GO,
        requirements=("github.com/segmentio/kafka-go@v0.4.51",),
        program="kafka_go_copier.go",
        is_light=False,
    ),
    Tool(
        name="franz-go",
        version="1.22.3",
        kind=Kind.GO,
        requirements=("github.com/twmb/franz-go@v1.22.3",),
        program="franz_go_copier.go",
        guarantee=Guarantee.EXACTLY_ONCE,
        ends_without_broker=True,
        is_light=False,
    ),
    Tool(
        name="Watermill",
        version="1.5.1",
        kind=Kind.GO,
        requirements=(
            "github.com/ThreeDotsLabs/watermill@v1.5.1",
            "github.com/ThreeDotsLabs/watermill-kafka/v3@v3.0.6",
        ),
        program="watermill_copier.go",
        is_light=False,
    ),
    Tool(
        name="confluent-kafka-go",
        version="2.11.1",
        kind=Kind.GO,
        requirements=("github.com/confluentinc/confluent-kafka-go/v2@v2.11.1",),
        program="confluent_go_copier.go",
        guarantee=Guarantee.EXACTLY_ONCE,
        ends_without_broker=True,
        at_once=1,
        is_light=False,
    ),
    Tool(
        name="Telegraf",
        version="1.37.2",
        kind=Kind.GO,
        requirements=("github.com/influxdata/telegraf@v1.37.2",),
        program="telegraf_copier.go",
        is_light=False,
    ),
    Tool(
        name="Spring Kafka",
        version="4.1.2",
        kind=Kind.JAVA,
        requirements=(
            "org.springframework.kafka:spring-kafka:4.1.2",
            "org.slf4j:slf4j-simple:2.0.17",
        ),
        program="SpringCopier.java",
        guarantee=Guarantee.EXACTLY_ONCE,
        at_once=2,
        is_light=False,
    ),
    Tool(
        name="Pekko connectors",
        version="1.1.0",
        kind=Kind.JAVA,
        requirements=(
            "org.apache.pekko:pekko-connectors-kafka_2.13:1.1.0",
            "org.apache.pekko:pekko-stream_2.13:1.1.5",
            "org.slf4j:slf4j-simple:2.0.17",
        ),
        program="PekkoCopier.java",
        is_light=False,
    ),
    Tool(
        name="Debezium's engine",
        version="3.6.1.Final",
        kind=Kind.JAVA,
        requirements=(
            "io.debezium:debezium-embedded:3.6.1.Final",
            "io.debezium:debezium-api:3.6.1.Final",
            "org.slf4j:slf4j-simple:1.7.36",
        ),
        program="DebeziumCopier.java",
        is_light=False,
    ),
    Tool(
        name="Flink's Kafka connector",
        version="5.0.0-2.2",
        kind=Kind.JAVA,
        requirements=(
            "org.apache.flink:flink-connector-kafka:5.0.0-2.2",
            "org.apache.flink:flink-connector-base:2.2.0",
            "org.apache.flink:flink-streaming-java:2.2.0",
            "org.apache.flink:flink-clients:2.2.0",
            "org.slf4j:slf4j-simple:1.7.36",
        ),
        program="FlinkCopier.java",
        guarantee=Guarantee.EXACTLY_ONCE,
        is_light=False,
    ),
    Tool(
        name="rskafka",
        version="0.6.0",
        kind=Kind.RUST,
        requirements=("rskafka@0.6.0", "chrono@0.4", "tokio@1"),
        program="rskafka_copier.rs",
        is_light=False,
    ),
)
