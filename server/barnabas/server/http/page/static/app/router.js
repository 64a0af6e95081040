// Addresses of views, behind the `#`: every view can be linked to, and the browser's Back works.

/** The address of a view: parts of its path, and a query whose null values are left out. */
export function to(parts, query = {}) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") given.set(name, value);
  }
  const path = `#/${parts.map(encodeURIComponent).join("/")}`;
  const text = given.toString();
  return text ? `${path}?${text}` : path;
}

/** Where the browser is: the parts of the path, and the query. */
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  let parts;
  try {
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    parts = ["?"]; // A % without its digits: no view has this address.
  }
  return { parts, query: new URLSearchParams(query) };
}

/** Puts a query into the address of this view, without a step of the browser's Back. */
export function keep(query) {
  const { parts, query: now } = here();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") now.delete(name);
    else now.set(name, value);
  }
  history.replaceState(history.state, "", to(parts, Object.fromEntries(now)));
}

/**
 * Shows the view of each address.
 *
 * A route is `[pattern, view]`; a pattern has the parts of a path, where `:name` takes any part. A
 * view gets `{ main, part, query, signal }`; the signal is aborted when another view comes.
 */
export function route(main, routes, unknown, shown) {
  let controller = new AbortController();
  let path = null;

  function show() {
    controller.abort();
    controller = new AbortController();
    const { parts, query } = here();
    const found = find(routes, parts);
    const isFirst = path === null;
    path = parts.join("/");
    const context = { main, part: found?.part ?? {}, query, signal: controller.signal };
    (found?.view ?? unknown)(context);
    shown(parts, isFirst);
  }

  addEventListener("hashchange", show);
  show();
}

function find(routes, parts) {
  for (const [pattern, view] of routes) {
    const wanted = pattern.split("/").filter(Boolean);
    if (wanted.length !== parts.length) continue;
    const part = {};
    const fits = wanted.every((each, at) => {
      if (!each.startsWith(":")) return each === parts[at];
      part[each.slice(1)] = parts[at];
      return true;
    });
    if (fits) return { view, part };
  }
  return null;
}
