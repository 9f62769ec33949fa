// @ts-check
// Points lifted into three dimensions, turned by the mouse.

import { make } from "./draw.js";

export class LiftView {
  constructor(studio) {
    this.studio = studio;
    this.element = make("div", { class: "lift", hidden: true });
  }

  /** Called after each change of the state. */
  update(state, before) {}
}
