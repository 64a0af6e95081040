// Sends ten records and reads them by the mechanism of the arguments:
// bootstrap, topic, file of the authority, mechanism (or "-"), user, password, client certificate (or "-").
import { readFileSync } from "node:fs";
import { Kafka, logLevel } from "kafkajs";

const [bootstrap, topic, authority, mechanism, username, password, certificate] = process.argv.slice(2);
const ssl = { ca: [readFileSync(authority, "utf8")] };
if (certificate !== "-") {
  const pem = readFileSync(certificate, "utf8");
  Object.assign(ssl, { key: pem, cert: pem });
}
const kafka = new Kafka({
  brokers: [bootstrap],
  ssl,
  sasl: mechanism === "-" ? undefined : { mechanism, username, password },
  logLevel: logLevel.NOTHING,
  retry: { retries: 2 },
});
const fail = (error) => {
  console.log(`${error.name}: ${error.message}`);
  process.exit(0);
};
const producer = kafka.producer();
await producer.connect().catch(fail);
const sent = Array.from({ length: 10 }, (_, n) => topic + n);
await producer.send({ topic, messages: sent.map((value) => ({ value, partition: 0 })) });
await producer.disconnect();
const read = [];
const consumer = kafka.consumer({ groupId: topic });
await consumer.connect();
await consumer.subscribe({ topic, fromBeginning: true });
await new Promise((done) => {
  consumer.run({
    eachMessage: async ({ message }) => {
      read.push(message.value.toString());
      if (read.length === sent.length) done();
    },
  });
});
await consumer.disconnect();
console.log(JSON.stringify(sent) === JSON.stringify(read) ? "ok" : `read ${read}`);
