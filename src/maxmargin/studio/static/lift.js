// @ts-check
// Points lifted into three dimensions, turned by the mouse.
//
// Python says where the points, the surface and the separating plane are; here they are turned and
// projected. One plane needs no depth buffer: what is behind the plane is drawn first, from far to
// near, then the plane, then what is before it.

import { SHAPES, make, makeSvg } from "./draw.js";

const LIFTS = {
  circle: "Points lifted onto a paraboloid: the height is the squared distance from the centre",
  gaussian: "Points lifted onto a bell: the height is a Gaussian of the distance from the centre",
};
const START = { turn: -0.62, tilt: 0.42, zoom: 1 }; // angles in radians
const FLAT = { turn: 0, tilt: Math.PI / 2 - 1e-3 }; // as the plot is seen
const RISE = 1100; // milliseconds in which the points rise
const HEIGHT = 0.62; // of the box, relative to its width
const EYE = 4.6; // distance of the eye, relative to half the width of the box
const TURN = 0.1; // radians of one key
const MESH = 22; // lines of the surface in each direction, at most

export class LiftView {
  constructor(studio) {
    this.studio = studio;
    this.reply = null;
    this.camera = { ...START };
    this.risen = 1;
    this.pointers = new Map();
    this.shapes = SHAPES.map((shape) => new Path2D(shape));
    this.build();
  }

  build() {
    this.canvas = make("canvas", {
      tabindex: "0",
      role: "img",
      title: "Drag or press the arrow keys to turn, plus and minus to zoom",
      onpointerdown: (event) => this.press(event),
      onpointermove: (event) => this.drag(event),
      onpointerup: (event) => this.pointers.delete(event.pointerId),
      onpointercancel: (event) => this.pointers.delete(event.pointerId),
      ondblclick: () => this.look(START),
      onkeydown: (event) => this.key(event),
    });
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.box = make("div", { class: "lift-box" }, this.canvas);
    this.facts = make("dl", { class: "facts" });
    this.message = make("p", { class: "message", role: "status" });
    this.note = make("p", { class: "help" });
    this.element = make("div", { class: "lift", hidden: true }, this.box, make("div", { class: "lift-text" }, this.message, this.facts, this.note));
    // What the plane cuts out, in the flat plot: in data coordinates, as the lines there.
    this.cut = makeSvg("g", { class: "lift-cut" });
    this.observer = new ResizeObserver(() => this.resize());
    this.themes = new MutationObserver(() => this.paint());
  }

  /** Called after each change of the state. */
  update(state, before) {
    const { lift } = state;
    if (lift && this.element.hidden) this.begin();
    if (!lift && !this.element.hidden) this.close();
    if (!lift) return;
    this.studio.plots[0].data.append(this.cut); // the plot may be a new one
    if (lift !== this.kind) this.forget(lift);
    if (state.points === before.points && state.view === before.view && state.panes === before.panes && this.reply) return;
    this.ask();
  }

  begin() {
    this.element.hidden = false;
    this.observer.observe(this.box);
    this.themes.observe(this.studio.root, { attributes: true, attributeFilter: ["data-theme"] });
  }

  close() {
    this.element.hidden = true;
    this.observer.disconnect();
    this.themes.disconnect();
    cancelAnimationFrame(this.painting ?? 0);
    this.painting = null;
    this.forget(null);
    this.cut.remove();
  }

  /** Begin another kind of lift. */
  forget(kind) {
    this.kind = kind;
    this.reply = null;
    this.facts.replaceChildren();
    this.message.textContent = "";
    this.note.textContent = "";
    this.cut.replaceChildren();
  }

  ask() {
    const { kind } = this;
    const request = { type: "lift", ...this.studio.scene(0), kind };
    this.studio.link.latest(
      "lift",
      request,
      (reply) => this.receive(kind, reply),
      (error) => this.receive(kind, { message: error.message, failed: true, x: [], y: [], z: [], label: [], facts: [] }),
    );
  }

