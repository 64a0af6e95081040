// A segment as a drawing: its file, the entries of its sparse indexes, and a look-up on its way.
import { fill, h, s } from "../dom.js";
import { bytes, counted, exact } from "../units.js";
import { byteTicks, scale } from "./scale.js";

const SLOTS = 20; // px, the height of an index
const FAN = 44;
const FILE = 30;
const LENS = 34;
const MOST_LINES = 160; // of a fan: more of them are a sampling
const NARROWEST = 2;

/**
 * The drawing of `{ size, offsets, times, batches, baseOffset }`; `look` is a look-up, or null:
 * `{ stage, offsetSlot, timeSlot, from, batch, scanned }`, where `stage` is `time`, `index`, `scan`
 * or `batch`, and `scanned` has the batches that the scan reads.
 */
export function fileDrawing() {
  let width = 0;
  let segment = null;
  let look = null;
  const svg = s("svg", { class: "file", role: "img" });
  const element = h("div", { class: "lanes-place" }, svg);

  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now !== width && now > 0) {
      width = now;
      draw();
    }
  }).observe(element);

  function draw() {
    if (!segment || !width) return;
    const gutter = width > 640 ? 84 : 0;
    const hasTimes = segment.times.length > 0;
    const y = { offsets: 4 };
    y.file = y.offsets + SLOTS + FAN;
    y.times = y.file + FILE + FAN;
    y.axis = hasTimes ? y.times + SLOTS + 6 : y.file + FILE + 6;
    y.lens = y.axis + 26 + 30;
    const isMagnified = Boolean(look?.scanned.length) && look.stage !== "time";
    const height = isMagnified ? y.lens + LENS + 24 : y.axis + 24;
    const x = scale(0, Math.max(1, segment.size), gutter + 1, width - 1);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    svg.setAttribute("aria-label", described(segment));
    fill(svg,
      isMagnified ? beam(x, y, gutter) : null,
      index({ x, y: y.offsets, file: y.file, gutter, width, entries: segment.offsets, chosen: slotOf(look, "index") ? look.offsetSlot : null, isAbove: true }),
      hasTimes ? index({ x, y: y.times, file: y.file + FILE, gutter, width, entries: segment.times, chosen: slotOf(look, "time") ? look.timeSlot : null, isAbove: false }) : null,
      file(x, y.file),
      axis(x, y.axis, width, gutter),
      gutter ? [label(y.offsets + 14, "offset index"), label(y.file + 19, "file"), hasTimes ? label(y.times + 14, "time index") : null] : null,
      isMagnified ? lens(x, y, gutter) : null);
  }

  function label(y, text) {
    return s("text", { class: "lane", x: 0, y }, text);
  }

  function file(x, y) {
    const parts = [s("rect", { class: "paper", x: x(0), y, width: x(segment.size) - x(0), height: FILE, rx: 2 })];
    for (const block of merged(segment.batches, x)) {
      parts.push(s("rect", { class: `batch ${block.kind}`, x: block.left, width: Math.max(0.6, block.right - block.left - (block.right - block.left > 4 ? 0.8 : 0)), y, height: FILE }));
    }
    for (const each of sampled(segment.offsets, width)) {
      parts.push(s("line", { class: "pin", x1: x(each.position), x2: x(each.position), y1: y, y2: y + 6 }));
    }
    if (look && ["scan", "batch"].includes(look.stage)) {
      const [left, right] = [x(look.from), x(look.batch.position + look.batch.size)];
      parts.push(s("rect", { class: "scan", x: left, width: Math.max(2, right - left), y: y - 3, height: FILE + 6, rx: 2 }));
    }
    if (look?.stage === "batch") {
      const left = x(look.batch.position);
      parts.push(s("rect", { class: "found", x: left, width: Math.max(2.5, x(look.batch.position + look.batch.size) - left), y: y - 3, height: FILE + 6, rx: 2 }));
    }
    return parts;
  }

  /** From the bytes of a scan to where they are magnified. */
  function beam(x, y, gutter) {
    const [left, right] = [x(look.from), x(look.batch.position + look.batch.size)];
    return s("path", { class: "beam", d: `M${left},${y.file + FILE}L${gutter},${y.lens}H${width}L${Math.max(left + 2, right)},${y.file + FILE}Z` });
  }

  /** The bytes of the scan, magnified. */
  function lens(x, y, gutter) {
    const from = look.from;
    const to = look.batch.position + look.batch.size;
    const near = scale(from, to, gutter + 1, width - 1);
    const parts = [
      gutter ? label(y.lens + 21, look.stage === "index" ? "from there" : "scan") : null,
    ];
    look.scanned.forEach((each, number) => {
      const left = near(each.position);
      const right = near(each.position + each.size);
      const isFound = each.position === look.batch.position;
      const isSeen = look.stage !== "index";
      const kind = isFound && look.stage === "batch" ? "found" : isSeen ? "seen" : "unseen";
      parts.push(s("rect", { class: `block ${kind}`, x: left + 0.75, width: Math.max(1, right - left - 1.5), y: y.lens, height: LENS, rx: 2.5 }));
      if (right - left > 64) parts.push(s("text", { class: `inside ${kind}`, x: left + 8, y: y.lens + 21 }, exact(each.base_offset)));
      else if (right - left > 18 && isSeen) parts.push(s("text", { class: `inside ${kind}`, x: (left + right) / 2, y: y.lens + 21, "text-anchor": "middle" }, number + 1));
    });
    parts.push(s("text", { class: "label", x: gutter, y: y.lens + LENS + 16 }, `byte ${exact(from)}`),
      s("text", { class: "label", x: width, y: y.lens + LENS + 16, "text-anchor": "end" }, exact(to)));
    return parts;
  }

  return {
    element,
    set(given) {
      segment = given;
      draw();
    },
    look(given) {
      look = given;
      draw();
    },
  };
}

