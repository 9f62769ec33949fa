// @ts-check
// Step, play and rewind: the moments of a perceptron, of a solver, or along C.
//
// A run is a list of frames that Python sends at once. The timeline shows one of them in the plot of
// its pane, and where it stands on a curve: how the gap closes, how many mistakes are left, or how
// the duals move with C. When the points or the model change, the run is asked for again, and shown
// at the place where it was.

import { button, make, makeSvg, short, ticks } from "./draw.js";

const RUNS = {
  perceptron: ["Step through mistakes", "Show the line after each mistake, one by one"],
  solver: ["Watch the solver", "Show the iterates of the solver, and how the duality gap closes"],
  path: ["Slide along C", "Show the machine at every cost C, and how its duals move"],
};
const SPEEDS = [
  [0.5, "½ ×"],
  [1, "1 ×"],
  [2, "2 ×"],
  [4, "4 ×"],
];
// Fonts without these signs are common, so they are drawn.
const ICONS = {
  rewind: "M3,3H5V13H3ZM13,3V13L6,8Z",
  back: "M11,3V13L4,8Z",
  play: "M4,2.5V13.5L13,8Z",
  pause: "M4,3H7V13H4ZM9,3H12V13H9Z",
  forward: "M5,3V13L12,8Z",
  end: "M11,3H13V13H11ZM3,3V13L10,8Z",
  close: "M3.5,5L5,3.5L8,6.5L11,3.5L12.5,5L9.5,8L12.5,11L11,12.5L8,9.5L5,12.5L3.5,11L6.5,8Z",
};
const RATE = 4; // frames in a second
const WHOLE = 15; // seconds that a long run takes; it then shows more frames in a second
const FASTEST = 20; // frames in a second
const CALM = 1; // frames in a second, if the user wants little motion
const CALM_STEPS = 40; // a long run then skips frames, so that it has about so many
const QUICK = 250; // milliseconds: runs that take longer are not repeated while a point is dragged
const REST = 400; // milliseconds without a change, after which a slow run is repeated
const PATIENT = 300; // milliseconds after which it is said that a run is being computed

export class Timeline {
  constructor(studio) {
    this.studio = studio;
    this.open = null; // {pane, kind}: the run that is open
    this.run = null; // its frames, as Python sent them
    this.index = 0;
    this.playing = 0; // handle of the next step of playback, 0 while paused
    this.speed = 1;
    this.buttons = [];
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.build();
  }

  build() {
    this.starts = make("div", { class: "starts" });
    this.title = make("h2", {});
    this.message = make("p", { class: "message" });
    this.caption = make("p", { class: "caption", "aria-live": "polite" });
    this.count = make("output", { class: "count" });
    this.slider = make("input", {
      type: "range",
      min: 0,
      max: 0,
      step: 1,
      value: 0,
      "aria-label": "Step",
      oninput: () => this.take(Number(this.slider.value)),
    });
    this.playButton = iconButton("play", "Play", () => this.toggle(), { class: "play" });
    this.useButton = button("Use this C", "Set the slider of the model to this C", () => this.useCost(), { class: "use" });
    this.speeds = make(
      "select",
      { "aria-label": "Speed", title: "Speed", onchange: () => (this.speed = Number(this.speeds.value)) },
      ...SPEEDS.map(([factor, text]) => make("option", { value: factor, text, selected: factor === 1 })),
    );
    this.waiting = make("span", { class: "waiting", role: "status" });
    this.transport = make(
      "div",
      { class: "transport", role: "group", "aria-label": "Playback" },
      iconButton("rewind", "Rewind to the start", () => this.take(0)),
      iconButton("back", "Step back", () => this.take(this.index - 1)),
      this.playButton,
      iconButton("forward", "Step forward", () => this.take(this.index + 1)),
      iconButton("end", "Go to the end", () => this.take(this.last())),
      this.speeds,
      this.useButton,
    );
    this.position = make("div", { class: "position" }, this.slider, this.count);
    this.curve = new CurveChart((x) => this.takeNearest(x));
    const head = make("div", { class: "player-head" }, this.title, this.waiting, iconButton("close", "Close the run", () => this.close(), { class: "close" }));
    this.player = make(
      "div",
      { class: "player", hidden: true, onkeydown: (event) => this.key(event) },
      make("div", { class: "player-controls" }, head, this.transport, this.position, this.caption, this.message),
      this.curve.element,
    );
    this.element = make("section", { class: "timeline", "aria-label": "Step by step" }, this.starts, this.player);
    this.observer = new ResizeObserver(() => {
      this.curve.resize();
      this.schedule();
    });
  }

