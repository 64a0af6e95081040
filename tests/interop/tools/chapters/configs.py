"""
``kafka-configs`` and ``kafka-client-metrics``: every kind of resource, described and altered.
"""

from __future__ import annotations

from tests.interop.tools.guide import Guide

CONFIGS = "kafka-configs"
METRICS = "kafka-client-metrics"


def configs_of_topics(guide: Guide) -> None:
    """
    Set, appended to, taken back, and refused.
    """
    guide("kafka-topics", "--create", "--topic", "configured")
    topic = (CONFIGS, "--entity-type", "topics", "--entity-name", "configured")
    guide(*topic, "--describe")
    guide(*topic, "--describe", "--all")
    guide(*topic, "--alter", "--add-config", "retention.ms=77,flush.ms=5")
    guide(*topic, "--alter", "--add-config", "cleanup.policy=[compact,delete]")
    guide(*topic, "--describe")
    guide(*topic, "--alter", "--delete-config", "flush.ms,no.such.config")
    guide(*topic, "--alter", "--delete-config", "flush.ms")
    guide(*topic, "--alter", "--delete-config", "flush.ms")
    file = guide.file("topic.properties", "max.message.bytes=5000\nretention.bytes=9\n")
    guide(*topic, "--alter", "--add-config-file", file)
    guide(CONFIGS, "--describe", "--topic", "configured")
    guide(CONFIGS, "--entity-type", "topics", "--describe")
    for wrong in (
        "retention.ms=soon",
        "no.such.config=1",
        "retention.ms",
        "min.insync.replicas=0",
        "cleanup.policy=[compact,none]",
        "remote.storage.enable=true",
        "compression.type=none",
        "retention.ms=1,no.such.config=2",
        "!=1",
    ):
        guide(*topic, "--alter", "--add-config", wrong)
    missing = (CONFIGS, "--entity-type", "topics", "--entity-name", "nothing")
    guide(*missing, "--describe")
    guide(*missing, "--describe", "--all")
    guide(*missing, "--alter", "--add-config", "retention.ms=1")
    guide(CONFIGS, "--entity-type", "topics", "--entity-name", "a/b", "--describe")
    guide(*topic, "--describe")


def configs_of_brokers(guide: Guide) -> None:
    """
    Of one, of all by default, and of one that is not there.
    """
    one = (CONFIGS, "--entity-type", "brokers", "--entity-name", "1")
    default = (CONFIGS, "--entity-type", "brokers", "--entity-default")
    guide(*one, "--describe")
    guide(*default, "--describe")
    guide(*one, "--describe", "--all")
    guide(*default, "--alter", "--add-config", "log.retention.ms=123456,log.cleaner.threads=2")
    guide(*one, "--alter", "--add-config", "log.retention.ms=654321")
    guide(*default, "--describe")
    guide(*one, "--describe")
    guide(CONFIGS, "--entity-type", "brokers", "--describe")
    guide(CONFIGS, "--broker-defaults", "--describe")
    guide(CONFIGS, "--broker", "1", "--describe")
    topic = (CONFIGS, "--entity-type", "topics", "--entity-name", "by-broker")
    guide("kafka-topics", "--create", "--topic", "by-broker")
    guide(*topic, "--describe", "--all")
    for wrong in (
        "log.retention.ms=never",
        "no.such.config=1",
        "listeners=PLAINTEXT://:9",
        "node.id=4",
        "log.cleaner.threads=100",
        "max.connections=-1",
        "min.insync.replicas=0",
    ):
        guide(*one, "--alter", "--add-config", wrong)
        guide(*default, "--alter", "--add-config", wrong)
    guide(*one, "--alter", "--delete-config", "log.retention.ms")
    guide(*default, "--alter", "--delete-config", "log.retention.ms,log.cleaner.threads")
    guide(*one, "--alter", "--delete-config", "log.retention.ms")
    guide(CONFIGS, "--entity-type", "brokers", "--entity-name", "7", "--describe")
    guide(CONFIGS, "--entity-type", "brokers", "--entity-name", "seven", "--describe")
    guide(*default, "--describe")
    guide(*one, "--describe")


def levels_of_loggers(guide: Guide) -> None:
    """
    ``broker-loggers``: only those that are there, and only levels that there are.
    """
    loggers = (CONFIGS, "--entity-type", "broker-loggers", "--entity-name", "1")
    guide(*loggers, "--describe")
    guide(*loggers, "--alter", "--add-config", "no.such.logger=DEBUG")
    guide(*loggers, "--alter", "--add-config", "root=LOUD")
    guide(CONFIGS, "--entity-type", "broker-loggers", "--entity-name", "7", "--describe")