function slotOf(look, stage) {
  if (!look) return false;
  return stage === "time" ? look.timeSlot !== null && look.stage === "time"
    : look.offsetSlot !== null && look.stage !== "time";
}

/** An index as a row of slots, each tied to its place in the file. */
function index({ x, y, file, gutter, width, entries, chosen, isAbove }) {
  const slot = scale(0, Math.max(1, entries.length), gutter + 1, width - 1);
  const edge = isAbove ? y + SLOTS : y;
  const bend = (edge + file) / 2;
  const tie = (number, kind) => {
    const at = slot(number + 0.5);
    const to = x(entries[number].position);
    return s("path", { class: kind, d: `M${at},${edge}C${at},${bend} ${to},${bend} ${to},${file}` });
  };
  const parts = [s("rect", { class: "slots", x: gutter + 1, y, width: width - gutter - 2, height: SLOTS, rx: 3 })];
  const step = Math.max(1, Math.ceil(entries.length / MOST_LINES));
  for (let number = 0; number < entries.length; number += step) parts.push(tie(number, "tie"));
  const each = (width - gutter) / Math.max(1, entries.length);
  if (each > 4) {
    for (let number = 1; number < entries.length; number += 1) {
      parts.push(s("line", { class: "slot", x1: slot(number), x2: slot(number), y1: y, y2: y + SLOTS }));
    }
  }
  if (chosen !== null && entries[chosen]) {
    const wide = Math.max(4, each);
    parts.push(tie(chosen, "tie chosen"), s("rect", { class: "chosen-slot", x: slot(chosen + 0.5) - wide / 2, y, width: wide, height: SLOTS, rx: 2 }),
      s("circle", { class: "dot", cx: x(entries[chosen].position), cy: file, r: 3.5 }));
  }
  if (!entries.length) parts.push(s("text", { class: "label", x: gutter + 8, y: y + 14 }, "no entries: every scan begins at byte 0"));
  return parts;
}

function axis(x, y, width, gutter) {
  const parts = [s("line", { class: "axis", x1: gutter, x2: width, y1: y, y2: y })];
  for (const each of byteTicks(0, x.to, Math.max(2, Math.floor((width - gutter) / 90)))) {
    const at = x(each);
    if (at > width - 24) continue;
    parts.push(s("line", { class: "tick", x1: at, x2: at, y1: y, y2: y + 4 }),
      s("text", { class: "label", x: at, y: y + 16, "text-anchor": each ? "middle" : "start" }, each ? bytes(each) : "byte 0"));
  }
  return parts;
}

function merged(batches, x) {
  const found = [];
  let number = 0;
  for (const each of batches) {
    const kind = each.is_control ? "control" : each.is_transactional ? "transaction" : number % 2 ? "odd" : "even";
    number += 1;
    const left = x(each.position);
    const right = x(each.position + each.size);
    const last = found.at(-1);
    if (last && right - last.left < NARROWEST) last.right = right;
    else found.push({ left, right, kind });
  }
  return found;
}

function sampled(entries, most) {
  const step = Math.max(1, Math.ceil(entries.length / most));
  return entries.filter((_, number) => number % step === 0);
}

function described(segment) {
  return `A file of ${bytes(segment.size)} with ${counted(segment.offsets.length, "entry", "entries")} of the offset index and `
    + `${counted(segment.times.length, "entry", "entries")} of the time index drawn against it`;
}
