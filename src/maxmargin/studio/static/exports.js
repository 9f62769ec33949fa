// @ts-check
// What can be taken away: PNG, SVG, CSV, Python code and a link.

import { make } from "./draw.js";

/** Return a menu with everything that can be taken away. */
export function makeExportMenu(studio) {
  return make("div", { class: "export" });
}
