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

/** Return the state that a fragment holds, or null if it holds none that can be read. */
export async function fromFragment(fragment) {
  const found = /(?:^#?|&)s=([\w-]+)/.exec(fragment);
  if (!found) return null;
  try {
    const bytes = atob(found[1].replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(bytes, (c) => c.charCodeAt(0));
    const text = new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), packed));
    return readState(JSON.parse(text));
  } catch {
    return null;
  }
}

async function through(stream, bytes) {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

/** Return an object as a state: parts that are missing or malformed are those of the empty state. */
export function readState(given) {
  if (typeof given !== "object" || given === null) return null;
  const number = (value) => typeof value === "number" && Number.isFinite(value);
  const points = (Array.isArray(given.points) ? given.points : []).filter(
    (p) => Array.isArray(p) && p.length === 3 && p.every(number) && p[2] >= 0 && p[2] <= 4,
  );
  const view =
    Array.isArray(given.view) && given.view.length === 4 && given.view.every(number) &&
    given.view[0] < given.view[1] && given.view[2] < given.view[3]
      ? given.view
      : EMPTY.view;
  const panes = (Array.isArray(given.panes) ? given.panes : [])
    .filter((pane) => pane && typeof pane.model === "string")
    .slice(0, 2)
    .map((pane) => ({
      model: pane.model,
      parameters: Object.fromEntries(
        Object.entries(pane.parameters ?? {}).filter(([, value]) => number(value)),
      ),
      kernel: typeof pane.kernel === "string" ? pane.kernel : "",
    }));
  const names = Array.isArray(given.names) ? given.names.slice(0, 5).map(String) : [];
  return {
    points: points.map(([x, y, label]) => [x, y, Math.trunc(label)]),
    names: [...names, ...EMPTY.names.slice(names.length)],
    view,
    panes: panes.length ? panes : EMPTY.panes,
    show: { ...EMPTY.show, ...given.show },
    lift: ["circle", "gaussian"].includes(given.lift) ? given.lift : null,
  };
}
