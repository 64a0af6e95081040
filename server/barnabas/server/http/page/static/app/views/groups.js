// Groups: their members, how far they are behind, and what they will not read in time.
import { fill, h } from "../dom.js";
import { forecastBadge } from "../forecast.js";
import { askAll } from "../lists.js";
import { badge, bar, carefully, every, field, heading, panel, size } from "../parts.js";
import { keep, to } from "../router.js";
import { table } from "../table.js";
import { exact } from "../units.js";

const REFRESH_S = 5;

export async function show({ main, query, signal }) {
  document.title = "Groups – Barnabas";
  let all = [];
  let most = 1;
  const groups = table([
    { id: "id", name: "Group", value: (row) => row.id,
      cell: (row) => h("a", { class: "name strong", title: row.id, href: to(["group"], { id: row.id }) }, row.id || "(no name)") },
    { id: "state", name: "State", value: (row) => row.state, cell: (row) => badge(row.state, row.state === "Stable" ? "accent" : "calm") },
    { id: "type", name: "Type", wide: true, value: (row) => row.type },
    { id: "members", name: "Members", number: true, value: (row) => row.members, cell: (row) => exact(row.members) },
    { id: "partitions", name: "Partitions", number: true, wide: true, value: (row) => row.partitions, cell: (row) => exact(row.partitions) },
    { id: "lag", name: "Lag", number: true, value: (row) => row.lag,
      cell: (row) => h("span", { class: "with-bar" }, bar((row.lag ?? 0) / most), exact(row.lag)) },
    { id: "bytes", name: "Lag in bytes", number: true, wide: true, value: (row) => row.lag_bytes, cell: (row) => size(row.lag_bytes) },
    { id: "forecast", name: "Forecast", value: (row) => row.forecast?.loss?.bytes ?? null, cell: (row) => forecastBadge(row.forecast) },
  ], { label: "Groups", sort: ["lag", true],
    empty: "No group has committed an offset. A consumer with a group.id makes one." });
  const filter = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter groups by name",
    value: query.get("filter") ?? "", oninput: () => { keep({ filter: filter.value }); list(); } });
  const place = h("div");

  function list() {
    const wanted = filter.value.trim().toLowerCase();
    const rows = all.filter((row) => row.id.toLowerCase().includes(wanted));
    most = Math.max(1, ...rows.map((row) => row.lag ?? 0));
    groups.set(rows, wanted && all.length ? `No group has “${filter.value.trim()}” in its name.` : undefined);
  }

  fill(main, heading("Groups"), panel("Groups by lag", { actions: h("div", { class: "actions" }, field("", filter)) },
    place, groups.element));

  async function load() {
    const given = await askAll(["groups"], {}, "groups", signal);
    if (signal.aborted) return;
    all = given.groups;
    fill(place, given.loading ? h("p", { class: "notice" }, "Some groups are still being loaded.") : null);
    list();
  }

  await carefully(place, signal, load);
  every(REFRESH_S, signal, () => carefully(place, signal, load));
}