  /** Called after each change of the state. */
  update(state, before) {
    if (state.panes !== before.panes) this.offer(state);
    if (!this.open) return;
    const { pane, kind } = this.open;
    const [now, old] = [state.panes[pane], before.panes[pane]];
    if (!now || !this.studio.catalogue.models[now.model].runs.includes(kind)) {
      this.close();
      return;
    }
    this.watch();
    if (state.points === before.points && state.view === before.view && now === old) return;
    if (kind === "path" && state.points === before.points && state.view === before.view && old && onlyCostDiffers(now, old)) {
      this.pause();
      this.takeNearest(this.studio.scene(pane).parameters.C);
      return;
    }
    if (state.points.length !== before.points.length) this.forgetRows();
    this.schedule(this.took > QUICK ? REST : 0);
  }

  /** Show buttons for the runs that the models of the panes have. */
  offer(state) {
    const { models } = this.studio.catalogue;
    const names = state.panes.length > 1 ? ["Left model", "Right model"] : ["Step by step"];
    this.buttons = [];
    const groups = state.panes.map(({ model }, pane) => {
      const buttons = models[model].runs.map((kind) => {
        const [text, help] = RUNS[kind];
        const start = button(text, help, () => this.start(pane, kind), { "aria-label": null, "data-run": kind, "data-pane": pane });
        this.buttons.push([pane, kind, start]);
        return start;
      });
      const none = buttons.length ? null : make("span", { class: "none", text: "no steps to watch for this model" });
      return make("div", { class: "group", role: "group", "aria-label": names[pane] }, make("span", { class: "of", text: names[pane] }), ...buttons, none);
    });
    this.starts.replaceChildren(...groups);
    this.reflect();
  }

  /** Show in the buttons which run is open. */
  reflect() {
    for (const [pane, kind, start] of this.buttons) {
      start.setAttribute("aria-pressed", String(this.open?.pane === pane && this.open.kind === kind));
    }
  }

  plot() {
    return this.studio.plots[this.open?.pane ?? 0];
  }

  last() {
    return Math.max(0, (this.run?.frames.length ?? 0) - 1);
  }

  // ----------------------------------------------------------------------- beginning and ending

  /** Open a run, or close it if it is the one that is open. */
  start(pane, kind) {
    const again = this.open?.pane === pane && this.open.kind === kind;
    this.close();
    if (again) return;
    this.open = { pane, kind };
    this.took = 0;
    this.player.hidden = false;
    this.player.dataset.kind = kind;
    this.useButton.hidden = kind !== "path";
    this.title.textContent = RUNS[kind][0];
    this.reflect();
    this.observer.observe(this.curve.element);
    this.watch();
  }

  /** Follow the size of the plot, which may be a new one: the run is asked for when it has its size. */
  watch() {
    const plot = this.plot();
    if (plot === this.watched) return;
    if (this.watched) this.observer.unobserve(this.watched.element);
    this.watched = plot;
    this.observer.observe(plot.element);
  }

  close() {
    if (!this.open) return;
    this.pause();
    this.observer.disconnect();
    clearTimeout(this.resting);
    clearTimeout(this.patience);
    cancelAnimationFrame(this.asking ?? 0);
    this.asking = null;
    if (this.asked) {
      this.studio.cancel(this.open.pane);
      this.studio.refit(this.open.pane);
    }
    const { shown } = this;
    const held = this.player.contains(document.activeElement);
    const { pane, kind } = this.open;
    Object.assign(this, { open: null, run: null, shown: null, watched: null, asked: null, request: "", index: 0 });
    delete this.element.dataset.frame;
    this.player.hidden = true;
    this.clear();
    this.reflect();
    if (held) this.buttons.find((found) => found[0] === pane && found[1] === kind)?.[2].focus();
    if (shown && this.studio.plots.includes(shown)) shown.show(null);
  }

