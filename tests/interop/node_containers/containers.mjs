// Starts an image with the container for Kafka of testcontainers, and sends a record through it.
//
// Usage: node containers.mjs IMAGE
//
// Prints the record.
import { KafkaContainer } from "@testcontainers/kafka"
import { Kafka, logLevel } from "kafkajs"
const container = await new KafkaContainer(process.argv[2]).withKraft().start()
const bootstrap = `${container.getHost()}:${container.getMappedPort(9093)}`
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
const producer = kafka.producer()
await producer.connect()
await producer.send({ topic: "orders", messages: [{ value: "through JavaScript" }] })
await producer.disconnect()
const consumer = kafka.consumer({ groupId: "group" })
await consumer.connect()
await consumer.subscribe({ topics: ["orders"], fromBeginning: true })
const value = await new Promise((resolve) =>
  consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) }),
)
console.log(value)
await consumer.disconnect()
await container.stop()
