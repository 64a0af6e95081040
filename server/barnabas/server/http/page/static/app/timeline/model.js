// The segments of a partition as the API gives them, with what is drawn of them.
import { numberOf } from "../settings.js";
import { DAY, HOUR, bytes, duration, relative } from "../units.js";

/** The states of a segment, in the order of the legend. */
export const STATES = ["next", "soon", "kept", "endless", "active"];

const RULES = {
  log_start_offset: "the log start offset",
  retention_bytes: "retention.bytes",
  retention_ms: "retention.ms",
};

const REASONS = {
  size: "it was full (segment.bytes)",
  time: "its time was up (segment.ms)",
  offset_index_full: "its offset index was full (segment.index.bytes)",
  time_index_full: "its time index was full (segment.index.bytes)",
  offset_overflow: "its offsets had grown too far from its base offset",
};

const CAUSES = {
  active: "it has not ended: records are appended to it",
  jitter: "its time was up (segment.ms and its jitter)",
  clock: "its time was up by the clock of the broker (segment.ms)",
  compacted: "compaction wrote it",
  nothing_follows: "not known: the batch that began the next one is gone",
  unexplained: "not known: no rule explains it under today’s settings",
};

/** The name of a rule of retention, as its option is called. */
export function ruleName(rule) {
  return RULES[rule] ?? (rule ? rule.replaceAll("_", " ") : null);
}

/**
 * A partition at one time, with one set of settings.
 *
 * Byte places count from the first byte of the oldest segment.
 */
export class PartitionModel {
  constructor(answer) {
    const columns = answer.segments;
    this.answer = answer;
    this.columns = columns;
    this.nowMs = answer.now_ms;
    this.count = columns.base_offset.length;
    this.start = new Float64Array(this.count + 1);
    this.firstMs = new Float64Array(this.count);
    this.lastMs = new Float64Array(this.count);
    let before = null;
    for (let at = 0; at < this.count; at += 1) {
      this.start[at + 1] = this.start[at] + columns.size[at];
      const largest = columns.largest_timestamp[at];
      const first = columns.first_batch_timestamp[at] ?? before ?? largest;
      this.firstMs[at] = Math.min(first, largest);
      this.lastMs[at] = Math.max(first, largest);
      before = this.lastMs[at];
    }
    const retention = numberOf(answer.settings, "retention.ms");
    this.soonMs = Number.isFinite(retention) && retention ? Math.max(HOUR, retention / 10) : DAY;
    this.states = Array.from({ length: this.count }, (_, at) => this.#state(at));
  }

  #state(at) {
    const earliest = this.columns.unreadable_earliest_ms[at];
    if (this.columns.goes_by[at]) return "next";
    if (at === this.count - 1) return "active";
    if (earliest === null) return "endless";
    return earliest - this.nowMs <= this.soonMs ? "soon" : "kept";
  }

  /** The bytes of all segments. */
  get bytes() {
    return this.start[this.count];
  }

  /** The number of the segment with a byte place. */
  at(place) {
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.start[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The number of the segment with an offset, and how far into it the offset is, from 0 to 1. */
  place(offset) {
    const bases = this.columns.base_offset;
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (bases[middle] <= offset) low = middle;
      else high = middle - 1;
    }
    const span = this.columns.end_offset[low] - bases[low];
    return { at: low, part: span > 0 ? Math.max(0, Math.min(1, (offset - bases[low]) / span)) : 0 };
  }

  /** Why a segment ended, in a few words. */
  ended(at) {
    const { cause: causes, reason: reasons } = this.columns;
    if (!causes) return "its files are being read";
    const [cause, reason] = [causes[at], reasons[at]];
    if (cause === "rolled") return REASONS[reason] ?? String(reason).replaceAll("_", " ");
    return CAUSES[cause] ?? String(cause).replaceAll("_", " ");
  }

  /** When a segment is deleted and by which rule, in a few words. */
  leaves(at) {
    const { columns, nowMs } = this;
    const rule = ruleName(columns.rule[at]);
    if (columns.goes_by[at]) return `by the next check (${ruleName(columns.goes_by[at])})`;
    const earliest = columns.unreadable_earliest_ms[at];
    const missing = columns.bytes_missing[at];
    const grown = missing === null ? null : `after ${bytes(missing)} more in the log (retention.bytes)`;
    if (earliest === null) return grown ?? "no rule deletes it";
    const latest = columns.unreadable_latest_ms[at];
    const window = at === this.count - 1 && latest !== null && latest - earliest > HOUR ? ", later if records come" : "";
    return `${relative(earliest, nowMs)} (${rule})${window}`;
  }

  /** All that is deleted by the next check: segments and bytes. */
  get deletedNext() {
    let segments = 0;
    let size = 0;
    for (let at = 0; at < this.count; at += 1) {
      if (!this.columns.goes_by[at]) continue;
      segments += 1;
      size += this.columns.size[at];
    }
    return { segments, bytes: size };
  }

  /** Steps of the bytes kept from now on: `[[ms, bytes], ...]`, the first at 0 ms, without new records. */
  get future() {
    const drops = [];
    for (let at = 0; at < this.count; at += 1) {
      const earliest = this.columns.unreadable_earliest_ms[at];
      if (earliest !== null) drops.push([Math.max(0, earliest - this.nowMs), this.columns.size[at]]);
    }
    drops.sort((a, b) => a[0] - b[0]);
    const steps = [[0, this.bytes]];
    let left = this.bytes;
    for (const [ms, size] of drops) {
      left -= size;
      if (steps.at(-1)[0] === ms) steps.at(-1)[1] = left;
      else steps.push([ms, left]);
    }
    return steps;
  }

  /** The words of the legend. */
  legend(state) {
    return {
      next: "deleted by the next check",
      soon: `deleted within ${duration(this.soonMs)}`,
      kept: "deleted later",
      endless: "no date",
      active: "active",
    }[state];
  }
}
