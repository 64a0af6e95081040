import assert from "node:assert/strict"
import { after, before, test } from "node:test"
import { Kafka, logLevel } from "kafkajs"
import { Barnabas } from "./barnabas.mjs"

const DAY_MS = 24 * 3600 * 1000

let broker
let kafka

before(async () => {
  broker = await Barnabas.start()
  kafka = new Kafka({
    brokers: await broker.brokers(),
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 10 },
  })
})

after(() => broker?.stop())

async function send(topic, value) {
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ value }] })
  await producer.disconnect()
}

test("orders are gone after a week", async () => {
  await broker.ask("PUT", "/v1/topics/invoices", { config: { "retention.ms": 7 * DAY_MS } })
  await send("invoices", "three castles")
  assert.deepEqual(await broker.values("invoices"), ["three castles"])

  await broker.ask("POST", "/v1/clock/advance", { days: 8 })

  assert.deepEqual(await broker.values("invoices"), [])
})

test("a producer tries again", async () => {
  await broker.ask("PUT", "/v1/topics/retried", {})
  const { id } = await broker.ask("POST", "/v1/faults", {
    kind: "fail",
    api: "Produce",
    error: "NOT_LEADER_OR_FOLLOWER",
    times: 2,
  })

  await send("retried", "one castle")

  assert.equal((await broker.ask("GET", `/v1/faults/${id}`)).count, 2)
  assert.deepEqual(await broker.values("retried"), ["one castle"])
})

test("orders are billed in their order", async () => {
  await broker.ask("PUT", "/v1/topics/orders", {})
  await broker.ask("POST", "/v1/topics/orders/records", {
    records: [{ value: "one castle" }, { value: "two castles" }],
  })

  const billed = []
  const consumer = kafka.consumer({ groupId: "billing" })
  await consumer.connect()
  await consumer.subscribe({ topic: "orders", fromBeginning: true })
  await new Promise((done) =>
    consumer.run({
      eachMessage: async ({ message }) => {
        billed.push(`${message.value}`)
        if (billed.length === 2) done()
      },
    }),
  )
  await consumer.disconnect()

  assert.deepEqual(billed, ["one castle", "two castles"])
  assert.equal((await broker.ask("GET", "/v1/groups/billing")).lag, 0)
})
