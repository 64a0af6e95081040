// A partition: its timeline, what other settings would do, its segments, and who reads it.
import { address, ask } from "../api.js";
import { fill, h } from "../dom.js";
import { forecastBadge, forecastWords, race } from "../forecast.js";
import { badge, carefully, facts, failure, heading, offset, panel, size } from "../parts.js";
import { keep, to } from "../router.js";
import { table } from "../table.js";
import { future } from "../timeline/future.js";
import { lanes } from "../timeline/lanes.js";
import { PartitionModel, ruleName } from "../timeline/model.js";
import { NAMES, sliders } from "../timeline/sliders.js";
import { bytes, counted, duration, exact, moment, relative } from "../units.js";

const PAUSE_MS = 60; // Between a movement of a slider and the question what it does.
const CALM_MS = 150; // That a segment stays chosen before the broker is asked for all words about it.

export async function show({ main, part, query, signal }) {
  const { topic, partition } = part;
  const place = ["topics", topic, "partitions", partition];
  const at = query.get("at");
  document.title = `${topic}-${partition} – Barnabas`;
  let now = null; // as the settings are
  let model = null; // as they are tried
  let tried = Object.fromEntries(NAMES.filter((name) => query.has(name)).map((name) => [name, query.get(name)]));
  let selected = 0;

  const about = h("div", { class: "panel strip" });
  const words = h("div");
  const trouble = h("div");
  const summary = h("div", { class: "summary", role: "status" });
  const knobs = h("div");
  const card = h("div");
  const readers = h("div");
  const drawing = lanes({ chosen: choose, opened: (at_) => { location.hash = segmentAddress(at_); } });
  const ahead = future();

  let segments = null;
  const list = h("div");
  const segmentsTable = (isCompacted) => table([
    { id: "base", name: "Segment", mono: true, value: (row) => row.base,
      cell: (row) => h("a", { href: segmentAddress(row.at), class: "strong" }, exact(row.base)) },
    { id: "size", name: "Size", number: true, value: (row) => row.size, cell: (row) => size(row.size) },
    { id: "records", name: "Offsets", number: true, wide: true, value: (row) => row.end - row.base, cell: (row) => exact(row.end - row.base) },
    { id: "from", name: "First record", wide: true, value: (row) => row.first, cell: (row) => time(row.first) },
    { id: "last", name: "Latest record", wide: true, value: (row) => row.latest, cell: (row) => time(row.latest) },
    { id: "ended", name: "Ended because", wide: true, value: (row) => model.ended(row.at), cell: (row) => model.ended(row.at) },
    { id: "deleted", name: "Deleted", number: true, value: (row) => row.deleted, cell: deletedCell },
    { id: "rule", name: "By", value: (row) => row.rule, cell: (row) => ruleName(row.rule) ?? "–" },
    ...(isCompacted ? [{ id: "part", name: "Cleaner", wide: true, value: (row) => row.part }] : []),
  ], { label: "Segments", sort: ["base", false], empty: "The log has no segment.",
    mark: (row) => (row.at === selected ? "chosen" : model.states[row.at] === "next" ? "goes" : null) });

  function segmentAddress(number) {
    return to([...["topics", topic, partition], "segments", model.columns.base_offset[number]]);
  }

  function deletedCell(row) {
    if (row.deleted === null) {
      const missing = model.columns.bytes_missing[row.at];
      return missing === null ? h("span", { class: "soft" }, "no date")
        : h("span", { title: `${exact(missing)} bytes` }, `after ${bytes(missing)} more`);
    }
    const iso = new Date(row.deleted).toISOString();
    const word = model.columns.goes_by[row.at] ? "next check" : relative(row.deleted, model.nowMs);
    return h("time", { datetime: iso, title: moment(row.deleted) }, word);
  }

  fill(main,
    h("div", { class: "title-row" },
      heading(`${topic}-${partition}`, [["Topics", "#/"], [topic, to(["topics", topic])]]),
      h("div", { class: "actions" },
        h("a", { class: "quiet", href: address(place, { at }) }, "JSON"),
        h("a", { class: "button", href: to(["topics", topic, "tail"]) }, "Follow new records"))),
    about, trouble,
    panel("Timeline", { note: "Choose a segment with a click or the arrow keys; Enter opens it; + and − zoom, or drag over a part." }, drawing.element),
    h("div", { class: "columns wide-left" },
      panel("What other settings would do", { note: "Nothing is changed." }, summary, ahead.element, knobs),
      card),
    panel("Segments", {}, list), readers, words);

  async function load(settings, { endings = true } = {}) {
    const set = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    return new PartitionModel(await ask(place, { set, at, endings: endings ? null : false }, signal));
  }

  /** Ask for the reasons why segments ended: they take the most time, and all else is drawn by then. */
  async function explain() {
    const settings = tried;
    try {
      const full = await load({});
      const supposed = Object.keys(settings).length ? await load(settings) : full;
      if (signal.aborted) return;
      now = full;
      if (settings !== tried) return; // What is tried by now is asked for with its reasons.
      model = supposed;
      draw();
    } catch (error) {
      if (!signal.aborted && error.name !== "AbortError") fill(trouble, failure(error));
    }
  }

  let round = 0;
  let waiting = null;
  function change(settings) {
    tried = settings;
    keep(Object.fromEntries(NAMES.map((name) => [name, settings[name] ?? null])));
    clearTimeout(waiting);
    waiting = setTimeout(tryOut, PAUSE_MS);
  }

  async function tryOut() {
    const mine = ++round;
    try {
      const found = Object.keys(tried).length ? await load(tried) : now;
      if (mine !== round || signal.aborted) return;
      model = found;
      fill(trouble);
      draw();
    } catch (error) {
      if (mine === round && !signal.aborted && error.name !== "AbortError") fill(trouble, failure(error));
    }
  }

  function draw() {
    const before = model === now ? null : now;
    drawing.set(model, before);
    ahead.set(model, before);
    ahead.element.hidden = [model, before].every((each) => !each || each.future.length === 1);
    fill(summary, sentences(model, before));
    summary.dataset.tried = Object.entries(tried).map((each) => each.join("=")).join(" ");
    segments.set(rowsOf(model));
    describe(selected);
  }

  function choose(number) {
    selected = number;
    keep({ segment: model.columns.base_offset[number] });
    segments.redraw();
    segments.reveal(number);
    describe(number);
  }

  let described = 0;
  async function describe(number) {
    const mine = ++described;
    const c = model.columns;
    const base = c.base_offset[number];
    if (base === undefined) return;
    const title = `Segment ${exact(base)}`;
    const actions = h("div", { class: "actions" }, h("a", { class: "button", href: segmentAddress(number) }, "Open"));
    const first = facts([["Size", bytes(c.size[number])], ["Offsets", h("span", { class: "mono" }, `${exact(base)}–${exact(Math.max(base, c.end_offset[number] - 1))}`)]]);
    first.classList.add("small");
    const rest = h("div", { class: "words-place" }, quickWords(model, number));
    fill(card, panel(title, { actions }, first, rest));
    await new Promise((go) => setTimeout(go, CALM_MS));
    if (mine !== described || signal.aborted) return;
    try {
      const set = Object.entries(tried).map(([name, value]) => `${name}=${value}`);
      const found = await ask([...place, "segments", base], { set, at }, signal);
      if (mine === described && !signal.aborted) fill(rest, segmentWords(found.segment));
    } catch {
      // The short words are there.
    }
  }

  await carefully(about, signal, async () => {
    const both = [load({}, { endings: false })];
    if (Object.keys(tried).length) {
      both.push(load(tried, { endings: false }).catch((error) => {
        if (!signal.aborted) fill(trouble, failure(error));
        return null;
      }));
    }
    const [current, supposed] = await Promise.all(both);
    if (signal.aborted) return;
    now = current;
    model = supposed ?? current;
    fill(about, logFacts(now));
    fill(words, panel("The log", {}, h("dl", { class: "words" },
      h("dt", {}, "State"), h("dd", {}, now.answer.words.map((each) => h("p", {}, each))),
      now.answer.cleaning ? [h("dt", {}, "Cleaner"), h("dd", {}, now.answer.cleaning.words.map((each) => h("p", {}, each)))] : null)));
    fill(readers, readerTable(now.answer));
    fill(knobs, sliders(now, tried, change));
    segments = segmentsTable(Boolean(now.columns.part));
    fill(list, segments.element);
    const wanted = query.get("segment");
    selected = wanted === null ? now.count - 1 : now.place(Number(wanted)).at;
    draw();
    drawing.choose(selected);
    await explain();
  }, { alone: true });
}

