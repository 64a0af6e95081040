// Transactional ids, and where their transactions are.
import { fill, h } from "../dom.js";
import { askAll } from "../lists.js";
import { badge, carefully, every, heading, panel, when } from "../parts.js";
import { table } from "../table.js";
import { duration, exact } from "../units.js";

const REFRESH_S = 5;

export async function show({ main, signal }) {
  document.title = "Transactions – Barnabas";
  let nowMs = Date.now();
  const list = table([
    { id: "id", name: "Transactional id", value: (row) => row.id, cell: (row) => h("span", { class: "name strong", title: row.id }, row.id) },
    { id: "state", name: "State", value: (row) => row.state, cell: (row) => state(row, nowMs) },
    { id: "partitions", name: "Partitions", number: true, value: (row) => row.partitions, cell: (row) => exact(row.partitions) },
    { id: "started", name: "Begun", number: true, value: (row) => row.started_ms, cell: (row) => when(row.started_ms, nowMs) },
    { id: "updated", name: "Last change", number: true, wide: true, value: (row) => row.updated_ms, cell: (row) => when(row.updated_ms, nowMs) },
    { id: "timeout", name: "Timeout", number: true, wide: true, value: (row) => row.timeout_ms, cell: (row) => duration(row.timeout_ms) },
    { id: "producer", name: "Producer", number: true, mono: true, wide: true, value: (row) => row.producer_id,
      cell: (row) => `${row.producer_id}, epoch ${row.producer_epoch}` },
  ], { label: "Transactions", sort: ["started", false],
    empty: "No producer has a transactional id. A producer gets one by transactional.id." });
  const place = h("div");
  fill(main, heading("Transactions"), panel("Transactional ids", {}, place, list.element));

  async function load() {
    const given = await askAll(["transactions"], {}, "transactions", signal);
    if (signal.aborted) return;
    nowMs = Date.now();
    fill(place);
    list.set(given.transactions);
  }

  await carefully(place, signal, load);
  every(REFRESH_S, signal, () => carefully(place, signal, load));
}

function state(row, nowMs) {
  const isLate = row.state === "Ongoing" && row.started_ms !== null && nowMs - row.started_ms > row.timeout_ms;
  if (isLate) return badge("Ongoing, past its timeout", "bad");
  return badge(row.state, row.state === "Ongoing" ? "accent" : "calm");
}
