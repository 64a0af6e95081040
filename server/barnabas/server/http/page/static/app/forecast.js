// The forecast of a group: what it will read in time, and what will be deleted before.
import { h } from "./dom.js";
import { badge } from "./parts.js";
import { bytes, duration, exact } from "./units.js";

const VERDICTS = {
  loss: ["warn", "loses records"],
  in_time: ["accent", "reads all in time"],
  nothing_unread: ["calm", "nothing unread"],
  never_deleted: ["calm", "nothing is deleted"],
  unknown: ["calm", "not known yet"],
};

/** The verdict in a few words; a dash where there is no forecast. */
export function forecastBadge(forecast) {
  if (!forecast) return "–";
  const [kind, word] = VERDICTS[forecast.verdict] ?? ["calm", forecast.verdict];
  if (!forecast.loss) return badge(word, kind);
  const { records, bytes: lost } = forecast.loss;
  return badge(`loses ${bytes(lost)}`, "bad", `${exact(records)} records will be deleted unread`);
}

/** The sentences. */
export function forecastWords(forecast) {
  return (forecast?.words ?? []).map((sentence) => h("p", {}, sentence));
}

/** What comes first: the deletion of records, or the group that would read them. */
export function race(forecast, nowMs) {
  const loss = forecast?.loss;
  if (!loss) return null;
  const deleted = Math.max(0, loss.begins_ms - nowMs);
  const read = loss.reaches_ms === null || loss.reaches_ms === undefined ? null : Math.max(0, loss.reaches_ms - nowMs);
  const most = Math.max(1, deleted, read ?? deleted * 1.6);
  return h("dl", { class: "race" },
    h("dt", {}, "deleted"), h("dd", {}, stretch(deleted / most, "bad"), deleted ? `in ${duration(deleted)}` : "by the next check"),
    h("dt", {}, `offset ${exact(loss.segment_end_offset)} read`), h("dd", {}, stretch(read === null ? 1 : read / most, read === null ? "never" : ""),
      read === null ? "never, at its pace" : `in ${duration(read)}`));
}

function stretch(part, kind) {
  return h("span", { class: `stretch ${kind}`, "aria-hidden": "true", style: { width: `${Math.max(0.4, part * 60).toFixed(1)}%` } });
}
