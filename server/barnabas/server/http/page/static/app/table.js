// Tables that sort, and that draw only the rows which are seen: 10,000 of them are no burden.
import { fill, h, say } from "./dom.js";

const ROW = 34; // px; `--row` of the style sheet.
const AROUND = 12;
const ALL_AT_ONCE = 120;

/**
 * A table.
 *
 * Columns: `{ id, name, value, cell?, number?, mono?, wide?, sort? }`. `value` is what is sorted
 * by, `cell` what is shown; `wide` ones are left out on narrow screens; `sort: false` cannot be
 * sorted. Options: `label` for screen readers, `empty` what is said without rows, `sort`
 * `[id, descending]`, `mark(row)` a class of a row, `unsorted` keeps the order of the rows.
 *
 * Returns `{ element, set(rows), reveal(row) }`.
 */
export function table(columns, { label, empty, sort, mark, unsorted = false }) {
  let rows = [];
  let [by, isDescending] = sort ?? [null, false];
  const body = h("tbody");
  const heads = new Map();
  const grid = h("table", { "aria-label": label },
    h("thead", {}, h("tr", {}, columns.map(head))), body);
  const frame = h("div", { class: "table", role: "region", "aria-label": label, tabindex: "0" }, grid);
  const nothing = h("p", { class: "empty" });
  const element = h("div", { class: "table-place" }, frame, nothing);

  function head(column) {
    const classes = names(column);
    if (column.sort === false || unsorted) {
      return h("th", { scope: "col", class: classes }, column.name);
    }
    const cell = h("th", { scope: "col", class: classes },
      h("button", { type: "button", onclick: () => change(column) }, column.name));
    heads.set(column.id, cell);
    return cell;
  }

  function change(column) {
    if (by === column.id) isDescending = !isDescending;
    else [by, isDescending] = [column.id, Boolean(column.number)];
    arrange();
    say(`Sorted by ${column.name}, ${isDescending ? "descending" : "ascending"}`);
  }

  function arrange() {
    const column = columns.find((each) => each.id === by);
    if (column) rows = sorted(rows, column.value, isDescending);
    for (const [id, cell] of heads) {
      if (id === by) cell.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    draw(true);
  }

  let drawn = "";
  function draw(again = false) {
    const isLong = rows.length > ALL_AT_ONCE;
    const top = Math.max(0, frame.scrollTop - ROW);
    const height = frame.clientHeight || 800;
    const first = isLong ? Math.max(0, Math.floor(top / ROW) - AROUND) : 0;
    const last = isLong ? Math.min(rows.length, first + Math.ceil(height / ROW) + 2 * AROUND) : rows.length;
    const wanted = `${first} ${last}`;
    if (wanted === drawn && !again) return;
    drawn = wanted;
    const focused = body.contains(document.activeElement) ? key(document.activeElement) : null;
    fill(body, space(first), rows.slice(first, last).map((row, at) => line(row, first + at)),
      space(rows.length - last));
    if (focused) [...body.querySelectorAll("a, button")].find((each) => key(each) === focused)?.focus();
    if (isLong) grid.setAttribute("aria-rowcount", String(rows.length + 1));
    else grid.removeAttribute("aria-rowcount");
  }

  function line(row, at) {
    const isLong = rows.length > ALL_AT_ONCE;
    return h("tr", { class: mark?.(row), "aria-rowindex": isLong ? at + 2 : null },
      columns.map((column, place) => h(place ? "td" : "th",
        { scope: place ? null : "row", class: names(column) },
        column.cell ? column.cell(row) : column.value(row))));
  }

  function space(count) {
    if (!count) return null;
    return h("tr", { class: "space", "aria-hidden": "true" },
      h("td", { colspan: columns.length, style: { height: `${count * ROW}px` } }));
  }

  frame.addEventListener("scroll", () => requestAnimationFrame(() => draw()), { passive: true });

  return {
    element,
    set(given, instead = empty) {
      rows = given;
      frame.hidden = !rows.length;
      nothing.hidden = Boolean(rows.length);
      if (!rows.length) fill(nothing, instead);
      frame.classList.toggle("long", rows.length > ALL_AT_ONCE);
      if (unsorted) draw(true);
      else arrange();
    },
    reveal(row) {
      const at = rows.indexOf(row);
      if (at < 0 || rows.length <= ALL_AT_ONCE) return;
      const y = at * ROW;
      if (y < frame.scrollTop || y > frame.scrollTop + frame.clientHeight - 2 * ROW) {
        frame.scrollTop = Math.max(0, y - frame.clientHeight / 2);
      }
    },
    redraw: () => draw(true),
  };
}

function names(column) {
  const classes = [column.number && "number", column.mono && "mono", column.wide && "wide",
    column.grow && "grow"];
  return classes.filter(Boolean).join(" ") || null;
}

function key(element) {
  return element.getAttribute("href") ?? element.textContent;
}

/** A sorted copy; what is missing comes last in both directions. */
export function sorted(rows, value, isDescending) {
  const sign = isDescending ? -1 : 1;
  const keyed = rows.map((row) => [value(row), row]);
  keyed.sort(([a], [b]) => {
    const isA = a !== null && a !== undefined;
    const isB = b !== null && b !== undefined;
    if (!isA || !isB) return Number(isB) - Number(isA);
    if (typeof a === "string") return sign * collator.compare(a, b);
    return sign * (a - b);
  });
  return keyed.map(([, row]) => row);
}

const collator = new Intl.Collator("en", { numeric: true });