  receive(kind, reply) {
    if (kind !== this.kind) return;
    const first = this.reply === null;
    this.reply = reply;
    this.message.textContent = reply.message ?? "";
    this.message.classList.toggle("error", Boolean(reply.failed));
    this.facts.replaceChildren(...(reply.facts ?? []).map(([name, value]) => make("div", {}, make("dt", { text: name }), make("dd", { text: value }))));
    const facts = (reply.facts ?? []).map(([name, value]) => `${name} ${value}`).join(", ");
    this.canvas.setAttribute("aria-label", [LIFTS[kind], facts, reply.message].filter(Boolean).join(". "));
    this.drawCut();
    this.element.dataset.seq = reply.seq;
    if (first && reply.box) this.rise();
    else this.paint();
  }

  // ------------------------------------------------------------------------------- in the plot

  /** Draw in the flat plot where the plane cuts the surface. */
  drawCut() {
    const { circle, plane, surface } = this.reply;
    let shape = null;
    if (circle) shape = makeSvg("circle", { cx: circle.center[0], cy: circle.center[1], r: circle.radius });
    else if (plane && surface) shape = makeSvg("path", { d: chain(cutSurface(surface, plane)).map((line) => `M${line.map(([x, y]) => `${x},${y}`).join("L")}`).join("") });
    this.cut.replaceChildren(...(shape ? [shape] : []));
    this.note.textContent = shape ? "Dotted in the plot: where the plane cuts the surface, seen from above." : "";
  }

