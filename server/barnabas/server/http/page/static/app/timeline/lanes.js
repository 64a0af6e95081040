// A partition as a drawing: its segments on an axis of time and on one of bytes, and what ties them.
//
// Segments that are too narrow to be seen are drawn together with their neighbours of the same
// state: so 5,000 segments are a few hundred marks. Every mark can be reached with the keyboard.
import { fill, h, s, say } from "../dom.js";
import { numberOf } from "../settings.js";
import { bytes, counted, exact, moment, tickTime } from "../units.js";
import { STATES } from "./model.js";
import { byteTicks, scale, timeTicks } from "./scale.js";

const NARROWEST = 3; // px of a mark
const LANE = 36;
const RIBBON = 40;
const ROW = 19; // of the positions of groups
const MOST_ROWS = 4;
const STRIP = 5;
const SHORTEST_ZOOM = 1 / 20_000; // of all bytes

/**
 * The drawing. `chosen(at)` is called when a segment is chosen, `opened(at)` when it is opened.
 *
 * Returns `{ element, set(model, before), choose(at) }`; `before` is the model without the settings
 * that are tried, or null.
 */
export function lanes({ chosen, opened }) {
  let model = null;
  let before = null;
  let selected = 0;
  let window_ = null;
  let width = 0;
  let marks = [];
  let places = null;

  const svg = s("svg", { class: "lanes", role: "group", "aria-label": "Timeline of the segments" });
  const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const all = h("button", { type: "button", class: "quiet", onclick: () => zoom(null) }, "All");
  const closer = h("button", { type: "button", class: "quiet", "aria-label": "Zoom in", onclick: () => zoomBy(0.5) }, "+");
  const wider = h("button", { type: "button", class: "quiet", "aria-label": "Zoom out", onclick: () => zoomBy(2) }, "−");
  const place = h("div", { class: "lanes-place" }, svg, tip);
  const legend = h("ul", { class: "legend" });
  const element = h("div", {}, place, h("div", { class: "under" }, legend, h("div", { class: "actions" }, wider, closer, all)));

  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now !== width && now > 0) {
      width = now;
      draw();
    }
  }).observe(place);

  function zoom(next, isKept = true) {
    window_ = next;
    draw();
    if (isKept) focusSelected();
    say(next ? `${bytes(next[1] - next[0])} are shown` : "All segments are shown");
  }

  function zoomBy(factor, around = null) {
    const [from, to] = window_ ?? [0, model.bytes];
    const middle = around ?? (model.start[selected] + model.start[selected + 1]) / 2;
    const span = Math.max((to - from) * factor, model.bytes * SHORTEST_ZOOM);
    if (span >= model.bytes) zoom(null, false);
    else {
      const part = around === null ? 0.5 : (middle - from) / (to - from);
      const left = Math.max(0, Math.min(model.bytes - span, middle - span * part));
      zoom([left, left + span], false);
    }
  }

  function draw() {
    if (!model || !width) return;
    const drawing = layout(model, before, window_, width);
    places = drawing;
    marks = drawing.marks;
    svg.setAttribute("viewBox", `0 0 ${width} ${drawing.height}`);
    svg.setAttribute("height", drawing.height);
    const list = s("g", { role: "listbox", "aria-label": "Segments, oldest first", "aria-orientation": "horizontal" },
      marks.map((mark) => mark.element));
    fill(svg, patterns(), drawing.axes, list, drawing.above, drawing.labels);
    all.disabled = wider.disabled = !window_;
    fill(legend, legendOf(model, before, drawing));
    show();
  }

  function show() {
    for (const mark of marks) {
      const isChosen = mark.first <= selected && selected <= mark.last;
      mark.element.setAttribute("tabindex", isChosen ? "0" : "-1");
      mark.element.setAttribute("aria-selected", String(isChosen));
    }
    if (marks.length && !marks.some((mark) => mark.first <= selected && selected <= mark.last)) {
      marks[0].element.setAttribute("tabindex", "0");
    }
  }

  function markOf(at) {
    return marks.find((mark) => mark.first <= at && at <= mark.last);
  }

  function focusSelected() {
    if (svg.contains(document.activeElement)) markOf(selected)?.element.focus();
  }

  function choose(at, { withFocus = false, quietly = false } = {}) {
    selected = Math.max(0, Math.min(model.count - 1, at));
    const [from, to] = window_ ?? [0, model.bytes];
    if (model.start[selected] < from || model.start[selected + 1] > to) {
      const span = Math.max(to - from, model.columns.size[selected]);
      const left = Math.max(0, Math.min(model.bytes - span, model.start[selected] - span / 2));
      window_ = window_ && [left, left + span];
      draw();
    } else show();
    if (withFocus) markOf(selected)?.element.focus();
    if (!quietly) chosen(selected);
  }

  svg.addEventListener("keydown", (event) => {
    const mark = markOf(selected);
    const step = { ArrowRight: () => choose((mark?.last ?? selected) + 1, { withFocus: true }),
      ArrowLeft: () => choose((mark?.first ?? selected) - 1, { withFocus: true }),
      ArrowDown: () => choose(selected + 1, { withFocus: true }),
      ArrowUp: () => choose(selected - 1, { withFocus: true }),
      Home: () => choose(0, { withFocus: true }),
      End: () => choose(model.count - 1, { withFocus: true }),
      "+": () => { zoomBy(0.5); focusAfter(); }, "=": () => { zoomBy(0.5); focusAfter(); },
      "-": () => { zoomBy(2); focusAfter(); },
      Escape: () => { zoom(null, false); focusAfter(); },
      Enter: () => opened(selected) }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    step();
  });

  function focusAfter() {
    markOf(selected)?.element.focus();
  }

  const markAt = (event) => {
    const group = event.target.closest?.(".mark");
    return group && marks.find((each) => each.element === group);
  };
  const segmentAt = (event, mark) => {
    // Within several segments in one mark the place decides.
    if (mark.first === mark.last) return mark.first;
    const x = event.clientX - svg.getBoundingClientRect().left;
    return Math.max(mark.first, Math.min(mark.last, model.at(places.toX.invert(x))));
  };
  let dragged = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button === 0) dragged = { x: event.clientX - svg.getBoundingClientRect().left, hasMoved: false };
  });
  svg.addEventListener("pointermove", (event) => {
    const mark = markAt(event);
    if (dragged && event.buttons & 1) {
      const x = event.clientX - svg.getBoundingClientRect().left;
      dragged.hasMoved ||= Math.abs(x - dragged.x) > 6;
      if (dragged.hasMoved) brush(dragged.x, x);
      return;
    }
    if (mark) showTip(event, mark);
    else tip.hidden = true;
  });
  svg.addEventListener("pointerup", (event) => {
    const was = dragged;
    dragged = null;
    svg.querySelector(".brush")?.remove();
    if (!was) return;
    const x = event.clientX - svg.getBoundingClientRect().left;
    if (was.hasMoved) {
      const [from, to] = [was.x, x].sort((a, b) => a - b).map((each) => Math.max(0, Math.min(model.bytes, places.toX.invert(each))));
      if (to - from > model.bytes * SHORTEST_ZOOM) zoom([from, to], false);
      return;
    }
    const mark = markAt(event);
    if (mark) choose(segmentAt(event, mark));
  });
  svg.addEventListener("dblclick", (event) => {
    const mark = markAt(event);
    if (mark) opened(segmentAt(event, mark));
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });

  function brush(from, to) {
    svg.querySelector(".brush")?.remove();
    const [left, right] = [from, to].sort((a, b) => a - b);
    svg.append(s("rect", { class: "brush", x: left, y: 0, width: right - left, height: places.height }));
  }

  function showTip(event, mark) {
    const at = segmentAt(event, mark);
    fill(tip, tipOf(model, at, mark));
    tip.hidden = false;
    const frame = place.getBoundingClientRect();
    const x = event.clientX - frame.left;
    const left = Math.max(0, Math.min(frame.width - tip.offsetWidth, x + 14));
    tip.style.setProperty("left", `${left}px`);
    tip.style.setProperty("top", `${event.clientY - frame.top + 18}px`);
  }

  return {
    element,
    set(given, previous = null) {
      model = given;
      before = previous;
      selected = Math.min(selected, model.count - 1);
      draw();
    },
    choose: (at, how) => choose(at, { quietly: true, ...how }),
  };
}

