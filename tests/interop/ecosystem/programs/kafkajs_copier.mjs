// Copies a topic with kafkajs, in transactions: copies and offsets are committed together. When the
// broker goes away in a transaction, the program ends, and its supervisor starts another.

import kafkajs from 'kafkajs'

const [bootstrap, source, target] = process.argv.slice(2)
const kafka = new kafkajs.Kafka({
  brokers: [bootstrap],
  retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 20 }
})
const producer = kafka.producer({
  transactionalId: 'copier',
  idempotent: true,
  maxInFlightRequests: 1,
  transactionTimeout: 4000
})
const consumer = kafka.consumer({
  groupId: 'copier',
  sessionTimeout: 2000,
  heartbeatInterval: 500,
  readUncommitted: false
})

const end = error => {
  console.error(error)
  process.exit(1)
}
consumer.on(consumer.events.CRASH, event => {
  if (!event.payload.restart) end(event.payload.error)
})

const copy = async ({ batch, heartbeat }) => {
  const offset = String(BigInt(batch.lastOffset()) + 1n)
  const topics = [{ topic: source, partitions: [{ partition: batch.partition, offset }] }]
  try {
    const transaction = await producer.transaction()
    await transaction.send({
      topic: target,
      messages: batch.messages.map(message => ({ value: message.value }))
    })
    await transaction.sendOffsets({ consumerGroupId: 'copier', topics })
    await transaction.commit()
  } catch (error) {
    end(error)
  }
  await heartbeat()
}

await producer.connect()
await consumer.connect()
await consumer.subscribe({ topic: source, fromBeginning: true })
await consumer.run({ autoCommit: false, eachBatch: copy })
