// A segment: its file and its sparse indexes, a look-up step by step, and its batches.
import { ask } from "../api.js";
import { fill, h, say } from "../dom.js";
import { badge, carefully, facts, failure, heading, panel, size } from "../parts.js";
import { here, keep, to } from "../router.js";
import { table } from "../table.js";
import { fileDrawing } from "../timeline/file.js";
import { bytes, counted, exact, moment } from "../units.js";

const MOST_ENTRIES = 10_000;
const BATCHES = 1000;
const SCANNED = 200;

export async function show({ main, part, query, signal }) {
  const { topic, partition } = part;
  const base = Number(part.segment);
  const place = ["topics", topic, "partitions", partition];
  const mine = [...place, "segments", part.segment];
  document.title = `Segment ${exact(base)} of ${topic}-${partition} – Barnabas`;

  const about = h("div", { class: "panel strip" });
  const words = h("div");
  const drawing = fileDrawing();
  const steps = h("div", { class: "steps-place" });
  let batches = [];

  const list = table([
    { id: "base", name: "Offsets", mono: true, value: (row) => row.base_offset,
      cell: (row) => h("a", { class: "strong", href: to(["topics", topic, partition, "batches", row.base_offset]) }, range(row)) },
    { id: "records", name: "Records", number: true, value: (row) => row.records, cell: (row) => exact(row.records) },
    { id: "size", name: "Size", number: true, value: (row) => row.size, cell: (row) => size(row.size) },
    { id: "position", name: "At byte", number: true, mono: true, wide: true, value: (row) => row.position, cell: (row) => exact(row.position) },
    { id: "codec", name: "Codec", value: (row) => row.codec, cell: (row) => (row.codec === "none" ? h("span", { class: "soft" }, "none") : badge(row.codec)) },
    { id: "ratio", name: "Ratio", number: true, value: (row) => row.ratio, cell: (row) => (row.codec === "none" || !row.ratio ? "–" : `${row.ratio.toFixed(2)}×`) },
    { id: "time", name: "Latest record", wide: true, value: (row) => row.max_timestamp, cell: (row) => (row.max_timestamp < 0 ? "–" : moment(row.max_timestamp).slice(0, 19)) },
    { id: "producer", name: "Producer", number: true, mono: true, wide: true, value: (row) => row.producer_id, cell: (row) => (row.producer_id < 0 ? "–" : `${row.producer_id}`) },
    { id: "kind", name: "Kind", value: kindOf, cell: (row) => [kindOf(row) ? badge(kindOf(row), "accent") : null, row.is_valid ? null : badge("bad checksum", "bad")] },
  ], { label: "Batches", sort: ["position", false], empty: "The segment has no batch.",
    mark: (row) => (look && row.position === look.batch.position ? "chosen" : null) });
  const more = h("div", { class: "more" });

  fill(main, heading(`Segment ${exact(base)}`,
    [["Topics", "#/"], [topic, to(["topics", topic])], [`Partition ${partition}`, to(["topics", topic, partition], { segment: part.segment })]]),
  about,
  panel("The file and its indexes", { actions: lookupForm() }, drawing.element, steps),
  words, panel("Batches", {}, list.element, more));

  let look = null;
  let stages = [];
  let stage = 0;

  function lookupForm() {
    const kind = h("select", { "aria-label": "What to look up" },
      h("option", { value: "offset" }, "offset"), h("option", { value: "timestamp" }, "time"));
    const field = h("input", { type: "text", "aria-label": "The offset, or the time", placeholder: "offset", autocomplete: "off", spellcheck: "false" });
    kind.value = query.has("timestamp") ? "timestamp" : "offset";
    field.value = query.get(kind.value) ?? "";
    const hint = () => { field.placeholder = kind.value === "offset" ? "an offset" : "2026-11-26T08:00Z, or ms"; };
    kind.addEventListener("change", hint);
    hint();
    return h("form", { class: "actions", onsubmit: (event) => {
      event.preventDefault();
      const value = read(kind.value, field.value);
      if (value === null) {
        fill(steps, h("p", { class: "notice bad", role: "alert" }, kind.value === "offset" ? "An offset is a whole number." : "A time looks like 2026-11-26T08:00Z."));
        return;
      }
      keep({ offset: null, timestamp: null, [kind.value]: value, step: null });
      lookUp(kind.value, value);
    } }, kind, field, h("button", { type: "submit", class: "button main" }, "Look up"));
  }

  async function lookUp(kind, value, first = 0) {
    try {
      const found = await ask([...place, "lookup"], { [kind]: value }, signal);
      if (signal.aborted) return;
      const at = found.segment.base_offset;
      if (at !== base) {
        location.replace(to(["topics", topic, partition, "segments", at], Object.fromEntries(here().query)));
        return;
      }
      if (!found.offset) {
        drawing.look(null);
        fill(steps, h("p", { class: "notice" }, found.time?.words ?? []));
        return;
      }
      const from = found.offset.index.position;
      const { batches: scanned } = await ask([...mine, "batches"], { position: from, limit: Math.min(SCANNED, found.offset.scanned_batches) }, signal);
      if (signal.aborted) return;
      look = { found, from, scanned, batch: { position: found.offset.position, size: found.offset.size } };
      stages = stagesOf(found);
      step(first);
      list.redraw();
    } catch (error) {
      if (signal.aborted || error.name === "AbortError") return;
      drawing.look(null);
      fill(steps, failure(error));
    }
  }

  function step(number) {
    stage = Math.max(0, Math.min(stages.length - 1, number));
    const { found } = look;
    drawing.look({ ...look, stage: stages[stage].stage, offsetSlot: found.offset.index.slot, timeSlot: found.time?.time.slot ?? null });
    keep({ step: stage || null });
    const previous = h("button", { type: "button", class: "quiet", disabled: stage === 0, onclick: () => step(stage - 1) }, "Back");
    const next = h("button", { type: "button", class: "button", disabled: stage === stages.length - 1, onclick: () => step(stage + 1) }, "Next step");
    const active = document.activeElement;
    const kept = steps.contains(active) ? active.textContent : null;
    fill(steps,
      h("ol", { class: "steps" }, stages.map((each, at) => h("li", { class: at === stage ? "now" : at < stage ? "done" : null, "aria-current": at === stage ? "step" : null },
        h("button", { type: "button", onclick: () => step(at) }, h("span", { class: "step-number" }, at + 1), each.name),
        h("p", {}, each.says)))),
      h("div", { class: "actions" }, previous, next,
        h("a", { class: "button", href: to(["topics", topic, partition, "batches", found.offset.batch_base_offset]) }, "Open the batch")));
    const again = kept && [...steps.querySelectorAll("button")].find((each) => each.textContent === kept && !each.disabled);
    (again ?? (kept ? steps.querySelector("li.now button") : null))?.focus();
    say(`Step ${stage + 1} of ${stages.length}: ${stages[stage].says}`);
  }

  async function loadBatches(position) {
    const given = await ask([...mine, "batches"], { position, limit: BATCHES }, signal);
    if (signal.aborted) return;
    batches = [...batches, ...given.batches];
    list.set(batches);
    fill(more, given.next_position === null ? null : h("button", { type: "button", class: "button", onclick: () => loadBatches(given.next_position) },
      `Next batches, from byte ${exact(given.next_position)} of ${exact(given.segment_size)}`));
    redraw();
  }

  let offsets = [];
  let times = [];
  let bytesOfFile = 0;
  function redraw() {
    drawing.set({ size: bytesOfFile, offsets, times, batches, baseOffset: base });
  }

  await carefully(about, signal, async () => {
    const [segment, given, givenTimes] = await Promise.all([
      ask(mine, {}, signal),
      ask([...mine, "index", "offset"], { limit: MOST_ENTRIES }, signal),
      ask([...mine, "index", "time"], { limit: MOST_ENTRIES }, signal)]);
    if (signal.aborted) return;
    bytesOfFile = segment.size;
    offsets = given.entries;
    times = givenTimes.entries.map((each) => ({ ...each, position: positionOf(each.offset, offsets) }));
    fill(about, segmentFacts(segment, given, givenTimes));
    fill(words, panel("Its life", {}, lifeOf(segment.segment)));
    redraw();
    await loadBatches(0);
    const kind = ["offset", "timestamp"].find((each) => query.has(each));
    if (kind) await lookUp(kind, query.get(kind), Number(query.get("step") ?? 0));
    else fill(steps, h("p", { class: "empty" }, "Look up an offset or a time to follow the way from the index to the record."));
  }, { alone: true });
}