  clear() {
    this.caption.textContent = "";
    this.message.textContent = "";
    this.waiting.textContent = "";
    this.count.textContent = "";
    this.curve.draw(null);
  }

  /** Keep the lines of the frame, but not what it says about points whose numbers have changed. */
  forgetRows() {
    const frame = this.run?.frames[this.index];
    if (frame) this.plot()?.show({ ...frame, rows: null, focus: null });
  }

  /** Ask for the run before the next picture is painted, or after a rest. */
  schedule(rest = 0) {
    clearTimeout(this.resting);
    if (rest) {
      this.plot()?.show(null);
      this.resting = setTimeout(() => this.schedule(), rest);
      return;
    }
    this.asking ??= requestAnimationFrame(() => {
      this.asking = null;
      this.ask();
    });
  }

  ask() {
    const { open, studio } = this;
    const plot = this.plot();
    if (!open || !plot?.scale) return;
    const request = { type: "run", pane: open.pane, ...studio.scene(open.pane), kind: open.kind };
    const key = JSON.stringify(request);
    if (this.run && plot !== this.shown) this.show(); // the plot was built anew
    if (key === this.request) return;
    const asked = { open, key, since: performance.now() };
    this.request = key;
    this.asked = asked;
    clearTimeout(this.patience);
    this.patience = setTimeout(() => (this.waiting.textContent = "Computing…"), PATIENT);
    studio.link.latest(
      `run${open.pane}`,
      request,
      (reply) => this.receive(asked, reply),
      (error) => this.receive(asked, { frames: [], curves: [], message: error.message, failed: true }),
    );
  }

  receive(asked, reply) {
    if (asked.open !== this.open) return;
    this.took = performance.now() - asked.since;
    // A run that took long while a newer one waited may have been stopped on its way.
    if (asked !== this.asked && this.took > QUICK) return;
    if (asked === this.asked) {
      this.asked = null;
      clearTimeout(this.patience);
      this.waiting.textContent = "";
    }
    const before = this.run;
    const index = this.follow(before, reply);
    this.run = reply;
    this.title.textContent = reply.title || RUNS[asked.open.kind][0];
    this.message.textContent = reply.message ?? "";
    this.message.classList.toggle("error", Boolean(reply.failed));
    this.slider.max = String(this.last());
    for (const part of [this.transport, this.position]) part.hidden = !reply.frames.length;
    this.curve.element.hidden = !reply.frames.length || !reply.curves.length;
    this.curve.draw(reply, this.labels());
    if (!reply.frames.length) {
      this.pause();
      this.caption.textContent = "";
      this.plot()?.show(null);
      return;
    }
    this.seek(index);
    if (before) return;
    if (this.buttons.some((known) => known[2] === document.activeElement)) this.slider.focus({ preventScroll: true });
    this.player.scrollIntoView({ block: "nearest" });
  }

  /** Return the frame of a new run that stands where the old run was. */
  follow(before, run) {
    const last = run.frames.length - 1;
    if (!before?.frames.length) return run.start ?? 0;
    if (this.open.kind === "path") return nearestFrame(run.frames, before.frames[this.index].x);
    return Math.round((this.index / Math.max(1, before.frames.length - 1)) * Math.max(0, last));
  }

  /** Return the labels of the points, which give the curves of duals their colours. */
  labels() {
    return this.studio.store.state.points.map((point) => point[2]);
  }

  // ------------------------------------------------------------------------------- going there

  /** Go to a frame by hand: playback ends. */
  take(index) {
    this.pause();
    this.seek(index);
  }

  takeNearest(x) {
    if (this.run?.frames.length) this.take(nearestFrame(this.run.frames, x, this.run.axes?.x_log));
  }

  seek(index) {
    if (!this.run?.frames.length) return;
    this.index = Math.max(0, Math.min(this.last(), index));
    this.show();
  }

  /** Show the frame in the plot, beside the slider and on the curve. */
  show() {
    const frame = this.run.frames[this.index];
    if (!frame) return;
    this.shown = this.plot();
    this.shown?.show(frame);
    this.slider.value = String(this.index);
    this.slider.style.setProperty("--filled", `${(100 * this.index) / Math.max(1, this.last())}%`);
    this.slider.setAttribute("aria-valuetext", `${this.index + 1} of ${this.last() + 1}`);
    this.count.textContent = `${this.index + 1} / ${this.last() + 1}`;
    if (this.caption.textContent !== frame.caption) this.caption.textContent = frame.caption;
    this.curve.move(frame.x);
    this.element.dataset.frame = String(this.index);
  }

