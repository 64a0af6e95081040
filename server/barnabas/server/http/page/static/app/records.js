// Records as people read them.
import { h } from "./dom.js";
import { coloured, laidOut } from "./json.js";
import { badge } from "./parts.js";
import { to } from "./router.js";
import { counted, exact, moment } from "./units.js";

/** A record. `options`: `topic`, `withPartition`, `pretty` lays JSON out, `found` is marked. */
export function recordEntry(record, { topic, withPartition = false, pretty = true, found = "" }) {
  const place = withPartition ? `${record.partition}:${exact(record.offset)}` : exact(record.offset);
  return h("article", { class: "record", "aria-label": `Record ${place}` },
    h("div", {},
      h("a", { class: "place", href: to(["topics", topic, record.partition, "batches", record.batch_base_offset]) }, place),
      h("div", { class: "at" }, record.timestamp >= 0 ? moment(record.timestamp).slice(0, 19) : "no timestamp")),
    record.control_type ? h("p", {}, badge(record.control_type, record.control_type === "abort" ? "warn" : "accent"),
      " ends the transaction of producer ", h("span", { class: "mono" }, record.producer_id))
      : h("dl", {},
        h("dt", {}, "key"), h("dd", {}, content(record.key, record.key_size, pretty, found)),
        h("dt", {}, "value"), h("dd", {}, content(record.value, record.value_size, pretty, found)),
        headers(record, pretty)));
}

function content(given, bytes, pretty, found) {
  if (bytes === null || bytes === undefined) return h("span", { class: "soft" }, "null");
  if (!given) return h("span", { class: "soft" }, counted(bytes, "byte"));
  if (bytes === 0) return h("span", { class: "soft" }, "no bytes");
  const text = given.format === "json" && pretty ? laidOut(given.text) : given.text;
  return [
    h("pre", { class: "value" }, found ? marked(text, found) : given.format === "json" ? coloured(text) : text),
    given.is_cut ? h("span", { class: "soft" }, `… of ${counted(bytes, "byte")}`) : null,
    given.format === "hex" ? [" ", badge("hex")] : null,
  ];
}

function headers(record, pretty) {
  if (!record.header_count) return null;
  if (!record.headers) return [h("dt", {}, "headers"), h("dd", { class: "soft" }, exact(record.header_count))];
  return record.headers.map((each) => [h("dt", {}, "header"),
    h("dd", {}, h("span", { class: "mono" }, `${each.name}: `), content(each.value, each.size, pretty, ""))]);
}

function marked(text, found) {
  if (!found) return text;
  const parts = [];
  let from = 0;
  for (let at = text.indexOf(found); at >= 0; at = text.indexOf(found, from)) {
    parts.push(text.slice(from, at), h("mark", {}, found));
    from = at + found.length;
  }
  return [...parts, text.slice(from)];
}

/** Why some records are missing; null if none is. */
export function flawOf(answer) {
  return answer.flaw ? h("p", { class: "notice bad" }, `A batch cannot be read: ${answer.flaw}`) : null;
}

/** Why the contents of records are not there. */
export function withheld() {
  return h("p", { class: "notice" }, "This broker does not show what is in records. It does with the option ",
    h("code", {}, "barnabas.http.records=true"), ".");
}