function read(kind, text) {
  const given = text.trim().replaceAll(",", "");
  if (/^-?\d+$/.test(given)) return given;
  if (kind === "offset" || !given) return null;
  const ms = Date.parse(/[Zz]|[+-]\d\d:?\d\d$/.test(given) ? given : `${given}Z`);
  return Number.isNaN(ms) ? null : String(ms);
}

/** Where the offset of a time entry is in the file, by the offset index. */
function positionOf(offset, entries) {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle].offset < offset) low = middle + 1;
    else high = middle;
  }
  return low < entries.length ? entries[low].position : entries.at(-1)?.position ?? 0;
}

function range(batch) {
  return batch.base_offset === batch.last_offset ? exact(batch.base_offset) : `${exact(batch.base_offset)}–${exact(batch.last_offset)}`;
}

function kindOf(batch) {
  return batch.is_control ? "marker" : batch.is_transactional ? "transaction" : "";
}

function segmentFacts(segment, offsets, times) {
  const { segment: about, files } = segment;
  return facts([
    ["Offsets", h("span", { class: "mono" }, `${exact(about.base_offset)}–${exact(Math.max(about.base_offset, about.end_offset - 1))}`)],
    ["Size", size(about.size)],
    ["Offset index", counted(offsets.total, "entry", "entries"), offsets.total > MOST_ENTRIES ? `The first ${exact(MOST_ENTRIES)} are drawn` : null],
    ["Time index", counted(times.total, "entry", "entries")],
    ["Aborted transactions", segment.indexes.txn?.entries ? exact(segment.indexes.txn.entries) : null],
    ["Files", h("span", { title: files.map((each) => `${each.name}: ${bytes(each.size)}`).join("\n") }, exact(files.length))],
  ]);
}

