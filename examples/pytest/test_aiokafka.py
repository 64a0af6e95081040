"""
aiokafka: the broker has an event loop of its own, so that the one of the test is free.
"""

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def test_an_order_arrives(kafka_broker):
    async with AIOKafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        await producer.send_and_wait("orders", b"one castle", key=b"ann")

    async with AIOKafkaConsumer(
        "orders",
        bootstrap_servers=kafka_broker.bootstrap_servers,
        group_id="billing",
        auto_offset_reset="earliest",
    ) as consumer:
        record = await consumer.getone()
        await consumer.commit()

    assert (record.key, record.value) == (b"ann", b"one castle")
    await kafka_broker.wait_until_async(lambda: kafka_broker.groups["billing"].lag == 0)


async def test_each_test_has_a_topic_of_its_own(kafka_topic, kafka_session_broker):
    servers = kafka_session_broker.bootstrap_servers
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(kafka_topic.name, b"one castle")

    assert [record.value for record in kafka_topic.records()] == [b"one castle"]
