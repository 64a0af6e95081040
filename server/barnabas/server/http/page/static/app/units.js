// Numbers with their units. Times are UTC, as `barnabas explain` writes them.

const KIB = 1024;
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const grouped = new Intl.NumberFormat("en");

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** A number with separators of thousands: an offset, or bytes exactly. */
export function exact(number) {
  return number === null || number === undefined ? "–" : grouped.format(number);
}

/** A number of things: `1 segment`, `3 segments`. */
export function counted(number, one, many = `${one}s`) {
  return `${exact(number)} ${number === 1 ? one : many}`;
}

/** Bytes with three digits at least: `1.25 GiB`. */
export function bytes(number) {
  if (number === null || number === undefined) return "–";
  let unit = 0;
  let left = Math.abs(number);
  while (left >= KIB && unit < SIZES.length - 1) {
    left /= KIB;
    unit += 1;
  }
  return `${number < 0 ? "−" : ""}${short(left, unit)} ${SIZES[unit]}`;
}

function short(left, unit) {
  if (unit === 0) return `${Math.round(left)}`;
  const digits = left >= 100 ? 0 : left >= 10 ? 1 : 2;
  const text = left.toFixed(digits);
  return digits ? text.replace(/\.?0+$/, "") : text;
}

/** Bytes a second. */
export function rate(perSecond) {
  return perSecond === null || perSecond === undefined ? "–" : `${bytes(perSecond)}/s`;
}

/** A number of records or the like, a second. */
export function pace(perSecond) {
  if (perSecond === null || perSecond === undefined) return "–";
  if (perSecond === 0) return "0/s";
  return `${perSecond >= 10 ? exact(Math.round(perSecond)) : perSecond.toPrecision(2)}/s`;
}

const STEPS = [
  [YEAR, "y"],
  [DAY, "d"],
  [HOUR, "h"],
  [MINUTE, "min"],
  [SECOND, "s"],
];

/** A time span in its two largest units: `3 h 12 min`. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const sign = ms < 0 ? "−" : "";
  let left = Math.abs(ms);
  if (left < SECOND) return `${sign}${Math.round(left)} ms`;
  left = Math.round(left / SECOND) * SECOND;
  const first = STEPS.findIndex(([size]) => left >= size);
  const parts = [];
  for (const [size, name] of STEPS.slice(first, first + 2)) {
    const number = Math.floor(left / size);
    left -= number * size;
    if (number) parts.push(`${number} ${name}`);
  }
  return sign + parts.join(" ");
}

/** A time span from now, in words: `in 3 h 12 min`, `5 min ago`. */
export function relative(ms, nowMs) {
  if (ms === null || ms === undefined) return "–";
  const away = ms - nowMs;
  if (Math.abs(away) < SECOND) return "now";
  return away > 0 ? `in ${duration(away)}` : `${duration(-away)} ago`;
}

const MOST_MS = 8.64e15;

/** A time: `2026-11-26 07:40:12 UTC`. */
export function moment(ms) {
  if (ms === null || ms === undefined || Math.abs(ms) > MOST_MS) return "–";
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** A time of a day, where the day is clear. */
export function clock(ms) {
  return new Date(ms).toISOString().slice(11, 19);
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** The labels of an axis of time whose ticks are `step` ms apart. */
export function tickTime(ms, step) {
  const at = new Date(ms);
  const day = `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
  if (step >= 300 * DAY) return `${at.getUTCFullYear()}`;
  if (step >= 27 * DAY) return `${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
  if (step >= DAY) return day;
  const time = at.toISOString().slice(11, step < MINUTE ? 19 : 16);
  return at.getUTCHours() + at.getUTCMinutes() + at.getUTCSeconds() === 0 ? day : time;
}

const SPAN = /([\d.,]+)\s*(ms|sec|s|min|m|hours?|h|days?|d|weeks?|w|years?|y)?\s*/giy;
const SPAN_UNITS = { ms: 1, s: SECOND, m: MINUTE, h: HOUR, d: DAY, w: 7 * DAY, y: YEAR };
const SIZE = /^\s*([\d.,]+)\s*(?:([kmgtp])?(?:i?b|bytes?)?)?\s*$/i;

/** Milliseconds of a text such as `12 h` or `1 d 6 h`; null if it is none. Alone a number is ms. */
export function readDuration(text) {
  const given = text.trim();
  if (!given) return null;
  let sum = 0;
  SPAN.lastIndex = 0;
  while (SPAN.lastIndex < given.length) {
    const match = SPAN.exec(given);
    if (!match) return null;
    const unit = (match[2] ?? "ms").toLowerCase();
    sum += number(match[1]) * (SPAN_UNITS[unit] ?? (unit === "min" ? MINUTE : SPAN_UNITS[unit[0]]));
  }
  return Number.isFinite(sum) ? Math.round(sum) : null;
}

/** Bytes of a text such as `1.5 GiB`; null if it is none. Alone a number is bytes. */
export function readBytes(text) {
  const match = SIZE.exec(text);
  if (!match) return null;
  const power = match[2] ? "kmgtp".indexOf(match[2].toLowerCase()) + 1 : 0;
  const value = Math.round(number(match[1]) * KIB ** power);
  return Number.isFinite(value) ? value : null;
}

/** A time span that `readDuration` reads as the same number. */
export function exactDuration(ms) {
  const text = duration(ms);
  return readDuration(text) === ms ? text : `${ms} ms`;
}

/** A size that `readBytes` reads as the same number. */
export function exactBytes(number) {
  const text = bytes(number);
  return readBytes(text) === number ? text : `${number} B`;
}

function number(text) {
  return Number(text.replaceAll(",", ""));
}
