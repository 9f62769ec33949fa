// @ts-check
// The points in the plane of two kernel principal components.

import { SHAPES, make, makeSvg, short, ticks } from "./draw.js";

const WIDE = 300;
const HIGH = 220;
const INSET = { left: 34, right: 10, top: 10, bottom: 34 };

export class ProjectionView {
  constructor(studio) {
    this.studio = studio;
    this.svg = makeSvg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img" });
    this.element = make("figure", { class: "projection", hidden: true }, make("figcaption", { text: "The points in the first two components" }), this.svg);
  }

  /** Draw the scores of the points, or nothing if there are none. */
  show(projection) {
    this.element.hidden = !projection?.x?.length;
    if (this.element.hidden) {
      this.svg.replaceChildren();
      return;
    }
    const { x, y, names } = projection;
    const { points } = this.studio.store.state;
    const across = makeScoreScale(x, INSET.left, WIDE - INSET.right);
    const up = makeScoreScale(y, HIGH - INSET.bottom, INSET.top);
    this.svg.setAttribute("aria-label", `${x.length} points by ${names.join(" and ")}`);
    const marks = x.map((_, k) => {
      const label = points[k]?.[2] ?? 0;
      return makeSvg("path", { d: SHAPES[label], class: `point c${label}`, transform: `translate(${across.pixel(x[k]).toFixed(1)} ${up.pixel(y[k]).toFixed(1)}) scale(0.7)`, "data-row": k });
    });
    this.svg.replaceChildren(this.drawAxes(across, up, names), makeSvg("g", {}, ...marks));
  }

  drawAxes(across, up, names) {
    const bottom = HIGH - INSET.bottom;
    const right = WIDE - INSET.right;
    const middle = (INSET.top + bottom) / 2;
    const group = makeSvg("g", { class: "axes" });
    for (const value of across.ticks) {
      const at = across.pixel(value);
      group.append(makeSvg("line", { x1: at, x2: at, y1: INSET.top, y2: bottom }), makeSvg("text", { x: at, y: bottom + 13, "text-anchor": "middle", text: short(value, 3) }));
    }
    for (const value of up.ticks) {
      const at = up.pixel(value);
      group.append(makeSvg("line", { x1: INSET.left, x2: right, y1: at, y2: at }), makeSvg("text", { x: INSET.left - 4, y: at + 4, "text-anchor": "end", text: short(value, 3) }));
    }
    group.append(
      makeSvg("path", { class: "edge", d: `M${INSET.left},${INSET.top}V${bottom}H${right}` }),
      makeSvg("text", { class: "name", x: (INSET.left + right) / 2, y: HIGH - 5, "text-anchor": "middle", text: names[0] }),
      makeSvg("text", { class: "name", transform: `translate(9 ${middle}) rotate(-90)`, "text-anchor": "middle", text: names[1] }),
    );
    return group;
  }
}

/** Return a scale from numbers to pixels with some space at both ends, and round numbers on it. */
function makeScoreScale(values, from, to) {
  const least = values.reduce((a, b) => Math.min(a, b), Infinity);
  const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const more = 0.06 * (most - least) || 0.5;
  const [low, high] = [least - more, most + more];
  return {
    ticks: ticks(low, high, 4).found,
    pixel: (value) => from + ((value - low) / (high - low)) * (to - from),
  };
}
