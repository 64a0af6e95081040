// New records of a topic, as they come.
import { ask } from "../api.js";
import { fill, h, say } from "../dom.js";
import { carefully, failure, field, heading, panel } from "../parts.js";
import { recordEntry, withheld } from "../records.js";
import { keep, to } from "../router.js";
import { counted, exact } from "../units.js";

const MOST_ROWS = 500;
const WAIT_MS = 10_000;
const PAUSE_MS = 3000;
const RECENT = 20; // Records of each partition that are there at the beginning.
const MOST_PARTITIONS = 20; // Of which recent records are asked for.

export async function show({ main, part, query, signal }) {
  const { topic } = part;
  document.title = `New records of ${topic} – Barnabas`;
  const state = h("p", { class: "note", role: "status" }, "Waiting for records");
  const feed = h("div", { class: "feed records", role: "log", "aria-label": "Records, the latest first", tabindex: "0" });
  const trouble = h("div");
  let rows = [];
  let seen = 0;
  let isPaused = false;
  let resume = () => {};

  const filter = h("input", { type: "search", placeholder: "Text in key or value", "aria-label": "Only records with this text in key or value",
    value: query.get("contains") ?? "", oninput: () => { keep({ contains: filter.value }); draw(); } });
  const pretty = h("input", { type: "checkbox", checked: query.get("pretty") !== "no",
    onchange: () => { keep({ pretty: pretty.checked ? null : "no" }); draw(); } });
  const pause = h("button", { type: "button", class: "button", "aria-pressed": "false", onclick: () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? "Go on" : "Pause";
    pause.setAttribute("aria-pressed", String(isPaused));
    say(isPaused ? "Paused" : "New records are shown");
    if (!isPaused) resume();
    draw();
  } }, "Pause");
  const clear = h("button", { type: "button", class: "quiet", onclick: () => { rows = []; draw(); } }, "Clear");

  function draw() {
    const wanted = filter.value;
    const shown = wanted ? rows.filter((row) => has(row, wanted)) : rows;
    fill(feed, shown.map((row) => recordEntry(row, { topic, withPartition: true, pretty: pretty.checked, found: wanted })));
    if (!shown.length) {
      fill(feed, h("p", { class: "empty" }, rows.length ? `None of the last ${counted(rows.length, "record")} has this text.`
        : "No record has come yet. What is produced to this topic from now on appears here."));
    }
    state.textContent = `${isPaused ? "Paused" : "Following"}: ${counted(seen, "record")} so far, the last ${exact(MOST_ROWS)} are kept`;
  }

  fill(main, h("div", { class: "title-row" }, heading(`New records of ${topic}`, [["Topics", "#/"], [topic, to(["topics", topic])]])),
    trouble, panel("Records", { actions: h("div", { class: "actions" }, field("lay out JSON", pretty), filter, pause, clear) }, state, feed));

  function take(records) {
    seen += records.length;
    rows = [...records.slice(-MOST_ROWS).reverse(), ...rows].slice(0, MOST_ROWS);
    if (records.length) draw();
  }

  await carefully(trouble, signal, async () => {
    const cluster = await ask(["cluster"], {}, signal);
    const content = cluster.records_allowed;
    if (!content) {
      fill(trouble, withheld());
      filter.disabled = true;
    }
    let positions = (await ask(["topics", topic, "tail"], { content, wait_ms: 0 }, signal)).positions;
    take(await recent(positions, content));
    draw();
    follow();

    async function recent(ends, withContent) {
      const partitions = ends.split(",").filter(Boolean).map((each) => each.split(":")[0]).slice(0, MOST_PARTITIONS);
      const found = await Promise.all(partitions.map((each) =>
        ask(["topics", topic, "partitions", each, "records"], { last: RECENT, content: withContent }, signal)));
      return found.flatMap((each) => each.records).sort((a, b) => a.timestamp - b.timestamp);
    }

    async function unpaused() {
      while (isPaused && !signal.aborted) {
        await new Promise((go) => { resume = go; signal.addEventListener("abort", go, { once: true }); });
      }
    }

    async function follow() {
      while (!signal.aborted) {
        await unpaused();
        try {
          const given = await ask(["topics", topic, "tail"], { positions, content, wait_ms: WAIT_MS, limit: MOST_ROWS }, signal);
          await unpaused(); // The question may have been asked before the pause.
          if (signal.aborted) return;
          positions = given.positions;
          if (content) fill(trouble);
          take(given.records);
        } catch (error) {
          if (signal.aborted || error.name === "AbortError") return;
          fill(trouble, failure(error));
          await new Promise((go) => setTimeout(go, PAUSE_MS));
        }
      }
    }
  });
}

function has(row, text) {
  return [row.key, row.value].some((each) => each?.text.includes(text));
}
