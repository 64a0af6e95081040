// Copies a topic with @platformatic/kafka: a record's offset is committed after its copy is
// acknowledged.

import { Consumer, Producer } from '@platformatic/kafka'

const [bootstrap, source, target] = process.argv.slice(2)
const common = { bootstrapBrokers: [bootstrap], retries: 100, retryDelay: 200 }
const producer = new Producer({ ...common, clientId: 'copier' })
const consumer = new Consumer({ ...common, clientId: 'copier', groupId: 'copier', autocommit: false })

const stream = await consumer.consume({
  topics: [source],
  mode: 'committed',
  fallbackMode: 'earliest',
  sessionTimeout: 2000,
  heartbeatInterval: 500
})
for await (const message of stream) {
  await producer.send({ messages: [{ topic: target, value: message.value }] })
  await message.commit()
}
