// @ts-check
// The plot: points that can be drawn and dragged, and what Python says about them.
//
// Lines stand in a group whose transform maps data to pixels, so that their coordinates in the
// document are those of the data. Points keep their size when the view changes, so each is placed in
// pixels. The background is a small canvas with one pixel for each value of the field, stretched.

import { COLOURS, KINDS, SHAPES, make, makeSvg, short, ticks } from "./draw.js";

const REACH = 11; // pixels from a point within which a pointer takes hold of it
const TOUCH_REACH = 20;
const BRUSH = 34; // radius of the spray and of the eraser, in pixels
const SPRAY = 35; // milliseconds between two points of the spray
const SPACING = 9; // pixels between values of the field

export class Plot {
  constructor(studio, pane) {
    this.studio = studio;
    this.pane = pane;
    this.picture = null;
    this.frame = null;
    this.pointers = new Map();
    this.selected = -1;
    this.cursor = null; // where the keyboard would add a point, in data coordinates
    this.items = []; // {shape, ring} of each point
    this.size = [0, 0];
    this.build();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.element);
  }

  build() {
    this.canvas = make("canvas", { class: "field", "aria-hidden": "true" });
    this.grid = makeSvg("g", { class: "grid" });
    this.lines = makeSvg("g", { class: "lines" });
    this.slack = makeSvg("g", { class: "slack" });
    this.witness = makeSvg("g", { class: "witness" });
    this.rings = makeSvg("g", { class: "rings" });
    this.points = makeSvg("g", { class: "points" });
    this.marks = makeSvg("g", { class: "marks" });
    this.data = makeSvg("g", { class: "data" }, this.slack, this.witness, this.lines);
    this.svg = makeSvg(
      "svg",
      {
        class: "scene",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "plot of points",
        "aria-describedby": `${this.studio.id}-keys`,
        onpointerdown: (event) => this.press(event),
        onpointermove: (event) => this.move(event),
        onpointerup: (event) => this.release(event),
        onpointercancel: (event) => this.release(event),
        onpointerleave: () => this.hover(null),
        ondblclick: (event) => this.doubleClick(event),
        oncontextmenu: (event) => this.removeAt(event),
        onkeydown: (event) => this.key(event),
        onblur: () => this.placeCursor(null),
      },
      this.grid,
      this.data,
    );
    // Points in a layer of their own are not painted again whenever a line moves.
    this.top = makeSvg("svg", { class: "top-layer", "aria-hidden": "true" }, this.rings, this.points, this.marks);
    this.svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.hint = make("p", { class: "hint" });
    this.element = make("div", { class: "plot" }, this.canvas, this.svg, this.top, this.hint);
  }

  // ------------------------------------------------------------- data coordinates and pixels

  resize() {
    const { clientWidth, clientHeight } = this.element;
    if (!clientWidth || !clientHeight) return;
    if (clientWidth === this.size[0] && clientHeight === this.size[1]) return;
    this.size = [clientWidth, clientHeight];
    for (const layer of [this.svg, this.top]) layer.setAttribute("viewBox", `0 0 ${clientWidth} ${clientHeight}`);
    this.look();
    this.studio.refit(this.pane);
  }

  /** Take the view of the state, widened to the shape of the plot, and place everything anew. */
  look() {
    const [width, height] = this.size;
    if (!width) return;
    const [left, right, bottom, top] = this.studio.store.state.view;
    this.scale = Math.min(width / (right - left), height / (top - bottom));
    this.center = [(left + right) / 2, (bottom + top) / 2];
    const [cx, cy] = this.center;
    this.data.setAttribute(
      "transform",
      `matrix(${this.scale} 0 0 ${-this.scale} ${width / 2 - cx * this.scale} ${height / 2 + cy * this.scale})`,
    );
    this.drawGrid();
    this.placeField();
    this.update(this.studio.store.state, null);
    this.drawMarks();
  }

  /** Return what is seen: left, right, bottom and top. */
  seen() {
    const [width, height] = this.size;
    const [cx, cy] = this.center;
    const [dx, dy] = [width / this.scale / 2, height / this.scale / 2];
    return [cx - dx, cx + dx, cy - dy, cy + dy];
  }

  /** Return how many values of the field are worth asking for. */
  cells() {
    return this.size.map((side) => Math.max(16, Math.min(128, Math.round(side / SPACING))));
  }

  toPixels(x, y) {
    const [width, height] = this.size;
    return [width / 2 + (x - this.center[0]) * this.scale, height / 2 - (y - this.center[1]) * this.scale];
  }

  /** Return where a pixel is, with as many digits as a pixel is worth. */
  toData(px, py) {
    const [width, height] = this.size;
    const digits = Math.max(0, Math.min(12, Math.ceil(Math.log10(this.scale)) + 1));
    const round = (value) => Number(value.toFixed(digits));
    return [
      round(this.center[0] + (px - width / 2) / this.scale),
      round(this.center[1] - (py - height / 2) / this.scale),
    ];
  }

  place(event) {
    const box = this.svg.getBoundingClientRect();
    return /** @type {[number, number]} */ ([event.clientX - box.left, event.clientY - box.top]);
  }

  // --------------------------------------------------------------------------------- drawing

  drawGrid() {
    const [width, height] = this.size;
    const [left, right, bottom, top] = this.seen();
    const children = [];
    const across = ticks(left, right, width / 90);
    const up = ticks(bottom, top, height / 70);
    for (const x of across.found) {
      const [px] = this.toPixels(x, 0);
      const zero = Math.abs(x) < across.step / 2;
      children.push(makeSvg("line", { x1: px, x2: px, y1: 0, y2: height, class: zero ? "axis" : null }));
      if (px > 30) children.push(makeSvg("text", { x: px + 3, y: height - 5, text: short(x) }));
    }
    for (const y of up.found) {
      const [, py] = this.toPixels(0, y);
      const zero = Math.abs(y) < up.step / 2;
      children.push(makeSvg("line", { x1: 0, x2: width, y1: py, y2: py, class: zero ? "axis" : null }));
      if (py < height - 24 && py > 12) children.push(makeSvg("text", { x: 4, y: py - 4, text: short(y) }));
    }
    this.grid.replaceChildren(...children);
  }

  /** Draw the points of a state; those that are the same objects as before are left alone. */
  update(state, before) {
    if (!this.scale) return;
    while (this.items.length > state.points.length) {
      const { shape, ring } = this.items.pop();
      shape.remove();
      ring?.remove();
    }
    state.points.forEach((point, k) => {
      const known = before && before.points[k] === point;
      if (known && this.items[k]) return;
      const [x, y, label] = point;
      const item = (this.items[k] ??= { shape: null, ring: null, label: -1 });
      if (item.label !== label || !item.shape) {
        item.shape?.remove();
        item.shape = makeSvg("path", { class: `point c${label}` });
        this.points.insertBefore(item.shape, this.points.children[k] ?? null);
        item.label = label;
      }
      const [px, py] = this.toPixels(x, y);
      item.at = [px.toFixed(2), py.toFixed(2)];
      item.shape.setAttribute("d", `M${item.at}${SHAPES[label]}`);
      if (item.ring) this.placeRing(item);
    });
    const classes = new Set(state.points.map((point) => point[2])).size;
    this.svg.setAttribute(
      "aria-label",
      `Plot with ${state.points.length} points of ${classes} ${classes === 1 ? "class" : "classes"}`,
    );
    this.hint.textContent = state.points.length ? "" : "Click to draw a point. Choose a class and draw another.";
    if (this.selected >= state.points.length) this.selected = -1;
    this.drawMarks();
  }

  /** Draw what Python found. */
  draw(picture) {
    this.picture = picture;
    this.drawField(picture.field);
    this.redraw();
  }

  /** Draw one moment of a run instead of the picture, or the picture again if it is null. */
  show(frame) {
    this.frame = frame;
    this.element.classList.toggle("playing", Boolean(frame));
    this.redraw();
  }

  redraw() {
    const { picture, frame } = this;
    const show = this.studio.store.state.show;
    const lines = frame?.lines ?? picture?.lines ?? [];
    this.drawLines(lines.filter((line) => show.margins || line.kind !== "margin"));
    this.drawRings(frame?.rows ?? (frame ? null : picture?.rows) ?? { alpha: [], kind: [] });
    this.drawSlack(!frame && show.slack ? (picture?.slack ?? []) : []);
    this.drawWitness(frame ? null : (picture?.witness ?? null));
    this.drawMarks();
  }

  drawLines(lines) {
    this.lines.replaceChildren(
      ...lines.map((line) =>
        makeSvg("polyline", {
          class: `line ${line.kind}${line.level > 0 ? " plus" : line.level < 0 ? " minus" : ""}`,
          points: line.at.join(" "),
          "data-level": line.level,
        }),
      ),
    );
  }

  drawRings({ alpha, kind }) {
    this.items.forEach((item, k) => {
      const number = kind[k] ?? 0;
      const size = 1 + 0.9 * Math.sqrt(Math.max(0, Math.min(1, alpha[k] ?? 0)));
      if (item.kind === number && Math.abs((item.size ?? 1) - size) < 0.01 && Boolean(item.ring) === number > 0) return;
      item.kind = number;
      item.size = Number(size.toFixed(3));
      if (!number) {
        item.ring?.remove();
        item.ring = null;
        return;
      }
      if (!item.ring) {
        item.ring = makeSvg("circle");
        this.rings.append(item.ring);
      }
      item.ring.setAttribute("class", `ring ${KINDS[number].replace(" ", "-")}`);
      item.ring.setAttribute("data-row", k);
      item.ring.setAttribute("data-alpha", alpha[k] ?? 0);
      this.placeRing(item);
    });
  }

  placeRing({ ring, at, size }) {
    ring.setAttribute("cx", at[0]);
    ring.setAttribute("cy", at[1]);
    ring.setAttribute("r", (8 * size).toFixed(2));
  }

  drawSlack(slack) {
    const { points } = this.studio.store.state;
    this.slack.replaceChildren(
      ...slack
        .filter(([row]) => points[row])
        .map(([row, x, y]) => makeSvg("line", { x1: points[row][0], y1: points[row][1], x2: x, y2: y, "data-row": row })),
    );
  }

  drawWitness(witness) {
    const { points } = this.studio.store.state;
    const children = [];
    if (witness?.kind === "overlap") {
      for (const members of witness.sets) {
        const corners = members.map(([row]) => points[row]).filter(Boolean);
        const at = hull(corners).map(([x, y]) => `${x},${y}`).join(" ");
        children.push(makeSvg("polygon", { points: at, class: `hull c${corners[0]?.[2] ?? 0}` }));
      }
      // In the space of a kernel the hulls meet in a point that the plane does not have.
      const [x, y] = witness.point ?? [];
      const r = 6 / this.scale;
      if (witness.point) children.push(makeSvg("path", { class: "meeting", d: `M${x - r},${y - r}L${x + r},${y + r}M${x - r},${y + r}L${x + r},${y - r}` }));
    }
    if (witness?.kind === "separated" && witness.line) {
      children.push(makeSvg("polyline", { points: witness.line.join(" "), class: "separator" }));
    }
    this.witness.replaceChildren(...children);
  }

  /** Draw the focus of a run, the chosen point, the cursor of the keyboard and the brush. */
  drawMarks() {
    if (!this.scale) return;
    const { points } = this.studio.store.state;
    const children = [];
    const focus = points[this.frame?.focus ?? -1];
    if (focus) {
      const [x, y] = this.toPixels(focus[0], focus[1]);
      children.push(makeSvg("circle", { cx: x, cy: y, r: 14, class: "focus" }));
    }
    if (this.frame?.arrow) {
      const [x0, y0] = this.toPixels(this.frame.arrow[0], this.frame.arrow[1]);
      const [x1, y1] = this.toPixels(this.frame.arrow[2], this.frame.arrow[3]);
      children.push(makeSvg("path", { d: arrow(x0, y0, x1, y1), class: "arrow" }));
    }
    if (points[this.selected]) {
      const [x, y] = this.toPixels(points[this.selected][0], points[this.selected][1]);
      children.push(makeSvg("circle", { cx: x, cy: y, r: 11, class: "selected" }));
    }
    if (this.cursor) {
      const [x, y] = this.toPixels(this.cursor[0], this.cursor[1]);
      children.push(makeSvg("path", { d: `M${x - 9},${y}H${x + 9}M${x},${y - 9}V${y + 9}`, class: "cursor" }));
    }
    const { tool } = this.studio.ui;
    if (this.brush && (tool === "spray" || tool === "erase")) {
      children.push(makeSvg("circle", { cx: this.brush[0], cy: this.brush[1], r: BRUSH, class: `brush ${tool}` }));
    }
    this.marks.replaceChildren(...children);
  }

  // --------------------------------------------------------------------------- the background

  drawField(field) {
    this.field = field;
    this.paintField();
    this.placeField();
  }

  paintField() {
    const { field, canvas } = this;
    canvas.hidden = !field || !this.studio.store.state.show.field;
    if (canvas.hidden) return;
    canvas.width = field.cols;
    canvas.height = field.rows;
    const bytes = atob(field.values);
    const image = new ImageData(field.cols, field.rows);
    const colours = this.fieldColours(field.kind);
    for (let k = 0; k < bytes.length; k += 1) {
      // Rows of the field go upwards, those of an image downwards.
      const row = field.rows - 1 - Math.floor(k / field.cols);
      const [r, g, b, opacity] = colours[bytes.charCodeAt(k)];
      image.data.set([r, g, b, opacity], 4 * (row * field.cols + (k % field.cols)));
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  /** Return the colour of each of the 256 values of the field. */
  fieldColours(kind) {
    const present = [...new Set(this.studio.store.state.points.map((point) => point[2]))].sort();
    const model = this.studio.catalogue.models[this.picture?.model];
    const sides = model?.most_classes === 1 || present.length < 2 ? [[130, 130, 140], COLOURS[present[0] ?? 0]] : present.map((label) => COLOURS[label]);
    return Array.from({ length: 256 }, (_, byte) => {
      if (kind === "classes") return [...(COLOURS[byte >> 5] ?? COLOURS[0]), 30 + 2.2 * (byte & 31)];
      const score = (byte - 127.5) / 127.5;
      return [...(score < 0 ? sides[0] : sides[1]), Math.round(12 + 82 * Math.abs(score))];
    });
  }

  placeField() {
    if (!this.field || !this.scale) return;
    const [left, right, bottom, top] = this.field.view;
    const [x0, y0] = this.toPixels(left, top);
    const [x1, y1] = this.toPixels(right, bottom);
    Object.assign(this.canvas.style, {
      left: `${x0}px`,
      top: `${y0}px`,
      width: `${x1 - x0}px`,
      height: `${y1 - y0}px`,
    });
  }

  // ------------------------------------------------------------------- mouse, pen and finger

  nearest([px, py], reach) {
    let [found, least] = [-1, reach];
    this.studio.store.state.points.forEach(([x, y], k) => {
      const [qx, qy] = this.toPixels(x, y);
      const distance = Math.hypot(px - qx, py - qy);
      if (distance <= least) [found, least] = [k, distance];
    });
    return found;
  }

  press(event) {
    if (event.button > 0) return;
    this.svg.focus({ preventScroll: true });
    this.placeCursor(null);
    this.svg.setPointerCapture(event.pointerId);
    const place = this.place(event);
    this.pointers.set(event.pointerId, place);
    this.gesture = `${event.pointerId}-${event.timeStamp}`;
    if (this.pointers.size === 2) {
      this.stopSpraying();
      this.dragged = -1;
      if (this.added) this.studio.store.undo(); // the first finger of a pinch drew a point
      this.added = false;
      return;
    }
    this.studio.cause = event.timeStamp;
    const { tool, label } = this.studio.ui;
    this.added = false;
    this.dragged = -1;
    this.panned = tool === "pan" ? [...this.studio.store.state.view] : null;
    if (tool === "spray") this.startSpraying();
    else if (tool === "erase") this.erase(place);
    else if (tool === "point") {
      const near = this.nearest(place, event.pointerType === "touch" ? TOUCH_REACH : REACH);
      if (near >= 0 && event.altKey) this.relabel(near, label);
      else if (near >= 0) this.take(near, place);
      else {
        this.studio.addPoints([[...this.toData(...place), label]], this.gesture);
        this.added = true;
        this.take(this.studio.store.state.points.length - 1, place);
      }
    }
    this.start = place;
  }

  /** Take hold of a point where it was touched, so that it does not jump to the pointer. */
  take(row, place) {
    const [x, y] = this.studio.store.state.points[row];
    const [px, py] = this.toPixels(x, y);
    this.grip = [px - place[0], py - place[1]];
    this.dragged = row;
    this.select(row);
  }

  move(event) {
    const place = this.place(event);
    if (!this.pointers.has(event.pointerId)) {
      this.hover(place);
      return;
    }
    const before = this.pointers.get(event.pointerId);
    this.pointers.set(event.pointerId, place);
    this.hover(place);
    if (this.pointers.size === 2) {
      this.pinch(event.pointerId, before, place);
      return;
    }
    this.studio.cause = event.timeStamp;
    if (this.dragged >= 0) {
      const [x, y] = this.toData(place[0] + this.grip[0], place[1] + this.grip[1]);
      this.movePoint(this.dragged, x, y, this.gesture);
    } else if (this.panned) {
      const [dx, dy] = [(this.start[0] - place[0]) / this.scale, (place[1] - this.start[1]) / this.scale];
      const [left, right, bottom, top] = this.panned;
      this.studio.lookAt([left + dx, right + dx, bottom + dy, top + dy], this.gesture);
    } else if (this.studio.ui.tool === "erase") this.erase(place);
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    this.stopSpraying();
    this.dragged = -1;
    this.panned = null;
  }

  hover(place) {
    this.brush = place;
    const { tool } = this.studio.ui;
    if (tool === "spray" || tool === "erase") this.drawMarks();
    else if (place && !this.pointers.size) {
      this.svg.classList.toggle("grab", tool === "pan" || this.nearest(place, REACH) >= 0);
    }
  }

  movePoint(row, x, y, gesture) {
    const { points } = this.studio.store.state;
    const [, , label] = points[row];
    this.studio.store.change({ points: points.with(row, [x, y, label]) }, gesture);
  }

  relabel(row, label) {
    const { points } = this.studio.store.state;
    const [x, y] = points[row];
    this.studio.store.change({ points: points.with(row, [x, y, label]) });
  }

  remove(row) {
    const { points } = this.studio.store.state;
    this.studio.store.change({ points: points.toSpliced(row, 1) });
    this.studio.announce(`Point ${row + 1} deleted, ${points.length - 1} left.`);
  }

  removeAt(event) {
    event.preventDefault();
    const near = this.nearest(this.place(event), REACH);
    if (near >= 0) this.remove(near);
  }

  doubleClick(event) {
    if (this.studio.ui.tool !== "point") return;
    const near = this.nearest(this.place(event), REACH);
    if (near >= 0 && !this.added) this.remove(near);
  }

  erase(place) {
    const { points } = this.studio.store.state;
    const left = points.filter(([x, y]) => {
      const [px, py] = this.toPixels(x, y);
      return Math.hypot(px - place[0], py - place[1]) > BRUSH;
    });
    if (left.length < points.length) this.studio.store.change({ points: left }, this.gesture);
  }

  startSpraying() {
    const spray = () => {
      const place = [...this.pointers.values()][0];
      if (!place) return;
      // The sum of two uniform numbers is dense in the middle, and stays inside the brush.
      const radius = (BRUSH * (Math.random() + Math.random())) / 2;
      const angle = 2 * Math.PI * Math.random();
      const at = this.toData(place[0] + radius * Math.cos(angle), place[1] + radius * Math.sin(angle));
      this.studio.cause = performance.now();
      this.studio.addPoints([[...at, this.studio.ui.label]], this.gesture);
    };
    this.spraying = setInterval(spray, SPRAY);
    spray();
  }

  stopSpraying() {
    clearInterval(this.spraying);
  }

  pinch(moved, before, place) {
    const other = [...this.pointers].find(([id]) => id !== moved)[1];
    const distance = (a) => Math.max(20, Math.hypot(a[0] - other[0], a[1] - other[1]));
    const middle = [(before[0] + other[0]) / 2, (before[1] + other[1]) / 2];
    const shift = [(place[0] - before[0]) / 2, (place[1] - before[1]) / 2];
    this.zoom(distance(before) / distance(place), middle, shift);
  }

  wheel(event) {
    event.preventDefault();
    this.gesture = `wheel-${Math.floor(event.timeStamp / 1000)}`;
    this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 300), this.place(event));
  }

  /** Zoom about a place in pixels, and shift. */
  zoom(factor, place, shift = [0, 0]) {
    const [left, right, bottom, top] = this.studio.store.state.view;
    const [x, y] = this.toData(...place);
    const [dx, dy] = [-shift[0] / this.scale, shift[1] / this.scale];
    if (!(right - left > 1e-4 || factor > 1) || !(right - left < 1e5 || factor < 1)) return;
    const view = [x + (left - x) * factor + dx, x + (right - x) * factor + dx, y + (bottom - y) * factor + dy, y + (top - y) * factor + dy];
    this.studio.lookAt(view, this.gesture);
  }

  // ------------------------------------------------------------------------------- keyboard

  key(event) {
    if (event.ctrlKey || event.metaKey) return;
    this.studio.cause = event.timeStamp;
    const { points } = this.studio.store.state;
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
    const step = steps[event.key];
    if (step) this.moveByKey(step, event.shiftKey ? 20 : 4);
    else if (event.key === "n" || event.key === "p") {
      if (!points.length) return;
      this.cursor = null;
      const turn = event.key === "n" ? 1 : -1;
      this.select((this.selected + turn + points.length) % points.length, true);
    } else if (event.key === "Enter" || event.key === " ") {
      if (!this.cursor) this.placeCursor(this.center.map(Number));
      this.studio.addPoints([[...this.cursor, this.studio.ui.label]]);
      this.studio.announce(`Point added at ${this.cursor.map((v) => short(v)).join(", ")}.`);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      if (this.selected >= 0) this.remove(this.selected);
    } else if (event.key >= "1" && event.key <= "5") {
      const label = Number(event.key) - 1;
      if (this.selected >= 0) this.relabel(this.selected, label);
      else this.studio.chooseLabel(label);
    } else if (event.key === "Escape") {
      this.select(-1);
      this.placeCursor(null);
    } else if (event.key === "+" || event.key === "-") {
      this.gesture = "keys";
      this.zoom(event.key === "+" ? 1 / 1.2 : 1.2, [this.size[0] / 2, this.size[1] / 2]);
    } else return;
    event.preventDefault();
  }

  /** Move the chosen point, or the cursor if none is chosen, by pixels. */
  moveByKey([dx, dy], pixels) {
    const { points } = this.studio.store.state;
    const from = points[this.selected] ?? this.cursor ?? this.center;
    const [px, py] = this.toPixels(from[0], from[1]);
    const [x, y] = this.toData(px + dx * pixels, py - dy * pixels);
    if (points[this.selected]) this.movePoint(this.selected, x, y, `keys-${this.selected}`);
    else this.placeCursor([x, y]);
  }

  placeCursor(cursor) {
    if (!cursor && !this.cursor) return;
    this.cursor = cursor;
    if (cursor) this.selected = -1;
    this.drawMarks();
  }

  select(row, aloud = false) {
    this.selected = row;
    const { points, names } = this.studio.store.state;
    if (aloud && points[row]) {
      const [x, y, label] = points[row];
      const kind = KINDS[this.picture?.rows?.kind[row] ?? 0];
      const support = kind ? `, support vector: ${kind}` : "";
      this.studio.announce(`Point ${row + 1}, class ${names[label]}, at ${short(x)}, ${short(y)}${support}.`);
    }
    this.drawMarks();
  }

  close() {
    this.observer.disconnect();
    this.stopSpraying();
  }
}

/** Return the corners of the convex hull of points, in order. */
function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (list) => {
    const chain = [];
    for (const p of list) {
      while (chain.length > 1 && cross(chain.at(-2), chain.at(-1), p) <= 0) chain.pop();
      chain.push(p);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

function cross(a, b, c) {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/** Return the path of an arrow. */
function arrow(x0, y0, x1, y1) {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  const wing = (turn) => `${x1 - 10 * Math.cos(angle + turn)},${y1 - 10 * Math.sin(angle + turn)}`;
  return `M${x0},${y0}L${x1},${y1}M${wing(0.45)}L${x1},${y1}L${wing(-0.45)}`;
}