  // -------------------------------------------------------------------------- turning and zooming

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    this.risen = 1;
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const place = [event.clientX, event.clientY];
    this.pointers.set(event.pointerId, place);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const distance = (a) => Math.max(20, Math.hypot(a[0] - other[0], a[1] - other[1]));
      this.zoom(distance(place) / distance(before));
    } else this.turn((place[0] - before[0]) * 0.009, (place[1] - before[1]) * 0.009);
  }

  turn(right, down) {
    const { camera } = this;
    this.look({ ...camera, turn: camera.turn + right, tilt: Math.max(-0.25, Math.min(FLAT.tilt, camera.tilt + down)) });
  }

  zoom(factor) {
    this.look({ ...this.camera, zoom: Math.max(0.4, Math.min(4, this.camera.zoom * factor)) });
  }

  look(camera) {
    this.risen = 1;
    this.camera = { ...camera };
    this.element.dataset.turn = camera.turn.toFixed(3);
    this.paint();
  }

  wheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 400));
  }

  key(event) {
    const turns = { ArrowLeft: [-TURN, 0], ArrowRight: [TURN, 0], ArrowUp: [0, -TURN], ArrowDown: [0, TURN] };
    if (turns[event.key]) this.turn(...turns[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.15);
    else if (event.key === "-") this.zoom(1 / 1.15);
    else if (event.key === "Home") this.look(START);
    else return;
    event.preventDefault();
  }

  /** Begin with the plot as it is, seen from above, and let the points rise. */
  rise() {
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.paint();
      return;
    }
    this.risen = 0;
    let start = 0;
    const step = (now) => {
      start ||= now;
      if (this.risen >= 1) return; // the user took over
      this.risen = Math.min(1, (now - start) / RISE);
      this.painting = this.risen < 1 ? requestAnimationFrame(step) : null;
      this.paintNow();
    };
    cancelAnimationFrame(this.painting ?? 0);
    this.painting = requestAnimationFrame(step);
  }

  // --------------------------------------------------------------------------------- painting

  resize() {
    const { clientWidth, clientHeight } = this.box;
    if (!clientWidth || !clientHeight) return;
    const ratio = window.devicePixelRatio || 1;
    this.size = [clientWidth, clientHeight];
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.ratio = ratio;
    this.paintNow(); // at once: a canvas that was resized is empty
  }

  paint() {
    this.painting ??= requestAnimationFrame(() => {
      this.painting = null;
      this.paintNow();
    });
  }

  paintNow() {
    const context = this.canvas.getContext("2d");
    if (!this.size || !context) return;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, ...this.size);
    if (!this.reply?.box) return;
    const style = getComputedStyle(this.studio.root);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.colours = /** @type {Object<string, any>} */ ({
      classes: [0, 1, 2, 3, 4].map((label) => colour(`--c${label}`)),
      ...Object.fromEntries(["grid", "axis", "quiet", "text", "accent", "boundary", "plot"].map((name) => [name, colour(`--${name}`)])),
    });
    const scene = new LiftScene(this.reply, this.camera, this.size, ease(this.risen));
    this.paintBox(context, scene);
    const { behind, before } = scene.sort([...this.stems(scene), ...this.mesh(scene), ...this.dots(scene)]);
    for (const part of behind) part.paint(context);
    this.paintPlane(context, scene);
    for (const part of before) part.paint(context);
  }

  /** Paint the floor with its grid, the edges behind, and the names of the axes. */
  paintBox(context, scene) {
    const { lo, hi } = scene.box;
    const { colours } = this;
    context.lineWidth = 1;
    context.strokeStyle = colours.grid;
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const [x, y] = [lo[0] + share * (hi[0] - lo[0]), lo[1] + share * (hi[1] - lo[1])];
      strokeLine(context, scene.project([x, lo[1], lo[2]]), scene.project([x, hi[1], lo[2]]));
      strokeLine(context, scene.project([lo[0], y, lo[2]]), scene.project([hi[0], y, lo[2]]));
    }
    const corners = [lo, [hi[0], lo[1]], hi, [lo[0], hi[1]]].map(([x, y]) => [x, y]);
    const far = corners.map(([x, y]) => scene.project([x, y, lo[2]]).depth);
    const nearest = far.indexOf(Math.min(...far));
    context.strokeStyle = colours.axis;
    corners.forEach(([x, y], k) => {
      const [nextX, nextY] = corners[(k + 1) % 4];
      strokeLine(context, scene.project([x, y, lo[2]]), scene.project([nextX, nextY, lo[2]]));
      if (k === nearest) return; // the edge before the points would hide them
      strokeLine(context, scene.project([x, y, lo[2]]), scene.project([x, y, hi[2]]));
      if ((k + 1) % 4 !== nearest) strokeLine(context, scene.project([x, y, hi[2]]), scene.project([nextX, nextY, hi[2]]));
    });
    this.nameAxes(context, scene, corners, nearest);
  }

  nameAxes(context, scene, corners, nearest) {
    const { lo, hi } = scene.box;
    const front = corners[nearest];
    const middle = [(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2];
    const outside = (value, mid) => mid + (value - mid) * 1.16;
    const side = corners[(nearest + 1) % 4];
    const other = corners[(nearest + 3) % 4];
    const left = scene.project([...side, lo[2]]).x < scene.project([...other, lo[2]]).x ? side : other;
    context.font = "13px system-ui, sans-serif";
    context.fillStyle = this.colours.quiet;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const names = [
      ["x", [middle[0], outside(front[1], middle[1]), lo[2]]],
      ["y", [outside(front[0], middle[0]), middle[1], lo[2]]],
      ["z", [outside(left[0], middle[0]), outside(left[1], middle[1]), (lo[2] + hi[2]) / 2]],
    ];
    for (const [name, place] of names) {
      const { x, y } = scene.project(place);
      context.fillText(name, x, y);
    }
  }

  /** Return thin lines from the floor to the points, cut where they go through the plane. */
  stems(scene) {
    const { x, y, z, label } = this.reply;
    return x.flatMap((_, k) => {
      const [foot, top] = [[x[k], y[k], scene.box.lo[2]], [x[k], y[k], z[k]]];
      return scene.cut(foot, top).map(([a, b]) => {
        const [from, to] = [scene.project(a), scene.project(b)];
        const paint = (context) => {
          context.globalAlpha = 0.35;
          context.lineWidth = 1;
          context.strokeStyle = this.colours.classes[label[k]];
          strokeLine(context, from, to);
          context.globalAlpha = 1;
        };
        return { at: between(a, b), depth: (from.depth + to.depth) / 2, paint };
      });
    });
  }

  /** Return the lines of the surface, piece by piece. */
  mesh(scene) {
    const { surface } = this.reply;
    if (!surface) return [];
    const { cols, rows, view, z } = surface;
    const place = (i, j) => [view[0] + ((view[1] - view[0]) * i) / (cols - 1), view[2] + ((view[3] - view[2]) * j) / (rows - 1), z[j * cols + i]];
    // A paraboloid rises without end, so it is cut at the top of the box; the top of a bell is shown.
    const inside = ([, , height]) => this.kind === "gaussian" || height <= scene.box.hi[2];
    const found = [];
    const add = (a, b) => {
      if (!inside(a) || !inside(b)) return;
      for (const [from, to] of scene.cut(a, b)) {
        const [p, q] = [scene.project(from), scene.project(to)];
        const paint = (context) => {
          context.globalAlpha = 0.8;
          context.lineWidth = 0.8;
          context.strokeStyle = this.colours.axis;
          strokeLine(context, p, q);
          context.globalAlpha = 1;
        };
        found.push({ at: between(from, to), depth: (p.depth + q.depth) / 2, paint });
      }
    };
    const [across, up] = [Math.max(1, Math.round((cols - 1) / MESH)), Math.max(1, Math.round((rows - 1) / MESH))];
    for (let j = 0; j < rows; j += 1) {
      for (let i = 0; i < cols; i += 1) {
        if (i + 1 < cols && j % up === 0) add(place(i, j), place(i + 1, j));
        if (j + 1 < rows && i % across === 0) add(place(i, j), place(i, j + 1));
      }
    }
    return found;
  }

  dots(scene) {
    const { x, y, z, label } = this.reply;
    return x.map((_, k) => {
      const at = [x[k], y[k], z[k]];
      const { x: px, y: py, depth, size } = scene.project(at);
      const paint = (context) => {
        context.save();
        context.translate(px, py);
        context.scale(size, size);
        context.fillStyle = this.colours.classes[label[k]];
        context.strokeStyle = this.colours.plot;
        context.lineWidth = 0.8;
        context.fill(this.shapes[label[k]]);
        context.stroke(this.shapes[label[k]]);
        context.restore();
      };
      return { at, depth: depth - 1e-3, paint }; // a point stands before the line that ends in it
    });
  }

  /** Paint the plane, translucent, and the curve in which it cuts the surface. */
  paintPlane(context, scene) {
    const { polygon, plane, surface } = this.reply;
    if (!plane || !polygon?.length) return;
    context.beginPath();
    polygon.forEach((corner, k) => {
      const { x, y } = scene.project(corner);
      if (k) context.lineTo(x, y);
      else context.moveTo(x, y);
    });
    context.closePath();
    context.globalAlpha = 0.22;
    context.fillStyle = this.colours.accent;
    context.fill();
    context.globalAlpha = 0.9;
    context.lineWidth = 1.4;
    context.strokeStyle = this.colours.accent;
    context.stroke();
    context.globalAlpha = 1;
    if (!surface) return;
    const cuts = cutSurface(surface, plane);
    context.strokeStyle = this.colours.boundary;
    context.lineWidth = 2.4;
    context.lineCap = "round";
    for (const [a, b] of cuts) if (Math.max(a[2], b[2]) <= scene.box.hi[2]) strokeLine(context, scene.project(a), scene.project(b));
    context.lineCap = "butt";
  }
}