function tipOf(model, at, mark) {
  const c = model.columns;
  const more = mark.last - mark.first;
  return [
    h("strong", {}, `Segment ${exact(c.base_offset[at])}`),
    h("dl", {},
      h("dt", {}, "Size"), h("dd", {}, bytes(c.size[at])),
      h("dt", {}, "From"), h("dd", {}, moment(model.firstMs[at])),
      h("dt", {}, "To"), h("dd", {}, moment(model.lastMs[at])),
      h("dt", {}, at === model.count - 1 ? "State" : "Ended"), h("dd", {}, model.ended(at)),
      h("dt", {}, "Deleted"), h("dd", {}, model.leaves(at))),
    more ? h("p", {}, `${counted(more, "neighbour")} drawn with it: zoom in to tell them apart`) : null,
  ];
}

function patterns() {
  const hatch = s("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    s("line", { class: "hatch", x1: 0, y1: 0, x2: 0, y2: 6 }));
  return s("defs", {}, hatch);
}

/** All that is drawn, and where. */
function layout(model, before, window_, width) {
  const [from, to] = window_ ?? [0, Math.max(1, model.bytes)];
  const gutter = width > 640 ? 58 : 0;
  const toX = scale(from, to, gutter + 1, width - 1);
  const first = model.at(from);
  const last = model.at(Math.max(from, to - 1));
  const time = timeSpan(model, first, last);
  const toT = scale(time.from, time.to, gutter + 1, width - 1);
  const flags = placed(model, toX, toT, { from, to, time, width, gutter });
  const rows = flags.length ? Math.max(...flags.map((flag) => flag.row)) + 1 : 0;
  const y = { groups: 4, ticks: rows ? rows * ROW + 10 : 2 };
  y.time = y.ticks + 18;
  y.ribbon = y.time + LANE;
  y.bytes = y.ribbon + RIBBON;
  const isCompacted = Boolean(model.columns.part);
  y.strip = y.bytes + LANE + 4;
  y.axis = y.bytes + LANE + (isCompacted ? STRIP + 8 : 4);
  const height = y.axis + 34;
  const marks = marksOf(model, before, { first, last, toX, toT, y, isCompacted });
  return { height, toX, toT, marks, isCompacted, flags,
    labels: timeLabels({ toT, time, y, width, gutter }),
    axes: axes({ model, toX, toT, time, y, width, gutter, first, last, isCompacted }),
    above: [...cuts({ model, toX, toT, y, from, to, time }), ...flags.map((flag) => drawFlag(flag, y))] };
}

function timeSpan(model, first, last) {
  let from = Infinity;
  let to = -Infinity;
  for (let at = first; at <= last; at += 1) {
    if (model.firstMs[at] < from) from = model.firstMs[at];
    if (model.lastMs[at] > to) to = model.lastMs[at];
  }
  if (!Number.isFinite(from)) [from, to] = [model.nowMs - 1, model.nowMs];
  if (to - from < 1) [from, to] = [from - 500, to + 500];
  const span = to - from;
  const showsNow = last === model.count - 1 && model.nowMs > to && model.nowMs - to < span * 0.35;
  return { from: from - span * 0.004, to: showsNow ? model.nowMs + span * 0.012 : to + span * 0.004, showsNow };
}

function marksOf(model, before, view) {
  const found = [];
  let open = null;
  for (let at = view.first; at <= view.last; at += 1) {
    const state = model.states[at];
    const hasChanged = Boolean(before && before.states[at] !== state);
    const part = model.columns.part?.[at] ?? null;
    const left = view.toX(model.start[at]);
    const right = view.toX(model.start[at + 1]);
    const fits = open && open.state === state && open.hasChanged === hasChanged && open.part === part
      && open.right - open.left < NARROWEST && right - left < NARROWEST;
    if (fits) {
      open.last = at;
      open.right = right;
    } else {
      open = { first: at, last: at, left, right, state, hasChanged, part };
      found.push(open);
    }
  }
  for (const mark of found) mark.element = drawMark(model, mark, view);
  return found;
}

function drawMark(model, mark, { toT, y, isCompacted }) {
  let firstMs = Infinity;
  let lastMs = -Infinity;
  for (let at = mark.first; at <= mark.last; at += 1) {
    firstMs = Math.min(firstMs, model.firstMs[at]);
    lastMs = Math.max(lastMs, model.lastMs[at]);
  }
  const b = slot(mark.left, mark.right);
  const t = slot(toT(firstMs), toT(lastMs));
  const [tl, tr, bl, br] = [t.x, t.x + t.width, b.x, b.x + b.width].map((each) => each.toFixed(1));
  const [top, bottom] = [y.ribbon, y.bytes];
  const bend = (top + bottom) / 2;
  const ribbon = `M${tl},${top}C${tl},${bend} ${bl},${bend} ${bl},${bottom}L${br},${bottom}C${br},${bend} ${tr},${bend} ${tr},${top}Z`;
  const c = model.columns;
  return s("g", { class: `mark ${mark.state}${mark.hasChanged ? " changed" : ""}`, role: "option", "aria-label": nameOf(model, mark),
    data: { first: mark.first, last: mark.last } },
  s("path", { class: "ribbon", d: ribbon }),
  s("rect", { class: "fill", ...t, y: y.time, height: LANE }),
  s("rect", { class: "fill lower", ...b, y: y.bytes, height: LANE }),
  mark.hasChanged ? [s("rect", { ...t, y: y.time, height: LANE, fill: "url(#hatch)" }),
    s("rect", { ...b, y: y.bytes, height: LANE, fill: "url(#hatch)" })] : null,
  isCompacted ? s("rect", { class: `part ${mark.part}`, x: b.x, width: b.width, y: y.strip, height: STRIP, rx: 1.5 }) : null,
  mark.first === mark.last && b.width > 12 + 7.2 * exact(c.base_offset[mark.first]).length
    ? s("text", { class: "inside", x: b.x + 6, y: y.bytes + LANE / 2 + 4 }, exact(c.base_offset[mark.first])) : null);
}

function slot(left, right) {
  const wide = Math.max(1.5, right - left);
  const gap = wide > 4 ? 0.75 : wide > 2 ? 0.3 : 0;
  return { x: Number((left + gap).toFixed(2)), width: Number((wide - 2 * gap).toFixed(2)), rx: wide > 7 ? 2.5 : 0 };
}

function nameOf(model, mark) {
  const c = model.columns;
  if (mark.first === mark.last) {
    const at = mark.first;
    return `Segment ${exact(c.base_offset[at])}, ${bytes(c.size[at])}, ${moment(model.lastMs[at])}. Deleted ${model.leaves(at)}`;
  }
  const size = model.start[mark.last + 1] - model.start[mark.first];
  return `${counted(mark.last - mark.first + 1, "segment")} from ${exact(c.base_offset[mark.first])} to ${exact(c.base_offset[mark.last])}, `
    + `${bytes(size)}. ${model.legend(mark.state)}`;
}

function axes({ model, toX, toT, time, y, width, gutter, first, last, isCompacted }) {
  const parts = [];
  const most = Math.max(2, Math.floor((width - gutter) / 96));
  for (const each of timeTicks(time.from, time.to, most).ticks) {
    const x = toT(each);
    parts.push(s("line", { class: "tick", x1: x, x2: x, y1: y.time - 4, y2: y.time + LANE }));
  }
  if (time.showsNow) {
    const x = toT(model.nowMs);
    parts.push(s("line", { class: "now", x1: x, x2: x, y1: y.time - 4, y2: y.time + LANE }));
  }
  for (const each of byteTicks(toX.from, toX.to, most)) {
    const x = toX(each);
    parts.push(s("line", { class: "tick", x1: x, x2: x, y1: y.axis, y2: y.axis + 4 }));
    if (x > gutter + 14 && x < width - 24) parts.push(s("text", { class: "label", x, y: y.axis + 15, "text-anchor": "middle" }, each ? bytes(each) : "0"));
  }
  parts.push(s("line", { class: "axis", x1: gutter, x2: width, y1: y.axis, y2: y.axis }));
  const c = model.columns;
  parts.push(s("text", { class: "label mono", x: gutter, y: y.axis + 30 }, `offset ${exact(c.base_offset[first])}`),
    s("text", { class: "label mono", x: width, y: y.axis + 30, "text-anchor": "end" }, exact(c.end_offset[last])));
  if (gutter) {
    parts.push(s("text", { class: "lane", x: 0, y: y.time + LANE / 2 + 4 }, "time"),
      s("text", { class: "lane", x: 0, y: y.bytes + LANE / 2 + 4 }, "bytes"));
    if (isCompacted) parts.push(s("text", { class: "lane", x: 0, y: y.strip + STRIP + 1 }, "cleaner"));
  }
  return s("g", { "aria-hidden": "true" }, parts);
}

/** The labels of the time axis, above what crosses it. */
function timeLabels({ toT, time, y, width, gutter }) {
  const { step, ticks } = timeTicks(time.from, time.to, Math.max(2, Math.floor((width - gutter) / 96)));
  return s("g", { "aria-hidden": "true" }, ticks.map((each) => [each, toT(each)])
    .filter(([, x]) => x > gutter + 14 && x < width - 24)
    .map(([each, x]) => s("text", { class: "label halo", x, y: y.time - 7, "text-anchor": "middle" }, tickTime(each, step))));
}

/** Where retention cuts the log. */
function cuts({ model, toX, toT, y, from, to, time }) {
  const parts = [];
  const settings = model.answer.settings;
  const policy = settings["cleanup.policy"]?.value ?? "delete";
  if (!policy.includes("delete")) return parts;
  const age = numberOf(settings, "retention.ms");
  if (Number.isFinite(age) && age !== null) {
    const at = model.nowMs - age;
    if (at > time.from && at < time.to) {
      const x = toT(at);
      parts.push(s("line", { class: "cut", x1: x, x2: x, y1: y.time - 3, y2: y.time + LANE + 3 }, s("title", {}, "retention.ms")),
        s("text", { class: "cut-label", x: x + 5, y: y.time + 11 }, "retention.ms"));
    }
  }
  const size = numberOf(settings, "retention.bytes");
  if (Number.isFinite(size) && size !== null) {
    const at = model.bytes - size;
    if (at > from && at < to) {
      const x = toX(at);
      parts.push(s("line", { class: "cut", x1: x, x2: x, y1: y.bytes - 3, y2: y.bytes + LANE + 3 }, s("title", {}, "retention.bytes")),
        s("text", { class: "cut-label", x: x + 5, y: y.bytes + LANE - 5 }, "retention.bytes"));
    }
  }
  return parts;
}

/** The positions of groups, in rows so that their names do not touch. */
function placed(model, toX, toT, { from, to, width, gutter }) {
  const found = [];
  const ends = [];
  const groups = (model.answer.groups ?? []).filter((each) => each.offset !== null && each.offset !== undefined);
  const seen = groups.map((group) => {
    const { at, part } = model.place(group.offset);
    const place = model.start[at] + part * model.columns.size[at];
    return { group, at, place, xt: toT(model.firstMs[at] + part * (model.lastMs[at] - model.firstMs[at])), xb: toX(place) };
  }).filter((each) => each.place >= from && each.place <= to).sort((a, b) => a.xt - b.xt);
  for (const each of seen) {
    const name = each.group.group || "(no name)";
    const text = name.length > 22 ? `${name.slice(0, 21)}…` : name;
    const length = text.length * 6.6 + 14;
    const isLeft = each.xt + length > width;
    const begin = isLeft ? each.xt - length : each.xt;
    let row = ends.findIndex((end) => end < begin);
    if (row < 0) row = ends.length;
    if (row >= MOST_ROWS) {
      found.push({ ...each, text: "", row: MOST_ROWS - 1, isLeft, gutter });
      continue;
    }
    ends[row] = begin + length + 6;
    found.push({ ...each, text, row, isLeft, gutter });
  }
  return found;
}

function drawFlag({ group, xt, xb, text, row, isLeft }, y) {
  const top = y.groups + row * ROW;
  const path = `M${xt},${top + 4}V${y.ribbon}C${xt},${y.ribbon + RIBBON / 2} ${xb},${y.ribbon + RIBBON / 2} ${xb},${y.bytes}V${y.bytes + LANE}`;
  const isLosing = Boolean(group.forecast?.loss);
  const lag = group.lag === null || group.lag === undefined ? "" : `, ${exact(group.lag)} behind`;
  return s("g", { class: `flag${isLosing ? " losing" : ""}` },
    s("title", {}, `${group.group} at offset ${exact(group.offset)}${lag}`),
    s("path", { class: "pole", d: path }),
    s("circle", { cx: xt, cy: top + 7, r: 3.5 }),
    text ? s("text", { x: isLeft ? xt - 8 : xt + 8, y: top + 11, "text-anchor": isLeft ? "end" : "start" }, text) : null);
}

function legendOf(model, before, drawing) {
  const there = new Set(model.states);
  const parts = STATES.filter((state) => there.has(state))
    .map((state) => h("li", {}, h("span", { class: `key ${state}` }), model.legend(state)));
  if (before && drawing.marks.some((mark) => mark.hasChanged)) {
    parts.push(h("li", {}, h("span", { class: "key changed" }), "changed by what is tried"));
  }
  if (drawing.isCompacted) {
    const kinds = new Set(model.columns.part);
    for (const [kind, word] of [["clean", "compacted"], ["cleanable", "dirty: the next cleaning reads it"],
      ["uncleanable", "dirty, but not to be cleaned yet"]]) {
      if (kinds.has(kind)) parts.push(h("li", {}, h("span", { class: `key part ${kind}` }), word));
    }
  }
  if (drawing.flags.length) parts.push(h("li", {}, h("span", { class: "key flag" }), "position of a group"));
  return parts;
}
