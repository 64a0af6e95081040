// A group: its members, its offsets, and the forecast.
import { fill, h } from "../dom.js";
import { forecastBadge, forecastWords, race } from "../forecast.js";
import { askAll } from "../lists.js";
import { badge, bar, carefully, every, facts, heading, offset, panel, size, when } from "../parts.js";
import { to } from "../router.js";
import { table } from "../table.js";
import { bytes, counted, exact, pace } from "../units.js";

const REFRESH_S = 5;
const MOST_FORECASTS = 20;

export async function show({ main, query, signal }) {
  const id = query.get("id") ?? "";
  document.title = `${id} – Barnabas`;
  const about = h("div", { class: "panel strip" });
  const forecast = h("div", { hidden: true });
  const members = h("div");
  let nowMs = Date.now();
  let most = 1;

  const offsets = table([
    { id: "topic", name: "Partition", value: (row) => `${row.topic}-${row.partition}`,
      cell: (row) => h("a", { class: "name strong", href: to(["topics", row.topic, row.partition]) }, `${row.topic}-${row.partition}`) },
    { id: "offset", name: "Offset", number: true, mono: true, value: (row) => row.offset, cell: (row) => offset(row.offset) },
    { id: "high", name: "High watermark", number: true, mono: true, wide: true, value: (row) => row.high_watermark, cell: (row) => offset(row.high_watermark) },
    { id: "lag", name: "Lag", number: true, value: (row) => row.lag,
      cell: (row) => h("span", { class: "with-bar" }, bar((row.lag ?? 0) / most), exact(row.lag)) },
    { id: "bytes", name: "In bytes", number: true, wide: true, value: (row) => row.lag_bytes, cell: (row) => size(row.lag_bytes) },
    { id: "pace", name: "Pace", number: true, wide: true, value: (row) => row.forecast?.records_per_second ?? null,
      cell: (row) => pace(row.forecast?.records_per_second) },
    { id: "end", name: "Reads the end", number: true, wide: true, value: (row) => row.forecast?.reaches_end_ms ?? null,
      cell: (row) => when(row.forecast?.reaches_end_ms, nowMs) },
    { id: "committed", name: "Committed", number: true, wide: true, value: (row) => row.committed_ms, cell: (row) => when(row.committed_ms, nowMs) },
    { id: "forecast", name: "Forecast", value: (row) => row.forecast?.loss?.bytes ?? null, cell: (row) => forecastBadge(row.forecast) },
  ], { label: "Offsets of the group", sort: ["lag", true], empty: "The group has committed no offset." });

  fill(main, heading(id || "(no name)", [["Groups", "#/groups"]]), about, forecast,
    panel("Offsets", {}, offsets.element), members);

  async function load() {
    const group = await askAll(["group"], { id }, "offsets", signal);
    if (signal.aborted) return;
    nowMs = Date.now();
    most = Math.max(1, ...group.offsets.map((row) => row.lag ?? 0));
    fill(about, groupFacts(group));
    offsets.set(group.offsets);
    fill(forecast, forecasts(group.offsets, nowMs));
    forecast.hidden = !forecast.firstChild;
    fill(members, memberList(group));
  }

  await carefully(about, signal, load, { alone: true });
  every(REFRESH_S, signal, () => carefully(about, signal, load));
}

function groupFacts(group) {
  return facts([
    ["State", badge(group.state, group.state === "Stable" ? "accent" : "calm")],
    ["Type", group.type],
    ["Members", exact(group.member_count ?? group.members.length)],
    ["Lag", h("span", {}, exact(group.lag), " ", h("small", {}, "records"))],
    ["Unread", bytes(group.lag_bytes)],
    ["Forecast", group.forecast ? forecastBadge(group.forecast) : null],
    ["Assignor", group.protocol || null],
    ["Epoch", group.epoch],
  ]);
}

/** The sentences of the partitions that lose the most; of one partition, whatever they are. */
function forecasts(offsets, nowMs) {
  const known = offsets.filter((each) => each.forecast?.words?.length);
  const losing = known.filter((each) => each.forecast.loss)
    .sort((a, b) => b.forecast.loss.bytes - a.forecast.loss.bytes);
  const shown = losing.length ? losing : known;
  if (!shown.length) return null;
  const more = shown.length - MOST_FORECASTS;
  const note = losing.length ? `${counted(losing.length, "partition")} with records that will be deleted unread` : null;
  return panel("Forecast", { note }, h("dl", { class: "words" }, shown.slice(0, MOST_FORECASTS).map((each) => [
    h("dt", {}, h("a", { href: to(["topics", each.topic, each.partition]) }, `${each.topic}-${each.partition}`)),
    h("dd", {}, forecastWords(each.forecast), race(each.forecast, nowMs)),
  ])), more > 0 ? h("p", { class: "soft" }, `and ${counted(more, "partition")} more`) : null);
}

function memberList(group) {
  const list = table([
    { id: "id", name: "Member", mono: true, value: (row) => row.id, cell: (row) => h("span", { class: "name", title: row.id }, row.id) },
    { id: "client", name: "Client", value: (row) => row.client_id, cell: (row) => h("span", { class: "name", title: row.client_id }, row.client_id) },
    { id: "host", name: "Host", mono: true, wide: true, value: (row) => row.host },
    { id: "instance", name: "Instance", wide: true, value: (row) => row.instance_id, cell: (row) => row.instance_id ?? "–" },
    { id: "assigned", name: "Assigned", grow: true, value: assigned },
  ], { label: "Members", sort: ["client", false], empty: "The group has no member now: nobody reads for it." });
  list.set(group.members);
  return panel("Members", { note: group.members.length ? null : "" }, list.element);
}

function assigned(member) {
  if (member.tasks) {
    return (member.tasks.active ?? []).map((each) => `task ${each.subtopology}: ${ranges(each.partitions)}`).join("; ");
  }
  return (member.partitions ?? []).map((each) => `${each.topic}: ${ranges(each.partitions)}`).join("; ") || "nothing";
}

/** `0–3, 7` of a list of numbers. */
function ranges(numbers) {
  const found = [];
  for (const each of [...numbers].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && each === last[1] + 1) last[1] = each;
    else found.push([each, each]);
  }
  return found.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(", ");
}
