// @ts-check
// The state of the page, its history, and its form in the URL.
//
// A state is never changed in place: a change makes a new object that shares what stayed the same,
// so that undo is a matter of keeping the old ones, and `a.points === b.points` tells what changed.
//
//   points  [[x, y, label], …]        labels are 0 … 4
//   names   ["A", …]                  names of the classes, or of those of a table
//   view    [left, right, bottom, top]  the least that is seen; a plot shows more if it is wider
//   panes   [{model, parameters, kernel}, …]  one model, or two side by side
//   show    {field, margins, slack, separability}
//   lift    null, "circle" or "gaussian"

export const VERSION = 1;
const MOST_STATES = 200;
const MOST_POINTS = 5000;
const FARTHEST = 1e6; // no coordinate or parameter is larger
const LONGEST_KERNEL = 200; // characters
const LONGEST_NAME = 60;
const NEEDED = "points have two numbers of at most a million and a class, and there are at most 5,000 points.";
const MOST_BYTES = 2_000_000; // of a state as text: a few bytes can be unpacked to gigabytes

/** @typedef {[number, number, number]} Point */
/** @typedef {{model: string, parameters: Object<string, number>, kernel: string}} Pane */
/**
 * @typedef {{points: Point[], names: string[], view: number[], panes: Pane[],
 *   show: {field: boolean, margins: boolean, slack: boolean, separability: boolean},
 *   lift: string | null}} State
 */

/** @type {State} */
export const EMPTY = {
  points: [],
  names: ["A", "B", "C", "D", "E"],
  view: [-3, 3, -2, 2],
  panes: [{ model: "SVC", parameters: {}, kernel: "" }],
  show: { field: true, margins: true, slack: true, separability: false },
  lift: null,
};

export class Store {
  /** @param {State} state */
  constructor(state) {
    this.state = state;
    this.past = [];
    this.future = [];
    this.gesture = "";
    this.listeners = [];
  }

  /** Call a function with the new state and the one before, after each change. */
  subscribe(listener) {
    this.listeners.push(listener);
  }

  /**
   * Replace parts of the state. Changes of one gesture, such as a drag, are undone together.
   * @param {Partial<State>} patch
   */
  change(patch, gesture = "") {
    const before = this.state;
    if (!gesture || gesture !== this.gesture) {
      this.past.push(before);
      if (this.past.length > MOST_STATES) this.past.shift();
      this.future = [];
    }
    this.gesture = gesture;
    this.state = { ...before, ...patch };
    this.tell(before);
  }

  /** Replace parts of the state without a place in the history: what is seen is nothing to undo. */
  replace(patch) {
    const before = this.state;
    this.state = { ...before, ...patch };
    this.tell(before);
  }

  /** Replace parts of one pane. */
  changePane(pane, patch, gesture = "") {
    const panes = this.state.panes.map((old, k) => (k === pane ? { ...old, ...patch } : old));
    this.change({ panes }, gesture);
  }

  undo() {
    if (!this.past.length) return;
    const before = this.state;
    this.future.push(before);
    this.state = this.past.pop();
    this.gesture = "";
    this.tell(before);
  }

  redo() {
    if (!this.future.length) return;
    const before = this.state;
    this.past.push(before);
    this.state = this.future.pop();
    this.gesture = "";
    this.tell(before);
  }

  tell(before) {
    for (const listener of this.listeners) listener(this.state, before);
  }
}

// ------------------------------------------------------------------------- a state as a fragment

