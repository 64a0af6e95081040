// JSON as it is read: what fits in a line stays in one, and its parts have their colours.
import { h } from "./dom.js";

const WIDE = 92; // Characters of a line.
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b/g;

/** The text laid out; as it is if it is not JSON, or was cut. */
export function laidOut(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  return inLines(tokens(text), 0);
}

/** From the text itself, not from what was parsed: numbers keep all of their digits. */
function tokens(text) {
  const found = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let at = 0;
  const read = () => {
    const token = found[at++];
    if (token !== "{" && token !== "[") return token;
    const close = token === "{" ? "}" : "]";
    const items = [];
    while (found[at] !== close) {
      if (found[at] === ",") at += 1;
      const name = token === "{" ? found[at] : null;
      if (name !== null) at += 2;
      items.push([name, read()]);
    }
    at += 1;
    return { open: token, close, items };
  };
  return read();
}

function inLines(node, depth) {
  if (typeof node === "string") return node;
  const flat = inOneLine(node);
  if (flat.length + depth * 2 <= WIDE) return flat;
  const space = "  ".repeat(depth + 1);
  const lines = node.items.map(([name, item]) => `${space}${name === null ? "" : `${name}: `}${inLines(item, depth + 1)}`);
  return `${node.open}\n${lines.join(",\n")}\n${"  ".repeat(depth)}${node.close}`;
}

function inOneLine(node) {
  if (typeof node === "string") return node;
  if (!node.items.length) return `${node.open}${node.close}`;
  const inside = node.items.map(([name, item]) => `${name === null ? "" : `${name}: `}${inOneLine(item)}`).join(", ");
  return node.open === "{" ? `{ ${inside} }` : `[${inside}]`;
}

/** The parts of a text of JSON: names, texts and the rest each in its colour. */
export function coloured(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(TOKEN)) {
    parts.push(text.slice(from, match.index));
    const [all, quoted, colon] = match;
    if (quoted && colon !== undefined) parts.push(h("span", { class: "json-name" }, quoted), colon);
    else parts.push(h("span", { class: quoted ? "json-text" : "json-number" }, all));
    from = match.index + all.length;
  }
  parts.push(text.slice(from));
  return parts;
}