function rowsOf(model) {
  const c = model.columns;
  return c.base_offset.map((base, at) => ({ at, base, end: c.end_offset[at], size: c.size[at], first: c.first_batch_timestamp[at],
    latest: c.has_timestamps[at] ? c.largest_timestamp[at] : null, deleted: c.unreadable_earliest_ms[at], rule: c.rule[at],
    part: c.part?.[at] ?? null }));
}

function time(ms) {
  return ms === null || ms === undefined || ms < 0 ? "–" : h("span", { title: moment(ms) }, moment(ms).slice(0, 19));
}

function logFacts(model) {
  const { answer } = model;
  const policy = answer.settings["cleanup.policy"]?.value || "none";
  const open = answer.high_watermark - answer.last_stable_offset;
  return facts([
    ["On disk", bytes(answer.size), `${exact(answer.size)} bytes`],
    ["Segments", exact(model.count)],
    ["Log start", offset(answer.log_start_offset)],
    ["High watermark", offset(answer.high_watermark)],
    ["Log end", offset(answer.log_end_offset)],
    ["Open transactions", open > 0 ? badge(`from ${exact(answer.last_stable_offset)} on`, "warn") : null],
    ["Spans", model.count ? duration(model.lastMs[model.count - 1] - model.firstMs[0]) : "–"],
    ["Cleanup policy", policy],
    ["Dirty", answer.cleaning ? `${Math.round(answer.cleaning.ratio * 100)} %` : null,
      answer.cleaning ? `Cleaned from ${Math.round(answer.cleaning.min_ratio * 100)} % on` : null],
  ]);
}

