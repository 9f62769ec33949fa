// @ts-check
// Elements, shapes and colours.

const SVG = "http://www.w3.org/2000/svg";

/** Return a new HTML element with properties (class, text, on…, aria-…) and children. */
export function make(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** Return a new SVG element with attributes and children. */
export function makeSvg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Return a button with a label that is read aloud and shown as a tooltip. */
export function button(text, label, action, properties = {}) {
  return make("button", { type: "button", text, "aria-label": label, title: label, onclick: action, ...properties });
}

// Colours of the classes that colour-blind people can tell apart (Okabe and Ito); each has a shape.
export const COLOURS = [
  [0, 114, 178],
  [213, 94, 0],
  [0, 158, 115],
  [204, 121, 167],
  [230, 159, 0],
];
// Paths with relative commands, so that they can follow a place: `M${x},${y}${SHAPES[k]}`.
export const SHAPES = [
  "m-5,0a5,5 0 1 0 10,0a5,5 0 1 0 -10,0z",
  "m-4.4,-4.4h8.8v8.8h-8.8z",
  "m0,-5.6l5.2,9.8h-10.4z",
  "m0,-6l6,6l-6,6l-6,-6z",
  "m-1.9,-5.4h3.8v3.5h3.5v3.8h-3.5v3.5h-3.8v-3.5h-3.5v-3.8h3.5z",
];
export const KINDS = ["", "margin", "inside", "wrong side", "outside", "mistake"];

/** Return numbers at round distances that cover a range, about so many. */
export function ticks(low, high, about) {
  const rough = (high - low) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) found.push(k * step);
  return { step, found };
}

/** Return a number as text with few digits. */
export function short(value, digits = 4) {
  if (!Number.isFinite(value)) return String(value);
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5)) return value.toExponential(2);
  return String(Number(value.toPrecision(digits)));
}
