// Elements. All text is set as text: names of topics and records are of others, and may be hostile.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element.
 *
 * Attributes: `onclick` and the like are listeners, `style` is an object of properties, `data` of
 * data attributes; true is an attribute without a value, and null, undefined and false are none.
 * Children: elements, texts, numbers, lists of these; null and false are none.
 */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element; the arguments are as for `h`. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") {
      for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set);
    } else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces all that is in an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Says a sentence to screen readers. */
export function say(sentence) {
  document.getElementById("said").textContent = sentence;
}

/** A number that no other element of the page has in its id. */
export const nextId = (() => {
  let last = 0;
  return (word) => `${word}-${++last}`;
})();