  /** Set the C of the model to that of the frame. */
  useCost() {
    const { low, high } = this.studio.catalogue.sliders.C;
    const C = Math.max(low, Math.min(high, this.run.frames[this.index].x));
    const { pane } = this.open;
    const { parameters } = this.studio.store.state.panes[pane];
    this.studio.cause = performance.now();
    this.studio.store.changePane(pane, { parameters: { ...parameters, C } });
    this.studio.announce(`C is now ${short(C)}.`);
  }

  // --------------------------------------------------------------------------------- playing

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.playing || !this.run?.frames.length) return;
    if (this.index >= this.last()) this.seek(0);
    // Captions that follow each other quickly are not read aloud; the one at the end is.
    this.caption.setAttribute("aria-live", "off");
    this.mark("pause", "Pause");
    let [due, before] = [0, 0];
    const step = (now) => {
      this.playing = requestAnimationFrame(step);
      due += before ? (now - before) / 1000 : 0;
      before = now;
      const [rate, stride] = this.pace();
      const steps = Math.floor(due * rate);
      if (!steps) return;
      due -= steps / rate;
      this.seek(this.index + steps * stride);
      if (this.index >= this.last()) this.pause();
    };
    this.playing = requestAnimationFrame(step);
  }

  /** Return how many steps a second has, and how many frames a step. */
  pace() {
    const count = this.last() + 1;
    if (this.calm.matches) return [CALM * this.speed, Math.max(1, Math.round(count / CALM_STEPS))];
    return [Math.max(RATE, Math.min(FASTEST, count / WHOLE)) * this.speed, 1];
  }

  pause() {
    if (!this.playing) return;
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.mark("play", "Play");
    this.caption.setAttribute("aria-live", "polite");
    this.studio.announce(this.caption.textContent);
  }

  mark(icon, label) {
    this.playButton.firstChild.firstChild.setAttribute("d", ICONS[icon]);
    this.playButton.title = label;
    this.playButton.setAttribute("aria-label", label);
  }

  key(event) {
    if (event.key === "Escape") this.close();
    else if (event.key === " " && event.target === this.slider) this.toggle();
    else return;
    event.preventDefault();
  }
}

function iconButton(icon, label, action, properties = {}) {
  const made = button("", label, action, properties);
  made.append(makeSvg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, makeSvg("path", { d: ICONS[icon] })));
  return made;
}

/** Tell whether two panes differ in their C, and in nothing else. */
function onlyCostDiffers(now, old) {
  const rest = ({ model, kernel, parameters }) => JSON.stringify([model, kernel, Object.entries({ ...parameters, C: 0 }).sort()]);
  return rest(now) === rest(old);
}

/** Return the index of the frame whose x is nearest. */
function nearestFrame(frames, x, log = false) {
  const place = (value) => (log ? Math.log(Math.max(value, 1e-300)) : value);
  let [found, least] = [0, Infinity];
  frames.forEach((frame, k) => {
    const distance = Math.abs(place(frame.x) - place(x));
    if (distance < least) [found, least] = [k, distance];
  });
  return found;
}

// ------------------------------------------------------------------------------------ the curve

const EDGE = { left: 58, right: 14, top: 8, bottom: 36 };
const BENDS = 12; // pieces of a segment that is straight in x, on a log scale

/** A curve with axes and a line where the run stands; pressing on it goes there. */
class CurveChart {
  constructor(chosen) {
    this.chosen = chosen;
    this.size = [320, 150];
    this.legend = make("p", { class: "legend" });
    this.frameBox = makeSvg("g", { class: "axes" });
    this.lines = makeSvg("g", { class: "curves" });
    this.now = makeSvg("g", { class: "now" });
    this.svg = makeSvg(
      "svg",
      {
        role: "img",
        onpointerdown: (event) => this.press(event),
        onpointermove: (event) => event.buttons & 1 && this.svg.hasPointerCapture(event.pointerId) && this.choose(event),
      },
      this.frameBox,
      this.lines,
      this.now,
    );
    this.element = make("div", { class: "curve-chart" }, this.legend, make("div", { class: "curve-box" }, this.svg));
  }