function lifeOf({ words, ending }) {
  const lines = (given) => (Array.isArray(given) ? given : [given]).filter(Boolean).map((each) => h("p", {}, each));
  return h("dl", { class: "words" },
    h("dt", {}, ending?.room ? "Ends" : "Ended"), h("dd", {}, lines(words.ended)),
    h("dt", {}, "Kept"), h("dd", {}, lines(words.stays)),
    h("dt", {}, "Deleted"), h("dd", {}, lines(words.goes)),
    words.cleaner?.length ? [h("dt", {}, "Cleaner"), h("dd", {}, lines(words.cleaner))] : null);
}

/** The steps of a look-up, each with a sentence. */
function stagesOf({ offset, time, record }) {
  const found = [];
  if (time) {
    const { slot, entries, timestamp, offset: from } = time.time;
    found.push({ name: "Time index", stage: "time", says: slot === null
      ? `None of its ${counted(entries, "entry", "entries")} is early enough: the search begins at offset ${exact(from)}.`
      : `Entry ${exact(slot + 1)} of ${exact(entries)} is the last one before the time: ${moment(timestamp)}, offset ${exact(from)}.` });
  }
  const { index } = offset;
  found.push({ name: "Offset index", stage: "index", says: index.slot === null
    ? `None of its ${counted(index.entries, "entry", "entries")} is at offset ${exact(index.target_offset)} or below: the scan begins at byte 0.`
    : `Entry ${exact(index.slot + 1)} of ${exact(index.entries)} is the last one at offset ${exact(index.target_offset)} or below: offset ${exact(index.offset)}, byte ${exact(index.position)}.` });
  found.push({ name: "Scan", stage: "scan", says: `From byte ${exact(index.position)} on, the ${offset.scanned_batches === 1 ? "header of 1 batch is" : `headers of ${exact(offset.scanned_batches)} batches are`} read, until one reaches offset ${exact(offset.offset)}.` });
  found.push({ name: "Batch", stage: "batch", says: `The batch at byte ${exact(offset.position)} has it: it begins with offset ${exact(offset.batch_base_offset)}, in ${bytes(offset.size)}. ${(record?.words ?? [])[0] ?? ""}` });
  return found;
}
