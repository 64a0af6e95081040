"""
The tools that measure and verify: what they count is compared, not how long it took.
"""

from __future__ import annotations

from tests.interop.tools.guide import Guide

PRODUCER = "kafka-producer-perf-test"
CONSUMER = "kafka-consumer-perf-test"


def _create(guide: Guide, topic: str, partitions: str) -> None:
    """
    Create a topic and see that it is there.

    Apache Kafka may take the second batch of a producer before the first, when the partition
    appears in between, and then the producer tries for two minutes.
    """
    guide("kafka-topics", "--create", "--topic", topic, "--partitions", partitions)
    guide("kafka-get-offsets", "--topic", topic)


def records_are_produced_in_bulk(guide: Guide) -> None:
    """
    ``kafka-producer-perf-test``, with acks, compression, a file, and transactions.
    """
    _create(guide, "load", "2")
    load = (PRODUCER, "--topic", "load", "--throughput", "-1", "--num-records")
    guide(*load, "20000", "--record-size", "100")
    guide(*load, "2000", "--record-size", "100", "--command-property", "acks=0")
    lz4 = ("--command-property", "compression.type=lz4", "--command-property", "linger.ms=20")
    guide(*load, "2000", "--record-size", "1000", *lz4)
    file = guide.file("payload.txt", "one\ntwo\nthree\n")
    guide(*load, "500", "--payload-file", file)
    guide(*load, "500", "--payload-monotonic")
    guide(*load, "2000", "--record-size", "10", "--transactional-id", "loader")
    guide(*load, "2000", "--record-size", "10", "--transaction-duration-ms", "20")
    guide(*load, "5", "--record-size", "2000000")
    guide(PRODUCER, "--topic", "load")
    guide("kafka-get-offsets", "--topic", "load", "--time", "-2")


def records_are_consumed_in_bulk(guide: Guide) -> None:
    """
    ``kafka-consumer-perf-test``.
    """
    _create(guide, "bulk", "1")
    load = ("--topic", "bulk", "--num-records", "20000", "--record-size", "100")
    guide(PRODUCER, *load, "--throughput", "-1")
    guide(CONSUMER, "--topic", "bulk", "--num-records", "20000", "--group", "readers")
    guide(CONSUMER, "--include", "bul.", "--num-records", "20000", "--hide-header")
    detail = ("--show-detailed-stats", "--reporting-interval", "60000")
    guide(CONSUMER, "--topic", "bulk", "--num-records", "20000", *detail)
    guide(CONSUMER, "--topic", "bulk")


def latency_is_measured(guide: Guide) -> None:
    """
    ``kafka-e2e-latency``, with keys and headers, into a topic that it creates.
    """
    measure = ("kafka-e2e-latency", "--topic", "there-and-back", "--num-records", "20")
    guide(*measure, "--producer-acks", "1", "--record-size", "64")
    sizes = ("--record-key-size", "8", "--num-headers", "2")
    guide(*measure, "--producer-acks", "all", "--record-size", "64", *sizes)
    guide(*measure, "--producer-acks", "0", "--record-size", "64")


def records_are_verified(guide: Guide) -> None:
    """
    ``kafka-verifiable-producer``, and then ``kafka-verifiable-consumer``.

    A consumer beside the producer would print each portion that it happens to find.
    """
    guide("kafka-topics", "--create", "--topic", "verified")
    written = ("--max-messages", "20", "--value-prefix", "7", "--repeating-keys", "3")
    guide("kafka-verifiable-producer", "--topic", "verified", *written)
    read = ("--max-messages", "20", "--group-id", "verifiers")
    guide("kafka-verifiable-consumer", "--topic", "verified", *read)


def replicas_are_the_same(guide: Guide) -> None:
    """
    ``kafka-replica-verification``, which goes on until it is told to stop.
    """
    guide("kafka-topics", "--create", "--topic", "replicated")
    guide("kafka-console-producer", "--topic", "replicated", given="one\ntwo\nthree\n")
    verify = ("kafka-replica-verification", "--report-interval-ms", "1000", "--topics-include")
    guide(*verify, "nothing")
    guide(*verify, "*")
    guide(*verify, "replica.*", until="max lag")


def applications_are_reset(guide: Guide) -> None:
    """
    ``kafka-streams-application-reset``: the group goes back, and internal topics go away.
    """
    reset = ("kafka-streams-application-reset", "--application-id", "words")
    for topic in ("lines", "words-counts-changelog"):
        guide("kafka-topics", "--create", "--topic", topic)
    guide("kafka-console-producer", "--topic", "lines", given="one\ntwo\nthree\n")
    read = ("--topic", "lines", "--group", "words", "--from-beginning", "--max-messages", "3")
    guide("kafka-console-consumer", *read)
    guide(*reset, "--input-topics", "lines", "--dry-run")
    guide(*reset, "--input-topics", "lines", "--internal-topics", "words-counts-changelog")
    guide(*reset, "--input-topics", "nothing")
    guide("kafka-consumer-groups", "--describe", "--group", "words")
    guide("kafka-topics", "--list", "--topic", "words.*")


PARTS = (
    records_are_produced_in_bulk,
    records_are_consumed_in_bulk,
    latency_is_measured,
    records_are_verified,
    replicas_are_the_same,
    applications_are_reset,
)