  press(event) {
    if (event.button > 0) return;
    this.svg.setPointerCapture(event.pointerId);
    this.choose(event);
  }

  choose(event) {
    if (!this.across) return;
    this.chosen(this.across.value(event.clientX - this.svg.getBoundingClientRect().left));
  }

  resize() {
    const { clientWidth, clientHeight } = this.svg.parentElement;
    if (!clientWidth || (clientWidth === this.size[0] && clientHeight === this.size[1])) return;
    this.size = [clientWidth, clientHeight];
    this.draw(this.run, this.labels);
    if (this.x !== undefined) this.move(this.x);
  }

  /** Draw the curves of a run; the colour of a dual is that of the class of its point. */
  draw(run, labels = []) {
    this.run = run;
    this.labels = labels;
    this.across = null;
    for (const group of [this.frameBox, this.lines, this.now, this.legend]) group.replaceChildren();
    const curves = (run?.curves ?? []).filter((curve) => curve.x.length);
    if (!curves.length) return;
    const [width, height] = this.size;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const flat = (of) => curves.flatMap((curve) => curve[of]);
    this.across = makeAxis([...flat("x"), ...run.frames.map((frame) => frame.x)], run.axes.x_log, EDGE.left, width - EDGE.right);
    // Duals grow with C, so they are on a log scale if C is; those of 0 lie on the lower edge.
    const bounds = run.axes.x_log ? curves.filter((curve) => curve.kind === "bound") : [];
    const grow = bounds.length > 0 && curves.some((curve) => curve.kind === "dual");
    const heights = grow ? bounds.flatMap((curve) => curve.y).flatMap((y) => [y, y / 10]) : flat("y");
    this.up = makeAxis(heights, run.axes.y_log || grow, height - EDGE.bottom, EDGE.top, grow);
    this.drawAxes(run.axes);
    this.lines.append(...curves.map((curve) => makeSvg("path", { d: this.trace(curve), class: this.style(curve) })));
    const named = curves.filter((curve) => curve.kind !== "dual");
    this.legend.append(...(curves.length > 1 ? named : []).map((curve) => make("span", { class: `key ${curve.kind}`, text: curve.name })));
    const names = named.length ? named.map((curve) => curve.name).join(" and ") : run.axes.y;
    this.svg.setAttribute("aria-label", `Curve of ${names} against ${run.axes.x}`);
  }

  style(curve) {
    const row = Number(/^point (\d+)$/.exec(curve.name)?.[1] ?? 0) - 1;
    const label = curve.kind === "dual" ? this.labels[row] : undefined;
    return `curve ${curve.kind}${label === undefined ? "" : ` c${label}`}`;
  }

  /** Return the path of a curve: what is straight in x is bent on a log scale. */
  trace({ x, y, kind }) {
    const places = [];
    const pieces = this.across.log && kind === "dual" ? BENDS : 1;
    x.forEach((at, k) => {
      for (let j = k ? 1 : pieces; j <= pieces; j += 1) {
        const share = j / pieces;
        const [px, py] = k ? [mix(x[k - 1], at, share), mix(y[k - 1], y[k], share)] : [at, y[0]];
        if (this.across.has(px) && this.up.has(py)) places.push([this.across.pixel(px), this.up.pixel(py)]);
      }
    });
    return places.map(([px, py], k) => `${k ? "L" : "M"}${px.toFixed(1)},${py.toFixed(1)}`).join("");
  }

