// A broker for tests, with a clock that they move and faults that they order.
//
// It is a process, `barnabas serve --test-control`. Where the environment has BARNABAS_CONTROL, such
// as http://kafka:8099, the broker that runs there is used; BARNABAS names the program, if it is not
// on the path.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"

export class Barnabas {
  static async start() {
    if (process.env.BARNABAS_CONTROL) return new Barnabas(process.env.BARNABAS_CONTROL)
    // Port 0 is any free one; the first line of the output says where the control is.
    const serve = "serve --test-control 0 --set listeners=PLAINTEXT://127.0.0.1:0 --log-level WARNING"
    const child = spawn(process.env.BARNABAS ?? "barnabas", serve.split(" "), {
      stdio: ["ignore", "pipe", "inherit"],
    })
    process.once("exit", () => child.kill())
    const ended = once(child, "exit").then(() => {
      throw new Error("barnabas has ended: see its messages above")
    })
    const [url] = await Promise.race([once(createInterface(child.stdout), "line"), ended])
    ended.catch(() => {})
    return new Barnabas(url, child)
  }

  constructor(url, child) {
    this.url = url
    this.child = child
  }

  async stop() {
    if (!this.child || this.child.exitCode !== null) return
    this.child.kill()
    await once(this.child, "exit")
  }

  async ask(method, path, body) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(text)
    return text && JSON.parse(text)
  }

  async brokers() {
    return [(await this.ask("GET", "/v1/broker")).bootstrap_servers]
  }

  // The values of all records that a consumer would get.
  async values(topic) {
    const { records } = await this.ask("GET", `/v1/topics/${topic}/records`)
    return records.map((record) => record.value)
  }
}
