// Lists of the API, which come in pages.
import { ask } from "./api.js";

const PAGE = 10_000;
const MOST = 100_000;

/** All items of a list, and the answer of its first page; at most 100,000 items. */
export async function askAll(parts, query, name, signal) {
  const first = await ask(parts, { ...query, limit: PAGE }, signal);
  const items = [...first[name]];
  let next = first.next;
  while (next !== null && next !== undefined && items.length < MOST) {
    const page = await ask(parts, { ...query, start: next, limit: PAGE }, signal);
    items.push(...page[name]);
    next = page.next;
  }
  return { ...first, [name]: items };
}
