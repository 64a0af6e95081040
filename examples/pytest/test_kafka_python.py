"""
kafka-python, with the fixtures that ``pip install barnabas`` brings.
"""

from kafka import KafkaConsumer, KafkaProducer


def test_orders_are_billed_in_their_order(kafka_broker):
    kafka_broker.topic("orders").append([("ann", "one castle"), ("ann", "two castles")])

    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=kafka_broker.bootstrap_servers,
        group_id="billing",
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    billed = [next(consumer).value for _ in range(2)]
    consumer.commit()
    consumer.close()

    assert billed == [b"one castle", b"two castles"]
    kafka_broker.wait_until(lambda: kafka_broker.groups["billing"].lag == 0)


def test_orders_are_gone_after_a_week(kafka_broker):
    invoices = kafka_broker.topic("invoices").create(config={"retention.ms": 7 * 24 * 3600 * 1000})
    with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        producer.send("invoices", b"three castles").get(timeout=10)
    assert [record.value for record in invoices.records()] == [b"three castles"]

    kafka_broker.clock.advance(days=8)

    assert invoices.records() == []