/** What the next checks do, in numbers. */
function sentences(model, before) {
  const { answer } = model;
  const vain = (answer.supposed_in_vain ?? []).map((each) => h("p", { class: "notice warn" }, each));
  const policy = answer.settings["cleanup.policy"]?.value ?? "";
  if (!policy.includes("delete")) {
    return [h("p", { class: "headline", data: { segments: 0, bytes: 0 } }, `Neither age nor size deletes a segment: cleanup.policy is ${policy || "empty"}.`),
      ...(answer.cleaning?.words ?? []).map((each) => h("p", { class: "soft" }, each)), ...vain];
  }
  const { segments, bytes: gone } = model.deletedNext;
  const was = before?.deletedNext ?? null;
  const check = answer.broker?.retention_check_interval_ms;
  const [ms, left] = model.future.at(-1);
  const isLimited = model.future.length > 1 || left !== model.bytes;
  const missing = model.columns.bytes_missing.find((each) => each !== null && each > 0);
  const next = model.future.find(([at]) => at > 0);
  return [
    h("p", { class: "headline", data: { segments, bytes: gone } },
      segments ? [h("strong", {}, `${counted(segments, "segment")}, ${bytes(gone)},`), " will be deleted by the next check",
        check ? `, within ${duration(check)}` : "", "."]
        : "The next check deletes nothing."),
    was && (was.segments !== segments) ? h("p", { class: "soft" }, `As the settings are now: ${was.segments ? `${counted(was.segments, "segment")}, ${bytes(was.bytes)}` : "nothing"}.`) : null,
    h("p", { class: "soft" }, isLimited && next
      ? `Then the first deletion is in ${duration(next[0])}; without new records ${left ? `${bytes(left)} are left` : "nothing is left"} in ${duration(ms)}.`
      : segments ? `${bytes(left)} stay: their age deletes none of them.` : "The age of records deletes none of them.",
    missing !== undefined ? ` retention.bytes deletes the oldest after ${bytes(missing)} more.` : ""),
    ...vain,
  ];
}

function quickWords(model, at) {
  return h("dl", { class: "words stacked" },
    h("dt", {}, at === model.count - 1 ? "Ends" : "Ended"), h("dd", {}, sentence(model.ended(at))),
    h("dt", {}, "Deleted"), h("dd", {}, sentence(model.leaves(at))));
}

function sentence(words) {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

function segmentWords({ words, ending }) {
  const lines = (given) => (Array.isArray(given) ? given : [given]).filter(Boolean).map((each) => h("p", {}, each));
  return h("dl", { class: "words stacked" },
    h("dt", {}, ending?.room ? "Ends" : "Ended"), h("dd", {}, lines(words.ended)),
    h("dt", {}, "Kept"), h("dd", {}, lines(words.stays)),
    h("dt", {}, "Deleted"), h("dd", {}, lines(words.goes)),
    words.cleaner?.length ? [h("dt", {}, "Cleaner"), h("dd", {}, lines(words.cleaner))] : null);
}

function readerTable(answer) {
  const list = table([
    { id: "group", name: "Group", value: (row) => row.group, cell: (row) => h("a", { class: "name strong", href: to(["group"], { id: row.group }) }, row.group || "(no name)") },
    { id: "offset", name: "Offset", number: true, mono: true, value: (row) => row.offset, cell: (row) => offset(row.offset) },
    { id: "lag", name: "Lag", number: true, value: (row) => row.lag, cell: (row) => exact(row.lag) },
    { id: "bytes", name: "In bytes", number: true, wide: true, value: (row) => row.lag_bytes, cell: (row) => size(row.lag_bytes) },
    { id: "forecast", name: "Forecast", value: (row) => row.forecast?.loss?.bytes ?? null, cell: (row) => forecastBadge(row.forecast) },
  ], { label: "Groups that read this partition", sort: ["lag", true], empty: "No group has an offset in this partition." });
  list.set(answer.groups ?? []);
  const losing = (answer.groups ?? []).filter((each) => each.forecast?.loss);
  return panel("Groups that read it", {},
    losing.length ? h("dl", { class: "words" }, losing.slice(0, 5).map((each) => [h("dt", {}, each.group), h("dd", {}, forecastWords(each.forecast), race(each.forecast, answer.now_ms))])) : null,
    list.element);
}
