// The topics of the broker, and what needs attention.
import { ask } from "../api.js";
import { attentionList } from "../attention.js";
import { fill, h } from "../dom.js";
import { askAll } from "../lists.js";
import { badge, bar, carefully, every, facts, field, heading, panel, size, when } from "../parts.js";
import { keep, to } from "../router.js";
import { table } from "../table.js";
import { bytes, counted, exact, pace, rate } from "../units.js";

const REFRESH_S = 5;
const MANY = 2000; // Topics, above which they are asked for less often.

export async function show({ main, query, signal }) {
  document.title = "Topics – Barnabas";
  const about = h("div", { class: "panel strip" });
  const attention = h("div");
  const disks = h("div");
  let all = [];
  let largest = 1;

  const topics = table([
    { id: "name", name: "Topic", value: (row) => row.name, cell: (row) => name(row) },
    { id: "partitions", name: "Partitions", number: true, value: (row) => row.partitions, cell: partitions },
    { id: "segments", name: "Segments", number: true, wide: true, value: (row) => row.segments, cell: (row) => exact(row.segments) },
    { id: "size", name: "Size", number: true, value: (row) => row.size,
      cell: (row) => h("span", { class: "with-bar" }, bar(row.size / largest), size(row.size)) },
    { id: "records", name: "Records in", number: true, value: (row) => row.rates?.records_in ?? null, cell: (row) => pace(row.rates?.records_in) },
    { id: "in", name: "Bytes in", number: true, wide: true, value: (row) => row.rates?.bytes_in ?? null, cell: (row) => rate(row.rates?.bytes_in) },
    { id: "out", name: "Bytes out", number: true, wide: true, value: (row) => row.rates?.bytes_out ?? null, cell: (row) => rate(row.rates?.bytes_out) },
  ], { label: "Topics", sort: ["size", true],
    empty: "There is no topic yet. Create one in a terminal: barnabas topics create NAME. A producer creates one as well." });

  const filter = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter topics by name",
    value: query.get("filter") ?? "", oninput: () => { keep({ filter: filter.value }); list(); } });
  const internal = h("input", { type: "checkbox", checked: query.get("internal") === "yes",
    onchange: () => { keep({ internal: internal.checked ? "yes" : null }); list(); } });

  function list() {
    const wanted = filter.value.trim().toLowerCase();
    const rows = all.filter((row) => (internal.checked || !row.is_internal) && row.name.toLowerCase().includes(wanted));
    largest = Math.max(1, ...rows.map((row) => row.size));
    const other = wanted && all.length ? `No topic has “${filter.value.trim()}” in its name.` : undefined;
    topics.set(rows, other);
  }

  fill(main, heading("Topics"), about, attention,
    panel("Topics by size and rate", { actions: h("div", { class: "actions" },
      field("internal topics", internal), filter) }, topics.element),
    disks);

  async function load() {
    const [cluster, given] = await Promise.all([
      ask(["cluster"], {}, signal), askAll(["topics"], {}, "topics", signal)]);
    if (signal.aborted) return;
    all = given.topics;
    fill(about, clusterFacts(cluster));
    fill(attention, cluster.attention.length
      ? panel("Needs attention", { note: counted(cluster.attention.length, "finding") }, attentionList(cluster.attention)) : null);
    attention.hidden = !cluster.attention.length;
    fill(disks, directories(cluster));
    list();
  }

  await carefully(about, signal, load);
  let beat = 0;
  every(REFRESH_S, signal, () => {
    beat += 1;
    if (all.length > MANY && beat % 6) return;
    carefully(about, signal, load);
  });
  if (all.length && !all[0].rates) setTimeout(() => signal.aborted || carefully(about, signal, load), 1200);
}

function name(row) {
  return h("span", {}, h("a", { href: to(["topics", row.name]), class: "name strong", title: row.name }, row.name), " ",
    row.attention ? badge("attention", "warn") : null, row.is_internal ? badge("internal") : null);
}

function partitions(row) {
  if (!row.offline_partitions) return exact(row.partitions);
  return [exact(row.partitions), " ", badge(`${row.offline_partitions} offline`, "bad")];
}

function clusterFacts(cluster) {
  const rates = cluster.rates;
  return facts([
    ["On disk", bytes(cluster.size), `${exact(cluster.size)} bytes`],
    ["Topics", exact(cluster.topics)],
    ["Partitions", exact(cluster.partitions)],
    ["Segments", exact(cluster.segments)],
    ["Groups", exact(cluster.groups)],
    ["Connections", exact(cluster.connections)],
    ["Records in", rates ? pace(rates.records_in) : "–"],
    ["Bytes in", rates ? rate(rates.bytes_in) : "–"],
    ["Bytes out", rates ? rate(rates.bytes_out) : "–"],
    ["Started", cluster.started_ms ? when(cluster.started_ms, cluster.now_ms) : null],
    ["Node", h("span", {}, String(cluster.node_id), " ", h("small", {}, `Barnabas ${cluster.version}`)), `Cluster ${cluster.cluster_id}`],
  ]);
}

function directories(cluster) {
  const list = table([
    { id: "path", name: "Log directory", mono: true, value: (row) => row.path,
      cell: (row) => [row.path, " ", row.is_online ? null : badge("offline", "bad")] },
    { id: "partitions", name: "Partitions", number: true, value: (row) => row.partitions, cell: (row) => exact(row.partitions) },
    { id: "size", name: "Logs", number: true, value: (row) => row.size, cell: (row) => size(row.size) },
    { id: "free", name: "Disk free", number: true, value: (row) => row.usable_bytes,
      cell: (row) => row.total_bytes ? h("span", { class: "with-bar" },
        bar(1 - row.usable_bytes / row.total_bytes, fullness(row)), size(row.usable_bytes)) : "–" },
    { id: "disk", name: "Disk size", number: true, wide: true, value: (row) => row.total_bytes, cell: (row) => size(row.total_bytes) },
  ], { label: "Log directories", empty: "The broker keeps its logs in memory." });
  list.set(cluster.directories);
  return panel("Log directories", {}, list.element);
}

function fullness(row) {
  const used = 1 - row.usable_bytes / row.total_bytes;
  return used > 0.95 ? "bad" : used > 0.85 ? "warn" : "";
}
