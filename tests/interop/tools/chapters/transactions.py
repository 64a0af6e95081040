"""
``kafka-transactions``, and what transactions leave for readers to see.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from tests.interop.tools.guide import Guide

TRANSACTIONS = "kafka-transactions"
CONSUMER = "kafka-console-consumer"


@contextmanager
def _open_transaction(guide: Guide, transactional_id: str, topic: str) -> Iterator[Producer]:
    """
    A producer that has sent a record within a transaction, and not yet ended it.
    """
    settings: dict[str, str | int] = {
        "bootstrap.servers": guide.broker.bootstrap,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 60000,
    }
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, f"of {transactional_id}".encode(), partition=0)
    producer.flush(30)
    yield producer


def transactions_are_seen(guide: Guide) -> None:
    """
    While they are open, and when they are not.
    """
    guide("kafka-topics", "--create", "--topic", "accounts")
    guide(TRANSACTIONS, "list")
    of_partition = ("--topic", "accounts", "--partition", "0")
    guide(TRANSACTIONS, "describe-producers", *of_partition)
    guide("kafka-console-producer", "--topic", "accounts", "--sync", given="k\n")
    with _open_transaction(guide, "transfer", "accounts") as producer:
        _look(guide)
        read = (CONSUMER, *of_partition, "--offset", "earliest", "--timeout-ms", "500")
        guide(*read)
        guide(*read, "--isolation-level", "read_committed")
        producer.commit_transaction(30)
        guide.until(lambda seen: "CompleteCommit" in seen, TRANSACTIONS, "list")
        _look(guide)
        guide(*read, "--isolation-level", "read_committed")
        guide(*read, "--isolation-level", "read_sometimes")
        producer.begin_transaction()
        producer.produce("accounts", b"regretted", partition=0)
        producer.flush(30)
        producer.abort_transaction(30)
        guide.until(lambda seen: "CompleteAbort" in seen, TRANSACTIONS, "list")
        _look(guide)
        guide(*read, "--isolation-level", "read_committed")


def _look(guide: Guide) -> None:
    of_partition = ("--topic", "accounts", "--partition", "0")
    guide(TRANSACTIONS, "list")
    guide(TRANSACTIONS, "list", "--duration-filter", "3600000")
    guide(TRANSACTIONS, "list", "--duration-filter", "0")
    guide(TRANSACTIONS, "list", "--transactional-id-pattern", "trans.*")
    guide(TRANSACTIONS, "list", "--transactional-id-pattern", "other")
    guide(TRANSACTIONS, "list", "--transactional-id-pattern", "(")
    guide(TRANSACTIONS, "describe", "--transactional-id", "transfer")
    guide(TRANSACTIONS, "describe-producers", *of_partition)
    guide(TRANSACTIONS, "describe-producers", *of_partition, "--broker-id", "1")
    guide(TRANSACTIONS, "find-hanging", "--topic", "accounts", "--max-transaction-timeout", "0")


def transactions_are_aborted(guide: Guide) -> None:
    """
    By an administrator, who finds them hanging or names them.
    """
    guide("kafka-topics", "--create", "--topic", "stuck")
    of_partition = ("--topic", "stuck", "--partition", "0")
    impatient = guide.file("client.properties", "default.api.timeout.ms=2000\n")
    for wrong in (
        ("describe", "--transactional-id", "nobody"),
        ("describe-producers", "--topic", "stuck", "--partition", "9"),
        ("describe-producers", "--topic", "nothing", "--partition", "0"),
        ("describe-producers", *of_partition, "--broker-id", "7"),
        ("abort", *of_partition),
        ("abort", *of_partition, "--start-offset", "5"),
        ("abort", *of_partition, "--producer-id", "5"),
        ("find-hanging",),
        ("find-hanging", "--partition", "0"),
        ("find-hanging", "--topic", "nothing"),
        ("find-hanging", "--broker-id", "7"),
        ("forceTerminateTransaction", "--transactionalId", "nobody"),
        ("dance",),
    ):
        guide(TRANSACTIONS, "--command-config", impatient, *wrong)
    with _open_transaction(guide, "hanging", "stuck"):
        guide(TRANSACTIONS, "find-hanging", "--topic", "stuck")
        guide(TRANSACTIONS, "find-hanging", "--broker-id", "1")
        guide(TRANSACTIONS, "abort", *of_partition, "--start-offset", "0")
        guide(TRANSACTIONS, "describe-producers", *of_partition)
    with _open_transaction(guide, "unwanted", "stuck"):
        guide(TRANSACTIONS, "forceTerminateTransaction", "--transactionalId", "unwanted")
        guide(TRANSACTIONS, "describe", "--transactional-id", "unwanted")
        guide(TRANSACTIONS, "describe-producers", *of_partition)
    read = (CONSUMER, *of_partition, "--offset", "earliest", "--timeout-ms", "500")
    guide(*read)
    guide(*read, "--isolation-level", "read_committed")


def transactions_are_kept(guide: Guide) -> None:
    """
    In a topic of their own, of which the formatter for it shows every step.
    """
    log = (CONSUMER, "--topic", "__transaction_state", "--from-beginning", "--timeout-ms", "2000")
    name = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
    guide(*log, "--formatter", name)


PARTS = (
    transactions_are_seen,
    transactions_are_aborted,
    transactions_are_kept,
)
