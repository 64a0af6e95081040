"""
confluent-kafka, and a broker that fails.
"""

import pytest
from confluent_kafka import KafkaError, Producer


def send(broker, value, **options):
    """
    Send a record, and return its error; None if it has arrived.
    """
    errors = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **options})
    producer.produce("orders", value, on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    return errors[0]


def test_a_producer_tries_again(kafka_broker):
    fault = kafka_broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)

    assert send(kafka_broker, b"one castle") is None

    assert fault.count == 2


def test_a_producer_gives_up(kafka_broker):
    kafka_broker.faults.fail("Produce", error="TOPIC_AUTHORIZATION_FAILED")

    error = send(kafka_broker, b"one castle")

    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("idempotent", "copies"), [(True, 1), (False, 2)])
def test_an_answer_that_is_lost(kafka_broker, idempotent, copies):
    kafka_broker.faults.drop("Produce", times=1)

    send(kafka_broker, b"one castle", **{"enable.idempotence": idempotent})

    assert len(kafka_broker.topic("orders").records()) == copies
