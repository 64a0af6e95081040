// Settings of topics, as people read them.
import { h } from "./dom.js";
import { bytes, duration, exact } from "./units.js";

const LONG_MAX = 9223372036854775807n;

/** The value of a setting as a number; null if it is none, Infinity if it has no limit. */
export function numberOf(settings, name) {
  const text = settings[name]?.value;
  if (text === undefined || text === null || !/^-?\d+$/.test(text)) return null;
  if (text === "-1" || BigInt(text) >= LONG_MAX) return Infinity;
  return Number(text);
}

/** What a setting says, with its unit. */
export function meaning(name, settings) {
  const text = String(settings[name]?.value ?? "");
  const number = numberOf(settings, name);
  if (number === null) return text === "" ? "none" : text;
  if (number === Infinity && /\.(ms|bytes)$/.test(name)) return "no limit";
  if (name.endsWith(".ms")) return duration(number);
  if (name.endsWith(".bytes")) return bytes(number);
  return /^-?\d{4,}$/.test(text) ? exact(Number(text)) : text;
}

const MATTERING = new Set(["cleanup.policy", "retention.ms", "retention.bytes", "segment.bytes", "segment.ms", "segment.index.bytes",
  "index.interval.bytes", "compression.type", "min.insync.replicas", "message.timestamp.type", "max.message.bytes"]);
const OF_COMPACTION = new Set(["min.cleanable.dirty.ratio", "min.compaction.lag.ms", "max.compaction.lag.ms", "delete.retention.ms"]);

/** The settings that matter: those which decide about the log, and all that were set. */
export function mattering(settings) {
  const isCompacted = (settings["cleanup.policy"]?.value ?? "").includes("compact");
  return Object.fromEntries(Object.entries(settings).filter(([name, each]) => MATTERING.has(name)
    || (isCompacted && OF_COMPACTION.has(name)) || each.source !== "default"));
}

/** A list of settings: name, meaning, where it was set. */
export function settingRows(settings) {
  return h("div", { class: "table", role: "region", "aria-label": "Settings", tabindex: "0" },
    h("table", { "aria-label": "Settings" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Setting"), h("th", { scope: "col" }, "Value"),
        h("th", { scope: "col", class: "wide" }, "Source"))),
      h("tbody", {}, Object.entries(settings).map(([name, each]) => h("tr", {},
        h("th", { scope: "row", class: "mono" }, name),
        h("td", { title: each.value }, meaning(name, settings)),
        h("td", { class: each.source === "default" ? "soft wide" : "wide" }, each.source))))));
}
