// Settings to try: sliders on a logarithmic scale, with fields that take a number and its unit.
import { fill, h, nextId } from "../dom.js";
import { numberOf } from "../settings.js";
import { DAY, HOUR, MINUTE, SECOND, bytes, duration, exactBytes, exactDuration, readBytes, readDuration } from "../units.js";

const STEPS = 1000; // of a slider; one more is no limit
const MIB = 1 << 20;
const LARGEST_SEGMENT = 2 ** 31 - 1;

/** The settings that can be tried, with the range of their sliders for a log. */
function knobs(model) {
  const { settings } = model.answer;
  const age = Math.max(HOUR, model.nowMs - (model.firstMs[0] || model.nowMs));
  const segmentBytes = "internal.segment.bytes" in settings ? "internal.segment.bytes" : "segment.bytes";
  const deletes = (settings["cleanup.policy"]?.value ?? "delete").includes("delete");
  const smallest = segmentBytes === "segment.bytes" ? MIB : 1024;
  const retention = [
    { name: "retention.ms", isTime: true, least: Math.max(SECOND, age / 1000), most: age * 20, hasNoLimit: true },
    { name: "retention.bytes", least: Math.max(256, model.bytes / 1000), most: Math.max(1024, model.bytes * 20), hasNoLimit: true },
  ];
  return [
    ...(deletes ? retention : []), // Nothing but compaction removes records of other logs.
    { name: segmentBytes, least: smallest, most: LARGEST_SEGMENT },
    { name: "segment.ms", isTime: true, least: MINUTE, most: 365 * DAY },
  ];
}

/** The names of all settings that can be tried: those which an address may have. */
export const NAMES = ["retention.ms", "retention.bytes", "segment.bytes", "internal.segment.bytes", "segment.ms"];

/**
 * The sliders of a log. `tried` has the texts of the settings that are tried, by name; `changed`
 * is called with a new one.
 */
export function sliders(model, tried, changed) {
  const now = { ...tried };
  const rows = knobs(model).map((knob) => row(knob, model.answer.settings, now, changed));
  return h("div", { class: "sliders" }, rows);
}

function row(knob, settings, now, changed) {
  const current = numberOf(settings, knob.name);
  const parse = knob.isTime ? readDuration : readBytes;
  const show = (value) => (value === Infinity ? "no limit" : knob.isTime ? exactDuration(value) : exactBytes(value));
  const say = (value) => (value === Infinity ? "no limit" : knob.isTime ? duration(value) : bytes(value));
  const given = now[knob.name];
  let value = given === undefined ? current : given === "-1" ? Infinity : Number(given);
  const top = STEPS + (knob.hasNoLimit ? 1 : 0);
  const problem = nextId("problem");

  const range = h("input", { type: "range", min: 0, max: top, step: 1, "aria-label": knob.name, oninput: slide });
  const text = h("input", { type: "text", "aria-label": `${knob.name}, a number with its unit`, spellcheck: "false", autocomplete: "off",
    "aria-describedby": problem, onchange: write });
  const back = h("button", { type: "button", class: "link", onclick: reset, "aria-label": `reset ${knob.name}` }, "reset");
  const note = h("p", { class: "problem", id: problem, role: "status" });
  const now_ = h("span", { class: "soft" }, current === null ? "" : `now ${say(current)}`);

  function slide() {
    const step = Number(range.value);
    value = step > STEPS ? Infinity : nice(knob, knob.least * (knob.most / knob.least) ** (step / STEPS));
    tell();
  }

  function write() {
    const read = /^\s*(-1|no limit|unlimited)\s*$/i.test(text.value) && knob.hasNoLimit ? Infinity : parse(text.value);
    if (read === null || read < 0) {
      text.setAttribute("aria-invalid", "true");
      fill(note, knob.isTime ? "A time looks like 12 h, 7 d or 30 min." : "A size looks like 512 MiB or 10 GiB.");
      return;
    }
    value = read;
    tell();
  }

  function reset() {
    value = current;
    delete now[knob.name];
    put();
    changed({ ...now });
  }

  function tell() {
    if (value === current) delete now[knob.name];
    else now[knob.name] = value === Infinity ? "-1" : String(value);
    put();
    changed({ ...now });
  }

  function put() {
    fill(note);
    text.removeAttribute("aria-invalid");
    text.value = value === null ? "" : show(value);
    range.value = value === Infinity ? top : String(Math.round(STEPS * Math.log((value || 1) / knob.least) / Math.log(knob.most / knob.least)));
    range.setAttribute("aria-valuetext", value === null ? "not known" : say(value));
    const isTried = knob.name in now;
    back.hidden = !isTried;
    element.classList.toggle("tried", isTried);
  }

  const element = h("div", { class: "slider", role: "group", "aria-label": knob.name },
    h("div", { class: "slider-head" }, h("span", { class: "mono" }, knob.name), now_, back),
    range, text, note);
  put();
  return element;
}

/** A round value near one: two digits of its unit. */
function nice(knob, value) {
  const units = knob.isTime ? [DAY, HOUR, MINUTE, SECOND, 1] : [1024 ** 4, 1024 ** 3, 1024 ** 2, 1024, 1];
  const unit = units.find((each) => value >= each) ?? 1;
  const times = value / unit;
  const step = times >= 100 ? 10 : times >= 20 ? 1 : 0.5;
  return Math.min(Math.max(1, Math.round(Math.round(times / step) * step * unit)), knob.most);
}
