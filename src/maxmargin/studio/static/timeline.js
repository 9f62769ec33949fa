// @ts-check
// Step, play and rewind: the moments of a perceptron, of a solver, or along C.

import { make } from "./draw.js";

export class Timeline {
  constructor(studio) {
    this.studio = studio;
    this.element = make("section", { class: "timeline", "aria-label": "Step by step", hidden: true });
  }

  /** Called after each change of the state. */
  update(state, before) {}
}
