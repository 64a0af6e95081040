// What is left of a log from now on, if nothing comes: as the settings are, and as they are tried.
import { fill, h, s } from "../dom.js";
import { HOUR, bytes, duration } from "../units.js";
import { byteTicks, scale, spanTicks } from "./scale.js";

const HEIGHT = 170;
const TOP = 8;
const BOTTOM = 22;

/** The drawing: `{ element, set(model, before) }`. */
export function future() {
  let width = 0;
  let now = null;
  let then = null;
  const svg = s("svg", { class: "future", height: HEIGHT, role: "img" });
  const element = h("figure", { class: "future-place" }, svg);

  new ResizeObserver(([entry]) => {
    const wide = Math.round(entry.contentRect.width);
    if (wide !== width && wide > 0) {
      width = wide;
      draw();
    }
  }).observe(element);

  function draw() {
    if (!now || !width) return;
    const tried = then ? now.future : null;
    const current = (then ?? now).future;
    const last = Math.max(...[current, tried].filter(Boolean).map((steps) => steps.at(-1)[0]), HOUR);
    const to = last * 1.08;
    const left = width > 420 ? 62 : 4;
    const most = Math.max(1, now.bytes);
    const x = scale(0, to, left, width - 2);
    const y = scale(0, most * 1.06, HEIGHT - BOTTOM, TOP);
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    svg.setAttribute("aria-label", describe(current, tried));
    const parts = [];
    for (const each of byteTicks(0, most, 4)) {
      parts.push(s("line", { class: "grid", x1: left, x2: width, y1: y(each), y2: y(each) }));
      if (left > 10) parts.push(s("text", { class: "label", x: left - 8, y: y(each) + 4, "text-anchor": "end" }, each ? bytes(each) : "0"));
    }
    for (const each of spanTicks(to, Math.max(2, Math.floor((width - left) / 84)))) {
      const at = x(each);
      if (at > width - 24) continue;
      parts.push(s("text", { class: "label", x: at, y: HEIGHT - 6, "text-anchor": each ? "middle" : "start" }, each ? `+${duration(each)}` : "now"));
    }
    const shown = tried ?? current;
    parts.push(s("path", { class: `area${tried ? " tried" : ""}`, d: `${line(shown, x, y, to)}V${y(0)}H${x(0)}Z` }),
      s("path", { class: `edge${tried ? " tried" : ""}`, d: line(shown, x, y, to) }));
    if (tried) parts.push(s("path", { class: "edge old", d: line(current, x, y, to) }));
    fill(svg, parts);
  }

  return {
    element,
    set(model, before = null) {
      now = model;
      then = before;
      draw();
    },
  };
}

function line(steps, x, y, to) {
  let path = `M${x(0).toFixed(1)},${y(steps[0][1]).toFixed(1)}`;
  let before = "";
  for (const [ms, left] of steps) {
    const step = `H${x(ms).toFixed(1)}V${y(left).toFixed(1)}`;
    if (step !== before) path += step;
    before = step;
  }
  return `${path}H${x(to).toFixed(1)}`;
}

function describe(current, tried) {
  const words = (steps) => {
    const [ms, left] = steps.at(-1);
    return steps.length === 1 && left === steps[0][1] ? "nothing is deleted"
      : `${bytes(left)} are left in ${duration(ms)} if nothing comes`;
  };
  return tried ? `With what is tried ${words(tried)}; as it is now ${words(current)}` : `As it is now ${words(current)}`;
}