def configs_of_groups(guide: Guide) -> None:
    """
    A group has some before it has members.
    """
    group = (CONFIGS, "--entity-type", "groups", "--entity-name", "a-group")
    guide(*group, "--describe")
    guide(*group, "--describe", "--all")
    guide(*group, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    guide(*group, "--describe")
    guide(*group, "--describe", "--all")
    guide(CONFIGS, "--entity-type", "groups", "--describe")
    guide(CONFIGS, "--group", "a-group", "--describe")
    for wrong in (
        "consumer.session.timeout.ms=1",
        "consumer.heartbeat.interval.ms=often",
        "no.such.config=1",
    ):
        guide(*group, "--alter", "--add-config", wrong)
    guide(*group, "--alter", "--delete-config", "consumer.session.timeout.ms")
    guide(*group, "--describe")


def quotas(guide: Guide) -> None:
    """
    Of users, clients, both and addresses, and their defaults.
    """
    user = ("--entity-type", "users", "--entity-name", "alice")
    client = ("--entity-type", "clients", "--entity-name", "loader")
    address = ("--entity-type", "ips", "--entity-name", "10.0.0.1")
    rates = ("--alter", "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048.5")
    guide(CONFIGS, *user, "--describe")
    guide(CONFIGS, *user, *rates)
    guide(CONFIGS, *client, *rates)
    guide(CONFIGS, *user, *client, "--alter", "--add-config", "request_percentage=50")
    guide(CONFIGS, "--entity-type", "users", "--entity-default", *rates)
    guide(CONFIGS, "--client-defaults", "--alter", "--add-config", "controller_mutation_rate=3")
    guide(CONFIGS, *address, "--alter", "--add-config", "connection_creation_rate=10")
    guide(CONFIGS, "--ip-defaults", "--alter", "--add-config", "connection_creation_rate=20")
    for described in (
        user,
        client,
        (*user, *client),
        ("--entity-type", "users"),
        ("--entity-type", "clients"),
        ("--entity-type", "users", "--entity-type", "clients"),
        ("--user-defaults",),
        ("--client-defaults",),
        address,
        ("--entity-type", "ips"),
        ("--ip-defaults",),
        ("--entity-type", "users", "--entity-name", "nobody"),
    ):
        guide(CONFIGS, *described, "--describe")
    for wrong in (
        (*user, "--add-config", "no_such_quota=1"),
        (*user, "--add-config", "producer_byte_rate=much"),
        (*user, "--add-config", "producer_byte_rate=-1"),
        (*user, "--add-config", "producer_byte_rate=0"),
        (*user, "--add-config", "connection_creation_rate=1"),
        (*user, "--delete-config", "request_percentage"),
        (*client, "--add-config", "SCRAM-SHA-256=[password=secret]"),
        (
            "--entity-type",
            "ips",
            "--entity-name",
            "no address",
            "--add-config",
            "connection_creation_rate=1",
        ),
        (*address, "--add-config", "connection_creation_rate=1.5"),
        (*address, "--add-config", "producer_byte_rate=1"),
    ):
        guide(CONFIGS, "--alter", *wrong)
    delete = ("--alter", "--delete-config", "producer_byte_rate,consumer_byte_rate")
    guide(CONFIGS, *user, *delete)
    guide(CONFIGS, *client, *delete)
    guide(CONFIGS, "--user-defaults", *delete)
    guide(CONFIGS, *user, *client, "--alter", "--delete-config", "request_percentage")
    guide(CONFIGS, "--client-defaults", "--alter", "--delete-config", "controller_mutation_rate")
    guide(CONFIGS, *address, "--alter", "--delete-config", "connection_creation_rate")
    guide(CONFIGS, "--ip-defaults", "--alter", "--delete-config", "connection_creation_rate")
    guide(CONFIGS, "--entity-type", "users", "--entity-type", "clients", "--describe")


def credentials(guide: Guide) -> None:
    """
    Passwords of users, which nothing shows.
    """
    user = (CONFIGS, "--entity-type", "users", "--entity-name", "bob")
    # One at a time: of several, Apache Kafka tells in the order of a hash map.
    guide(*user, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    guide(*user, "--describe")
    guide(CONFIGS, "--entity-type", "users", "--describe")
    guide(*user, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=1,password=secret]")
    guide(*user, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=99999,password=secret]")
    guide(*user, "--alter", "--delete-config", "SCRAM-SHA-256")
    guide(*user, "--alter", "--delete-config", "SCRAM-SHA-256")
    guide(*user, "--alter", "--add-config", "SCRAM-SHA-512=[password=other]")
    guide(*user, "--describe")
    guide(*user, "--alter", "--delete-config", "SCRAM-SHA-512")
    guide(*user, "--describe")


def subscriptions_of_client_metrics(guide: Guide) -> None:
    """
    With the tool for them, and with the one for all configs.
    """
    name = ("--name", "producers")
    guide(METRICS, "--list")
    guide(
        METRICS, "--alter", *name, "--metrics", "org.apache.kafka.producer.", "--interval", "9000"
    )
    guide(METRICS, "--alter", *name, "--match", "client_id=app.*")
    guide(METRICS, "--list")
    guide(METRICS, "--describe", *name)
    guide(METRICS, "--describe")
    guide(METRICS, "--describe", "--name", "nothing")
    entity = (CONFIGS, "--entity-type", "client-metrics", "--entity-name", "producers")
    guide(*entity, "--describe")
    guide(*entity, "--alter", "--add-config", "interval.ms=8000")
    guide(CONFIGS, "--client-metrics", "producers", "--describe")
    guide(CONFIGS, "--entity-type", "client-metrics", "--describe")
    guide(METRICS, "--alter", *name, "--interval", "5")
    guide(METRICS, "--alter", *name, "--match", "no_such_label=1")
    guide(METRICS, "--alter", *name, "--match", "client_id=[")
    guide(*entity, "--alter", "--add-config", "no.such.config=1")
    guide(METRICS, "--delete", *name)
    guide(METRICS, "--delete", *name)
    guide(METRICS, "--list")


def configs_without_sense(guide: Guide) -> None:
    """
    What the tool refuses itself.
    """
    guide(CONFIGS)
    guide(CONFIGS, "--describe")
    guide(CONFIGS, "--entity-type", "nothing", "--describe")
    guide(CONFIGS, "--entity-type", "topics", "--alter", "--add-config", "retention.ms=1")
    guide(CONFIGS, "--help")
    guide(METRICS)


PARTS = (
    configs_of_topics,
    configs_of_brokers,
    levels_of_loggers,
    configs_of_groups,
    quotas,
    credentials,
    subscriptions_of_client_metrics,
    configs_without_sense,
)
