// @ts-check
// The panel of a lesson: text, questions and tasks.

import { make } from "./draw.js";

export class LessonPanel {
  constructor(studio) {
    this.studio = studio;
    this.element = make("aside", { class: "lesson", "aria-label": "Lesson", hidden: true });
  }

  /** Called after each change of the state. */
  update(state, before) {}
}