  drawAxes(axes) {
    const [width, height] = this.size;
    const [bottom, right] = [height - EDGE.bottom, width - EDGE.right];
    for (const x of this.across.ticks(Math.max(2, width / 80))) {
      const at = this.across.pixel(x);
      this.frameBox.append(
        makeSvg("line", { x1: at, x2: at, y1: EDGE.top, y2: bottom }),
        makeSvg("text", { x: at, y: bottom + 14, "text-anchor": "middle", text: this.across.write(x) }),
      );
    }
    for (const y of this.up.ticks(Math.max(2, height / 40))) {
      const at = this.up.pixel(y);
      this.frameBox.append(
        makeSvg("line", { x1: EDGE.left, x2: right, y1: at, y2: at }),
        makeSvg("text", { x: EDGE.left - 6, y: at + 4, "text-anchor": "end", text: this.up.write(y) }),
      );
    }
    const middle = (EDGE.top + bottom) / 2;
    this.frameBox.append(
      makeSvg("path", { class: "edge", d: `M${EDGE.left},${EDGE.top}V${bottom}H${right}` }),
      makeSvg("text", { class: "name", x: (EDGE.left + right) / 2, y: height - 6, "text-anchor": "middle", text: axes.x }),
      makeSvg("text", { class: "name", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle", text: axes.y }),
    );
  }

  /** Move the line to where the run stands, and a dot along each curve. */
  move(x) {
    this.x = x;
    if (!this.across?.has(x)) return;
    const at = this.across.pixel(x);
    const dots = this.run.curves
      .map((curve) => [curve, valueAt(curve, x)])
      .filter(([, y]) => y !== null && this.up.has(y))
      .map(([curve, y]) => makeSvg("circle", { cx: at, cy: this.up.pixel(y), r: curve.kind === "dual" ? 2.5 : 4, class: this.style(curve) }));
    this.now.replaceChildren(makeSvg("line", { x1: at, x2: at, y1: EDGE.top, y2: this.size[1] - EDGE.bottom }), ...dots);
  }
}

function mix(a, b, share) {
  return a + (b - a) * share;
}

/** Return the height of a curve at x, straight between its points; null outside. */
function valueAt({ x, y }, at) {
  const k = x.findIndex((value) => value >= at);
  if (k < 0 || (k === 0 && x[0] > at)) return null;
  if (k === 0 || x[k] === x[k - 1]) return y[k];
  return mix(y[k - 1], y[k], (at - x[k - 1]) / (x[k] - x[k - 1]));
}

/** Return an axis from numbers to pixels, linear or logarithmic; one that clips shows the rest at its low end. */
function makeAxis(values, log, from, to, clips = false) {
  const has = (value) => Number.isFinite(value) && (!log || clips || value > 0);
  const known = values.filter((value) => has(value) && (!log || value > 0));
  let low = known.reduce((a, b) => Math.min(a, b), Infinity);
  let high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!known.length) [low, high] = [log ? 1 : 0, log ? 10 : 1];
  if (!log && low > 0 && low < 0.5 * high) low = 0;
  if (high <= low) [low, high] = log ? [low / 10, high * 10] : [low - 0.5, high + 0.5];
  const place = (value) => (log ? Math.log10(clips ? Math.max(value, low) : value) : value);
  const [first, span] = [place(low), place(high) - place(low)];
  return {
    log,
    has,
    pixel: (value) => from + ((place(value) - first) / span) * (to - from),
    value: (pixel) => {
      const at = first + Math.max(0, Math.min(1, (pixel - from) / (to - from))) * span;
      return log ? 10 ** at : at;
    },
    ticks: (about) => (log ? powers(first, first + span, about) : ticks(low, high, about).found.filter((value) => Number.isFinite(value))),
    write: (value) => (log ? writePower(value) : writeRound(value)),
  };
}

/** Return powers of ten in a range, about so many; with 2 and 5 between them if they are few. */
function powers(first, last, about) {
  const [low, high] = [Math.ceil(first - 1e-9), Math.floor(last + 1e-9)];
  const step = Math.max(1, Math.ceil((high - low) / about));
  const found = [];
  for (let k = Math.ceil(low / step) * step; k <= high; k += step) found.push(10 ** k);
  if (found.length > 1) return found;
  return [1, 2, 5].flatMap((digit) => [low - 1, low, low + 1].map((k) => digit * 10 ** k)).filter((value) => Math.log10(value) >= first - 1e-9 && Math.log10(value) <= last + 1e-9);
}

function writePower(value) {
  const power = Math.round(Math.log10(value));
  if (Math.abs(power) <= 2 || Math.abs(value / 10 ** power - 1) > 1e-6) return String(Number(value.toPrecision(1)));
  return `10${String(power).replaceAll(/./g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)]))}`;
}

function writeRound(value) {
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) return value.toExponential(0).replace("e+", "e");
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 });
}
