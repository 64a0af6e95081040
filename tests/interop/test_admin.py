"""
Administration through the Python clients; ``test_kafka_tools.py`` has the Java ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaAdminClient  # type: ignore[import-untyped]  # the library has no type hints
from kafka import TopicPartition as PythonTopicPartition
from kafka.admin import ConfigResource as PythonResource  # type: ignore[import-untyped]  # the same
from kafka.admin import ConfigResourceType as PythonResourceType
from kafka.admin import NewPartitions as PythonPartitions

from tests.interop.clients.base import PATIENCE, NewRecord
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.kafka_python import KafkaPython
from tests.support.broker_process import BrokerProcess


@pytest.fixture
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def python_admin(broker: BrokerProcess) -> Iterator[KafkaAdminClient]:
    """
    kafka-python's admin client.
    """
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def test_topic_can_be_created_used_and_deleted_repeatedly(
    broker: BrokerProcess, admin: AdminClient, topic: str
) -> None:
    """
    Created, written, deleted and created again at once, ten times: the new one is always empty.

    Apache Kafka promises less: there the metadata may lag behind for some milliseconds.
    """
    client = Confluent()
    for number in range(10):
        admin.create_topics([NewTopic(topic, 1)])[topic].result(PATIENCE)
        value = b"%d" % number
        [place] = client.produce(broker.bootstrap, topic, [NewRecord(value)], "none")
        [seen] = client.read(broker.bootstrap, topic, 1, 1)
        admin.delete_topics([topic])[topic].result(PATIENCE)

        assert 0 == place.offset
        assert value == seen.value
        assert topic not in admin.list_topics(timeout=PATIENCE).topics


def test_topic_configs_show_their_source(admin: AdminClient, topic: str) -> None:
    """
    What was set on the topic is told from what is a default.
    """
    new = NewTopic(topic, 1, config={"retention.ms": "1234567", "cleanup.policy": "compact"})
    admin.create_topics([new])[topic].result(PATIENCE)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)

    configs = admin.describe_configs([resource])[resource].result(PATIENCE)

    assert ("1234567", False) == (configs["retention.ms"].value, configs["retention.ms"].is_default)
    assert "compact" == configs["cleanup.policy"].value
    assert ("1073741824", True) == (
        configs["segment.bytes"].value,
        configs["segment.bytes"].is_default,
    )


def test_librdkafka_changes_configs(admin: AdminClient, topic: str) -> None:
    """
    Some of them, or all at once; what cannot be is refused with the reason.
    """
    admin.create_topics([NewTopic(topic, 1)])[topic].result(PATIENCE)
    Kind, Set, Append = ConfigResource.Type, AlterConfigOpType.SET, AlterConfigOpType.APPEND
    some = ConfigResource(
        Kind.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("retention.ms", "77", incremental_operation=Set),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=Append),
        ],
    )

    admin.incremental_alter_configs([some])[some].result(PATIENCE)
    configs = admin.describe_configs([some])[some].result(PATIENCE)
    assert ("77", "delete,compact") == (
        configs["retention.ms"].value,
        configs["cleanup.policy"].value,
    )

    every = ConfigResource(Kind.TOPIC, topic, set_config={"flush.ms": "5"})
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        admin.alter_configs([every])[every].result(PATIENCE)
    configs = admin.describe_configs([every])[every].result(PATIENCE)
    assert ("604800000", "5") == (configs["retention.ms"].value, configs["flush.ms"].value)

    bad = ConfigResource(
        Kind.TOPIC,
        topic,
        incremental_configs=[ConfigEntry("flush.ms", "soon", incremental_operation=Set)],
    )
    with pytest.raises(KafkaException) as refused:
        admin.incremental_alter_configs([bad])[bad].result(PATIENCE)
    assert KafkaError.INVALID_CONFIG == refused.value.args[0].code()
    assert "Not a number of type LONG" in refused.value.args[0].str()


def test_kafka_python_changes_configs_partitions_and_records(
    broker: BrokerProcess, python_admin: KafkaAdminClient, topic: str
) -> None:
    client = KafkaPython()
    client.create_topic(broker.bootstrap, topic, 1, {"flush.ms": "5"})
    client.produce(broker.bootstrap, topic, [NewRecord(b"%d" % n) for n in range(5)], "none")

    python_admin.alter_configs(
        [PythonResource(PythonResourceType.TOPIC, topic, {"retention.ms": "77"})]
    )
    python_admin.create_partitions({topic: PythonPartitions(3)})
    deleted = python_admin.delete_records({PythonTopicPartition(topic, 0): 3})

    assert 3 == next(iter(deleted.values()))["low_watermark"]
    [described] = python_admin.describe_topics([topic])
    assert 3 == len(described["partitions"])
    shown = str(python_admin.describe_configs([PythonResource(PythonResourceType.TOPIC, topic)]))
    assert "77" in shown
    assert [b"3", b"4"] == [seen.value for seen in client.read(broker.bootstrap, topic, 3, 2)]


def test_group_is_listed_described_and_deleted(
    broker: BrokerProcess, python_admin: KafkaAdminClient, topic: str
) -> None:
    """
    Its offsets stay when its members have left, until it is deleted.
    """
    client, group = KafkaPython(), f"{topic}-group"
    client.create_topic(broker.bootstrap, topic, 1, {})
    client.produce(broker.bootstrap, topic, [NewRecord(b"one"), NewRecord(b"two")], "none")
    client.consume_in_group(broker.bootstrap, topic, group, 2)

    listed = {found["group_id"] for found in python_admin.list_groups()}
    described = python_admin.describe_groups([group])[group]
    [offset] = python_admin.list_group_offsets(group)[group].values()
    python_admin.delete_groups([group])
    left = {found["group_id"] for found in python_admin.list_groups()}

    assert group in listed
    assert "Empty" == described["group_state"]
    assert 2 == offset.offset
    assert group not in left


def test_cluster_is_one_broker_that_is_its_own_controller(
    broker: BrokerProcess, python_admin: KafkaAdminClient, admin: AdminClient
) -> None:
    """
    Both clients are told the same id and the address that is advertised.
    """
    described = python_admin.describe_cluster()
    metadata = admin.list_topics(timeout=PATIENCE)

    [node] = metadata.brokers.values()
    assert broker.bootstrap == f"{node.host}:{node.port}"
    assert described["controller_id"] == metadata.controller_id == node.id
    assert described["cluster_id"] == metadata.cluster_id
