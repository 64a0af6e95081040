// Axes of time and of bytes.
import { DAY, SECOND } from "../units.js";

const TIME_STEPS = [
  0.001, 0.01, 0.1, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200,
].map((seconds) => seconds * SECOND).concat([1, 2, 7, 14, 30, 91, 182, 365, 730, 1825].map((days) => days * DAY));

/** A linear scale from values to places. */
export function scale(from, to, low, high) {
  const span = to - from || 1;
  const convert = (value) => low + ((value - from) / span) * (high - low);
  convert.invert = (place) => from + ((place - low) / (high - low || 1)) * span;
  convert.from = from;
  convert.to = to;
  return convert;
}

/** Round times between two times, at most `most` of them, and how far they are apart. */
export function timeTicks(from, to, most) {
  const step = TIME_STEPS.find((each) => (to - from) / each <= most) ?? 3650 * DAY;
  return { step, ticks: multiples(from, to, step) };
}

/** Round time spans from 0 on. */
export function spanTicks(to, most) {
  const steps = TIME_STEPS.filter((each) => each >= SECOND);
  const step = steps.find((each) => to / each <= most) ?? 3650 * DAY;
  return multiples(0, to, step);
}

/** Round numbers of bytes between two. */
export function byteTicks(from, to, most) {
  let step = 1;
  while ((to - from) / step > most) step *= 2;
  return multiples(from, to, step);
}

function multiples(from, to, step) {
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to && found.length < 100; at += step) found.push(at);
  return found;
}

