// Parts that several views have.
import { ApiError } from "./api.js";
import { fill, h } from "./dom.js";
import { bytes, exact, moment, relative } from "./units.js";

/** The beginning of a view: the way to it, its name, and a line about it. */
export function heading(title, way = [], ...about) {
  return h("header", { class: "heading" },
    way.length ? h("nav", { "aria-label": "Path", class: "way" },
      h("ol", {}, way.map(([name, href]) => h("li", {}, h("a", { href }, name))))) : null,
    h("h1", { tabindex: "-1" }, title),
    about);
}

/** A part of a view with a title. */
export function panel(title, { note, actions, id, level = "h2" } = {}, ...children) {
  return h("section", { class: "panel", id, "aria-label": title },
    h("div", { class: "panel-head" }, h(level, {}, title),
      note ? h("p", { class: "note" }, note) : null, actions ?? null),
    children);
}

/** Facts side by side: `[name, value, title?]`; those without a value are left out. */
export function facts(list) {
  return h("dl", { class: "facts" }, list
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value, title]) => h("div", {}, h("dt", {}, name), h("dd", { title }, value))));
}

/** A word in a frame; kinds are `accent`, `warn`, `bad`, `calm`. */
export function badge(word, kind = "calm", title = null) {
  return h("span", { class: `badge ${kind}`, title }, word);
}

/** A size, with its bytes as a title. */
export function size(number) {
  return h("span", { title: number === null || number === undefined ? null : `${exact(number)} bytes` },
    bytes(number));
}

/** A time, as seen from now. */
export function when(ms, nowMs) {
  if (ms === null || ms === undefined) return h("span", {}, "–");
  return h("time", { title: moment(ms), datetime: moment(ms).slice(0, 19).replace(" ", "T") + "Z" },
    relative(ms, nowMs));
}

/** A number of an offset. */
export function offset(number) {
  return h("span", { class: "mono" }, exact(number));
}

/** A bar of a part of 1. */
export function bar(part, kind = "") {
  const width = Math.max(0, Math.min(1, part || 0));
  return h("span", { class: `meter ${kind}`, "aria-hidden": "true" },
    h("span", { style: { width: `${(width * 100).toFixed(2)}%` } }));
}

/** A sentence of something that has gone wrong. */
export function failure(error) {
  if (!(error instanceof ApiError)) console.error(error);
  const sentence = error instanceof ApiError ? error.message : `This page has a fault: ${error.message}`;
  return h("p", { class: "notice bad", role: "alert" }, sentence);
}

/** A paragraph for a view, or a part of one, that has nothing to show. */
export function nothing(...sentences) {
  return h("p", { class: "empty" }, sentences);
}

/**
 * Does what a view does, and shows a failure in its place.
 *
 * Nothing is shown of a view that has been left meanwhile. `alone`: what follows in the view is
 * removed, since without this there is nothing in it.
 */
export async function carefully(place, signal, work, { alone = false } = {}) {
  try {
    await work();
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    fill(place, failure(error));
    while (alone && place.nextSibling) place.nextSibling.remove();
  }
}

/** Does something every so many seconds while the page is seen, and until a view is left. */
export function every(seconds, signal, work) {
  const timer = setInterval(() => {
    if (!document.hidden) work();
  }, seconds * 1000);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** A label with a field in it. */
export function field(label, input, note = null) {
  return h("label", { class: "field" }, h("span", {}, label), input, note);
}
