// The forecast of a group: what it will read in time, and what will be deleted before.
import { h } from "./dom.js";
import { badge } from "./parts.js";
import { bytes, exact } from "./units.js";

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