/** Where things are on the canvas, for one position of the camera. */
class LiftScene {
  constructor(reply, camera, size, risen) {
    const [lo, hi] = reply.box;
    this.box = { lo, hi };
    this.middle = [0, 1, 2].map((k) => (lo[k] + hi[k]) / 2);
    this.half = Math.max(hi[0] - lo[0], hi[1] - lo[1]) / 2 || 1; // x and y have the same scale
    this.tall = (hi[2] - lo[2]) / 2 || 1;
    this.rise = HEIGHT * risen;
    this.turn = FLAT.turn + (camera.turn - FLAT.turn) * risen;
    this.tilt = FLAT.tilt + (camera.tilt - FLAT.tilt) * risen;
    this.size = size;
    this.scale = Math.min(size[0] * 0.31, size[1] * 0.36) * camera.zoom;
    this.plane = reply.plane;
    this.eyeSide = this.plane ? this.side(this.eye()) : 0;
  }

  /** Return the place of a point on the canvas, its depth, and how large things are there. */
  project([x, y, z]) {
    const across = (x - this.middle[0]) / this.half;
    const along = (y - this.middle[1]) / this.half;
    const up = ((z - this.middle[2]) / this.tall) * this.rise;
    const [sin, cos] = [Math.sin(this.turn), Math.cos(this.turn)];
    const right = across * cos - along * sin;
    const away = across * sin + along * cos;
    const [tiltSin, tiltCos] = [Math.sin(this.tilt), Math.cos(this.tilt)];
    const depth = away * tiltCos - up * tiltSin;
    const high = away * tiltSin + up * tiltCos;
    const size = EYE / (EYE + depth);
    return { x: this.size[0] / 2 + right * size * this.scale, y: this.size[1] * 0.44 - high * size * this.scale, depth, size };
  }