/** Return the state as text for the fragment of a URL. */
export async function toFragment(/** @type {State} */ state) {
  const text = JSON.stringify({ version: VERSION, ...state });
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  let bytes = "";
  for (let k = 0; k < packed.length; k += 4096) {
    bytes += String.fromCharCode(...packed.subarray(k, k + 4096));
  }
  return "s=" + btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * Return the state that a fragment holds, and a message if not all of it could be read; null if the
 * fragment holds no state.
 * @returns {Promise<{state: State | null, message: string} | null>}
 */
export async function fromFragment(fragment) {
  const found = /(?:^#?|[&#])s=([^&]*)/.exec(fragment);
  if (!found) return null;
  const failed = (why) => ({ state: null, message: `The link cannot be read: ${why}` });
  let given = null;
  try {
    const bytes = atob(found[1].replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(bytes, (c) => c.charCodeAt(0));
    const unpacked = await through(new DecompressionStream("deflate-raw"), packed);
    given = JSON.parse(new TextDecoder().decode(unpacked));
  } catch {
    return failed("a part of it is missing or was changed. Copy it again, as a whole.");
  }
  if (given?.version > VERSION) return failed("it comes from a newer maxmargin. Update this one to open it.");
  const state = readState(given);
  if (!state) return failed("there is no picture in it.");
  const lost = (Array.isArray(given.points) ? given.points.length : 0) - state.points.length;
  const points = lost === 1 ? "One point of the link is" : `${lost} points of the link are`;
  return { state, message: lost ? `${points} left out: ${NEEDED}` : "" };
}

/** Return bytes that went through a stream, but no more than a state can have. */
async function through(stream, bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const chunks = [];
  let length = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    chunks.push(read.value);
    length += read.value.length;
    if (length > MOST_BYTES) {
      await reader.cancel();
      throw new Error("too long");
    }
  }
  const all = new Uint8Array(length);
  let place = 0;
  for (const chunk of chunks) {
    all.set(chunk, place);
    place += chunk.length;
  }
  return all;
}

// ------------------------------------------------------------------- a state from somewhere else

const isNumber = (value) => typeof value === "number" && Math.abs(value) <= FARTHEST;

/** Return an object as a state: parts that are missing or malformed are those of the empty state. */
export function readState(given) {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return null;
  const panes = (Array.isArray(given.panes) ? given.panes : []).slice(0, 2).map(readPane).filter((pane) => pane);
  return {
    points: (Array.isArray(given.points) ? given.points : []).filter(isPoint).slice(0, MOST_POINTS).map(([x, y, label]) => [x, y, label]),
    names: EMPTY.names.map((name, k) => readName(Array.isArray(given.names) ? given.names[k] : "") || name),
    view: isView(given.view) ? [...given.view] : EMPTY.view,
    panes: panes.length ? panes : EMPTY.panes,
    show: /** @type {any} */ (Object.fromEntries)(
      Object.entries(EMPTY.show).map(([name, shown]) => [name, typeof given.show?.[name] === "boolean" ? given.show[name] : shown]),
    ),
    lift: ["circle", "gaussian"].includes(given.lift) ? given.lift : null,
  };
}

function isPoint(given) {
  return Array.isArray(given) && given.length === 3 && given.every(isNumber) && [0, 1, 2, 3, 4].includes(given[2]);
}

function isView(given) {
  if (!Array.isArray(given) || given.length !== 4 || !given.every(isNumber)) return false;
  const [left, right, bottom, top] = given;
  // Sides that are tiny beside the coordinates would be lost in rounding.
  const least = 1e-9 * Math.max(1, ...given.map(Math.abs));
  return right - left > least && top - bottom > least;
}

function readName(given) {
  return typeof given === "string" || typeof given === "number" ? String(given).trim().slice(0, LONGEST_NAME) : "";
}

function readPane(given) {
  if (typeof given?.model !== "string") return null;
  const { model, kernel } = given;
  const parameters = typeof given.parameters === "object" ? Object.entries(given.parameters ?? {}) : [];
  return {
    model,
    parameters: Object.fromEntries(parameters.filter(([, value]) => isNumber(value))),
    kernel: typeof kernel === "string" && kernel.length <= LONGEST_KERNEL ? kernel : "",
  };
}

/** Return a state without models and parameters that Python does not have, and sliders in range. */
export function keepKnown(state, { models, sliders }) {
  const place = (name, value) => {
    const { low, high, whole } = sliders[name];
    const inside = Math.min(high, Math.max(low, value));
    return [name, whole ? Math.round(inside) : inside];
  };
  const panes = state.panes
    .filter((pane) => Object.hasOwn(models, pane.model))
    .map((pane) => ({
      ...pane,
      parameters: Object.fromEntries(
        Object.entries(pane.parameters).filter(([name]) => Object.hasOwn(sliders, name)).map(([name, value]) => place(name, value)),
      ),
    }));
  return { ...state, panes: panes.length ? panes : EMPTY.panes };
}
