// A batch: its producer, its transaction, and its records.
import { ask } from "../api.js";
import { fill, h } from "../dom.js";
import { badge, carefully, facts, heading, offset, panel, size } from "../parts.js";
import { flawOf, recordEntry, withheld } from "../records.js";
import { to } from "../router.js";
import { counted, exact, moment } from "../units.js";

const MOST_RECORDS = 1000;
const MOST_BYTES = 1 << 20;

export async function show({ main, part, signal }) {
  const { topic, partition } = part;
  document.title = `Batch ${part.offset} of ${topic}-${partition} – Barnabas`;
  const about = h("div", { class: "panel strip" });
  const words = h("div");
  const records = h("div");
  const title = h("div", {}, heading(`Batch ${exact(Number(part.offset))}`, way(topic, partition)));
  fill(main, title, about, words, records);

  await carefully(about, signal, async () => {
    const place = ["topics", topic, "partitions", partition];
    const [cluster, found] = await Promise.all([
      ask(["cluster"], {}, signal), ask([...place, "lookup"], { offset: part.offset }, signal)]);
    if (signal.aborted) return;
    const base = found.segment.base_offset;
    const step = found.offset;
    const [batch] = (await ask([...place, "segments", base, "batches"], { position: step.position, limit: 1 }, signal)).batches;
    fill(title, h("div", { class: "title-row" },
      heading(`Batch ${exact(batch.base_offset)}`, way(topic, partition, base)), kinds(batch)));
    fill(about, batchFacts(batch));
    fill(words, panel("What it is", {}, h("dl", { class: "words" },
      h("dt", {}, `Offset ${exact(Number(part.offset))}`), h("dd", {}, (found.record?.words ?? []).map((each) => h("p", {}, each))),
      producer(batch))));
    await showRecords(cluster.records_allowed, batch, place);
  }, { alone: true });

  async function showRecords(isAllowed, batch, place) {
    const given = await ask([...place, "records"], { offset: batch.base_offset, limit: MOST_RECORDS,
      max_bytes: MOST_BYTES, content: isAllowed }, signal);
    if (signal.aborted) return;
    const inside = given.records.filter((each) => each.batch_base_offset === batch.base_offset);
    const missing = batch.records - inside.length;
    fill(records, panel("Records", { note: counted(inside.length, "record") },
      isAllowed ? null : withheld(), flawOf(given),
      h("div", { class: "records" }, inside.map((each) => recordEntry(each, { topic }))),
      missing > 0 && !batch.is_control ? h("p", { class: "soft" }, `${counted(missing, "record")} more are not shown.`) : null));
  }
}

function way(topic, partition, base) {
  const list = [["Topics", "#/"], [topic, to(["topics", topic])], [`Partition ${partition}`, to(["topics", topic, partition])]];
  if (base !== undefined) list.push([`Segment ${exact(base)}`, to(["topics", topic, partition, "segments", base])]);
  return list;
}

function kinds(batch) {
  return h("div", { class: "actions" },
    batch.is_control ? badge("control batch", "accent") : null,
    batch.is_transactional ? badge("transactional", "accent") : null,
    batch.is_valid ? null : badge("its checksum is wrong", "bad"));
}

function batchFacts(batch) {
  return facts([
    ["Offsets", h("span", { class: "mono" }, batch.base_offset === batch.last_offset ? exact(batch.base_offset)
      : `${exact(batch.base_offset)}–${exact(batch.last_offset)}`)],
    ["Records", exact(batch.records)],
    ["Size", size(batch.size)],
    ["Codec", batch.codec === "none" ? "not compressed" : batch.codec],
    ["Ratio", batch.codec !== "none" && batch.ratio ? `${batch.ratio.toFixed(2)} : 1` : null],
    ["Uncompressed", batch.codec !== "none" && batch.uncompressed_size ? size(batch.uncompressed_size) : null],
    ["At byte", offset(batch.position)],
    ["Latest record", batch.max_timestamp >= 0 ? moment(batch.max_timestamp) : "no timestamp"],
    ["Timestamps are", batch.timestamp_type === "log_append_time" ? "of the append" : "of the producer"],
    ["Leader epoch", exact(batch.leader_epoch)],
    ["Format", `v${batch.magic}`],
  ]);
}

function producer(batch) {
  if (batch.producer_id < 0) return [h("dt", {}, "Producer"), h("dd", {}, "It is not idempotent: its batches have no producer id.")];
  const sequence = batch.base_sequence >= 0 ? `, from sequence ${exact(batch.base_sequence)} on` : "";
  return [h("dt", {}, "Producer"),
    h("dd", {}, "Producer ", h("span", { class: "mono" }, batch.producer_id), `, epoch ${batch.producer_epoch}${sequence}.`),
    h("dt", {}, "Transaction"),
    h("dd", {}, batch.is_control ? "It is a marker that ends a transaction."
      : batch.is_transactional ? "It is part of a transaction." : "It is in no transaction."),
    batch.delete_horizon_ms === null || batch.delete_horizon_ms === undefined ? null
      : [h("dt", {}, "Delete horizon"), h("dd", {}, `Its tombstones and markers stay until ${moment(batch.delete_horizon_ms)} at least.`)]];
}