  /** Where the eye is, in data coordinates. @returns {[number, number, number]} */
  eye() {
    const [sin, cos] = [Math.sin(this.turn), Math.cos(this.turn)];
    const away = -EYE * Math.cos(this.tilt);
    const up = EYE * Math.sin(this.tilt);
    return [this.middle[0] + away * sin * this.half, this.middle[1] + away * cos * this.half, this.middle[2] + (up / Math.max(this.rise, 1e-6)) * this.tall];
  }

  side([x, y, z]) {
    const { w, b } = this.plane;
    return w[0] * x + w[1] * y + w[2] * z + b;
  }

  /** Return a segment, or its two parts if it goes through the plane. */
  cut(a, b) {
    if (!this.plane) return [[a, b]];
    const [from, to] = [this.side(a), this.side(b)];
    if (from * to >= 0) return [[a, b]];
    const through = mixPlaces(a, b, from / (from - to));
    return [[a, through], [through, b]];
  }

  /** Return what is behind the plane and what is before it, each from far to near. */
  sort(parts) {
    const order = parts.sort((a, b) => b.depth - a.depth);
    if (!this.plane) return { behind: order, before: [] };
    const near = (part) => this.side(part.at) * this.eyeSide >= 0;
    return { behind: order.filter((part) => !near(part)), before: order.filter(near) };
  }
}

function ease(share) {
  return share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2;
}

function mixPlaces(a, b, share) {
  return a.map((value, k) => value + (b[k] - value) * share);
}

function between(a, b) {
  return mixPlaces(a, b, 0.5);
}

function strokeLine(context, from, to) {
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.lineTo(to.x, to.y);
  context.stroke();
}

/** Return the segments in which a plane cuts a surface, two triangles for each of its cells. */
function cutSurface({ cols, rows, view, z }, { w, b }) {
  const place = (i, j) => [view[0] + ((view[1] - view[0]) * i) / (cols - 1), view[2] + ((view[3] - view[2]) * j) / (rows - 1), z[j * cols + i]];
  const side = ([x, y, height]) => w[0] * x + w[1] * y + w[2] * height + b;
  const found = [];
  const cutTriangle = (corners) => {
    const sides = corners.map(side);
    const ends = [];
    for (const [k, j] of [[0, 1], [1, 2], [2, 0]]) {
      if (sides[k] < 0 !== sides[j] < 0) ends.push(mixPlaces(corners[k], corners[j], sides[k] / (sides[k] - sides[j])));
    }
    if (ends.length === 2) found.push(ends);
  };
  for (let j = 0; j + 1 < rows; j += 1) {
    for (let i = 0; i + 1 < cols; i += 1) {
      const [a, c, d, e] = [place(i, j), place(i + 1, j), place(i, j + 1), place(i + 1, j + 1)];
      cutTriangle([a, c, e]);
      cutTriangle([a, e, d]);
    }
  }
  return found;
}

/** Return segments joined at their ends into lines. */
function chain(segments) {
  const key = ([x, y]) => `${x.toPrecision(9)},${y.toPrecision(9)}`;
  const at = new Map();
  for (const segment of segments) for (const end of segment) at.set(key(end), [...(at.get(key(end)) ?? []), segment]);
  const used = new Set();
  const walk = (place) => {
    const line = [];
    let next = at.get(key(place)).find((segment) => !used.has(segment));
    while (next) {
      used.add(next);
      place = key(next[0]) === key(place) ? next[1] : next[0];
      line.push(place);
      next = at.get(key(place)).find((segment) => !used.has(segment));
    }
    return line;
  };
  const lines = [];
  for (const segment of segments) {
    if (used.has(segment)) continue;
    const forth = walk(segment[0]);
    lines.push([...walk(segment[0]).reverse(), segment[0], ...forth]);
  }
  return lines;
}
