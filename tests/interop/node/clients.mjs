// What kafkajs does with a topic: create it, fill it, also in transactions, and read it in a group.
//
// Usage: node clients.mjs BOOTSTRAP TOPIC COUNT
//
// The group has the topic's name. What the group read, COUNT records, is printed as a line each.
import { Kafka, CompressionTypes, logLevel } from "kafkajs"
const [bootstrap, topic, count] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
const admin = kafka.admin()
await admin.connect()
await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 2 }] })
const messages = (name) =>
  Array.from({ length: 10 }, (_, n) => ({ key: `k${n}`, value: `${name}-${n}`, headers: { of: name } }))
const producer = kafka.producer()
await producer.connect()
for (const [name, compression] of [["none", CompressionTypes.None], ["gzip", CompressionTypes.GZIP]])
  await producer.send({ topic, compression, messages: messages(name) })
await producer.disconnect()
const transactional = kafka.producer({ transactionalId: topic, idempotent: true, maxInFlightRequests: 1 })
await transactional.connect()
for (const name of ["lost", "kept"]) {
  const transaction = await transactional.transaction()
  await transaction.send({ topic, messages: messages(name) })
  await (name === "kept" ? transaction.commit() : transaction.abort())
}
await transactional.disconnect()
const member = kafka.consumer({ groupId: topic, maxWaitTimeInMs: 100 })
await member.connect()
await member.subscribe({ topic, fromBeginning: true })
let seen = 0
await new Promise((enough) => member.run({
  autoCommitThreshold: 1,
  eachMessage: async ({ partition, message }) => {
    const { offset, key, value, headers } = message
    console.log(partition, offset, `${key}`, `${value}`, `${headers.of}`)
    if (++seen === Number(count)) enough()
  },
}))
await member.disconnect()
await admin.disconnect()
