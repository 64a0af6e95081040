// A topic: its partitions, and the settings that decide about their logs.
import { attentionList } from "../attention.js";
import { fill, h } from "../dom.js";
import { askAll } from "../lists.js";
import { badge, bar, carefully, every, facts, heading, offset, panel, size } from "../parts.js";
import { mattering, settingRows } from "../settings.js";
import { to } from "../router.js";
import { table } from "../table.js";
import { bytes, counted, exact, pace, rate } from "../units.js";

const REFRESH_S = 5;

export async function show({ main, part, signal }) {
  document.title = `${part.topic} – Barnabas`;
  const about = h("div", { class: "panel strip" });
  const attention = h("div", { hidden: true });
  const settings = h("div");
  let largest = 1;
  let most = 1;

  const partitions = table([
    { id: "partition", name: "Partition", value: (row) => row.partition,
      cell: (row) => [h("a", { class: "strong", href: to(["topics", part.topic, row.partition]) }, `${row.partition}`),
        row.error ? [" ", badge("offline", "bad", row.error)] : null] },
    { id: "size", name: "Size", number: true, value: (row) => row.size,
      cell: (row) => h("span", { class: "with-bar" }, bar(row.size / largest, "accent"), size(row.size)) },
    { id: "segments", name: "Segments", number: true, value: (row) => row.segments, cell: (row) => exact(row.segments) },
    { id: "records", name: "Offsets", number: true, value: count,
      cell: (row) => h("span", { class: "with-bar", title: "The end of the log minus its start" }, bar((count(row) ?? 0) / most), exact(count(row))) },
    { id: "start", name: "Start", number: true, mono: true, wide: true, value: (row) => row.log_start_offset, cell: (row) => offset(row.log_start_offset) },
    { id: "high", name: "High watermark", number: true, mono: true, wide: true, value: (row) => row.high_watermark, cell: (row) => offset(row.high_watermark) },
    { id: "end", name: "End", number: true, mono: true, value: (row) => row.log_end_offset, cell: (row) => offset(row.log_end_offset) },
    { id: "open", name: "Open transactions", number: true, wide: true, value: (row) => row.high_watermark - row.last_stable_offset,
      cell: (row) => row.last_stable_offset < row.high_watermark
        ? badge(`from ${exact(row.last_stable_offset)} on`, "warn") : "none" },
    { id: "directory", name: "Directory", mono: true, wide: true, value: (row) => row.directory },
  ], { label: "Partitions", sort: ["partition", false], empty: "This topic has no partition here." });

  fill(main, h("div", { class: "title-row" }, heading(part.topic, [["Topics", "#/"]]),
    h("div", { class: "actions" }, h("a", { class: "button", href: to(["topics", part.topic, "tail"]) }, "Follow new records"))),
  about, attention, panel("Partitions", {}, partitions.element), settings);

  async function load(isFirst) {
    const topic = await askAll(["topics", part.topic], {}, "partition_list", signal);
    if (signal.aborted) return;
    const rows = topic.partition_list;
    largest = Math.max(1, ...rows.map((row) => row.size ?? 0));
    most = Math.max(1, ...rows.map((row) => count(row) ?? 0));
    fill(about, topicFacts(topic));
    attention.hidden = !topic.attention_list?.length;
    if (!attention.hidden) {
      fill(attention, panel("Needs attention", { note: counted(topic.attention_list.length, "finding") },
        attentionList(topic.attention_list)));
    }
    partitions.set(rows);
    if (isFirst) fill(settings, settingsPanel(topic.settings));
  }

  await carefully(about, signal, () => load(true), { alone: true });
  every(REFRESH_S, signal, () => carefully(about, signal, () => load(false)));
}

/** The settings that matter, and all of them on demand. */
function settingsPanel(settings) {
  const chosen = mattering(settings);
  const others = Object.keys(settings).length - Object.keys(chosen).length;
  const list = h("div", {}, settingRows(chosen));
  const all = others > 0 ? h("button", { type: "button", class: "quiet", onclick: () => {
    fill(list, settingRows(settings));
    all.remove();
  } }, `${counted(others, "other default")}`) : null;
  return panel("Settings of its logs", { actions: h("div", { class: "actions" }, all) }, list);
}

function count(row) {
  if (row.log_end_offset === null || row.log_end_offset === undefined) return null;
  return row.log_end_offset - row.log_start_offset;
}

function topicFacts(topic) {
  const rates = topic.rates;
  return facts([
    ["On disk", bytes(topic.size), `${exact(topic.size)} bytes`],
    ["Partitions", exact(topic.partitions)],
    ["Segments", exact(topic.segments)],
    ["Records in", pace(rates?.records_in)],
    ["Bytes in", rate(rates?.bytes_in)],
    ["Bytes out", rate(rates?.bytes_out)],
    ["Cleanup policy", topic.settings["cleanup.policy"]?.value || "none"],
    ["Topic id", h("span", { class: "mono" }, topic.id)],
  ]);
}
