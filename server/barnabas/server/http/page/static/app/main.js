// The frame of the page, and the addresses of its views.
import { ask } from "./api.js";
import { fill, h } from "./dom.js";
import { heading, nothing } from "./parts.js";
import { route } from "./router.js";
import { themeButton } from "./theme.js";

const main = document.getElementById("main");

const loads = new Set();

/** A view whose module is loaded when it is first shown, or once another one is there. */
function view(name, load) {
  loads.add(load);
  return async (context) => {
    main.setAttribute("aria-busy", "true");
    const module = await load();
    if (context.signal.aborted) return;
    fill(main);
    document.title = "Barnabas";
    await module.show(context);
    if (context.signal.aborted) return;
    main.removeAttribute("aria-busy");
    main.dataset.view = name;
    loadOthers();
  };
}

/** Load the other views while nothing else is to do: the next click then waits for its data only. */
function loadOthers() {
  if (!loads.size) return;
  const waiting = [...loads];
  loads.clear();
  (window.requestIdleCallback ?? setTimeout)(() => waiting.forEach((load) => load().catch(() => {})));
}

const topic = view("topic", () => import("./views/topic.js"));
const partition = view("partition", () => import("./views/partition.js"));
const segment = view("segment", () => import("./views/segment.js"));
const batch = view("batch", () => import("./views/batch.js"));

const ROUTES = [
  ["", view("overview", () => import("./views/overview.js"))],
  ["topics/:topic", topic],
  ["topics/:topic/tail", view("tail", () => import("./views/tail.js"))],
  ["topics/:topic/:partition", partition],
  ["topics/:topic/:partition/segments/:segment", segment],
  ["topics/:topic/:partition/batches/:offset", batch],
  ["groups", view("groups", () => import("./views/groups.js"))],
  ["group", view("group", () => import("./views/group.js"))],
  ["transactions", view("transactions", () => import("./views/transactions.js"))],
];

function unknown() {
  fill(main, heading("Nothing is at this address"),
    nothing("The views begin at ", h("a", { href: "#/" }, "the topics"), "."));
  main.removeAttribute("aria-busy");
  main.dataset.view = "unknown";
}

function shown(parts, isFirst) {
  const first = { group: "groups", groups: "groups", transactions: "transactions" }[parts[0]] ?? "overview";
  for (const link of document.querySelectorAll(".views a")) {
    if (link.dataset.view === first) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!isFirst) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

async function sayWhichBroker() {
  const place = document.getElementById("broker");
  try {
    const cluster = await ask(["cluster"]);
    fill(place, `Node ${cluster.node_id}, cluster ${cluster.cluster_id}`);
  } catch {
    fill(place);
  }
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // The part behind # is an address of a view.
  main.focus();
});
themeButton(document.getElementById("theme"));
route(main, ROUTES, unknown, shown);
sayWhichBroker();
