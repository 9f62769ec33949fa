// @ts-check
// The studio: it puts the page together, and asks Python for a picture after each change.
//
// Every part of the page is an object with an `element`, made with the studio, from which it takes
// what it needs:
//
//   studio.store      the state (state.js): store.state, store.change(patch, gesture), store.undo() …
//   studio.link       requests to Python (link.js): await link.ask(request), link.latest(name, …)
//   studio.catalogue  models, sliders, presets, kernels and lessons, as Python offers them
//   studio.plots      the plots of the panes (plot.js): plot.show(frame) shows a moment of a run
//   studio.scene(k)   points, model and view of pane k, as requests have them
//   studio.ui         what is not worth undoing: the tool and the class in the hand
//   studio.announce   says a sentence to screen readers
//   studio.cause      when the user did what led to the next request, to measure the answer
//
// and an `update(state, before)`, if it has to follow the state.

import { DiagnosisCard, FactsCard } from "./facts.js";
import { LessonPanel } from "./lesson.js";
import { LiftView } from "./lift.js";
import { Link, SocketCarrier, WidgetCarrier } from "./link.js";
import { ModelCard, PointsCard } from "./controls.js";
import { Plot } from "./plot.js";
import { ProjectionView } from "./projection.js";
import { Timeline } from "./timeline.js";
import { EMPTY, Store, fromFragment, keepKnown, readState, toFragment } from "./state.js";
import { SHAPES, button, make, makeSvg } from "./draw.js";
import { makeExportMenu } from "./exports.js";

const BUSY = 300; // milliseconds after which a fit is said to be running
const TOOLS = [
  ["point", "Draw", "Draw and drag points; right-click deletes"],
  ["spray", "Spray", "Spray clouds of points"],
  ["erase", "Erase", "Erase points"],
  ["pan", "Move", "Move the view; the wheel zooms"],
];
const SHOWN = [
  ["field", "Score", "The decision function as a background"],
  ["margins", "Margin", "The lines f = ±1"],
  ["slack", "Slack", "How far points are from the right side of their margin"],
  ["separability", "Separable?", "A line that separates the classes, or points whose hulls meet"],
];
const KEYS =
  "Arrow keys move the cursor or the chosen point, with Shift in larger steps. Enter draws a point. " +
  "N and P choose the next and the previous point. Delete removes it. 1 to 5 set the class. " +
  "Plus and minus zoom. Escape lets go.";

let count = 0;

/** Light or dark: as it was chosen here before, or else as the system has it. */
class Theme {
  constructor(root) {
    this.root = root;
    this.system = window.matchMedia("(prefers-color-scheme: dark)");
    this.follow = () => this.apply();
    this.system.addEventListener("change", this.follow);
    try {
      this.chosen = localStorage.getItem("maxmargin-theme");
    } catch {
      this.chosen = null; // some notebooks give pages no storage: a choice holds until they close
    }
    this.apply();
  }

  apply() {
    this.root.dataset.theme = this.chosen ?? (this.system.matches ? "dark" : "light");
  }

  turn() {
    this.chosen = this.root.dataset.theme === "dark" ? "light" : "dark";
    this.apply();
    try {
      localStorage.setItem("maxmargin-theme", this.chosen);
    } catch {
      // As above.
    }
  }

  close() {
    this.system.removeEventListener("change", this.follow);
  }
}

export class Studio {
  constructor(root, carrier) {
    count += 1;
    this.id = `mm${count}`;
    this.root = root;
    this.link = new Link(carrier);
    this.store = new Store(EMPTY);
    this.ui = { tool: "point", label: 0 };
    this.changed = (_state) => {}; // called after each change
    this.plots = [];
    this.cards = [];
    this.cause = 0;
    this.theme = new Theme(root);
    root.classList.add("mm-studio");
    root.replaceChildren(make("p", { class: "loading", role: "status", text: "Starting…" }));
  }

  /** Ask what Python offers, build the page, and show a state. */
  async start(state = null) {
    this.catalogue = await this.link.ask({ type: "hello" });
    this.store = new Store(state ? this.checked(state) : EMPTY);
    this.build();
    this.store.subscribe((now, before) => this.update(now, before));
    this.link.unasked = (reply) => reply.type === "points" && this.points.take(reply);
    this.panesChanged();
    if (this.catalogue.lesson) this.lesson.open(this.catalogue.lesson);
    else if (!state && !this.catalogue.given) this.points.start("gaussians");
  }

  /** Return a state without what Python does not know. */
  checked(state) {
    return keepKnown(state, this.catalogue);
  }

  // -------------------------------------------------------------------------------- the page

  build() {
    this.live = make("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
    this.banner = make("p", { class: "banner", role: "alert", hidden: true });
    this.notice = make("p", { class: "notice", role: "alert", hidden: true });
    this.points = new PointsCard(this);
    this.diagnosis = new DiagnosisCard(this);
    this.timeline = new Timeline(this);
    this.timeline.offer(this.store.state);
    this.lift = new LiftView(this);
    this.lesson = new LessonPanel(this);
    this.models = make("div", { class: "models" });
    this.stage = make("div", { class: "plots" });
    this.keys = make("p", { id: `${this.id}-keys`, class: "visually-hidden", text: KEYS });
    const side = make("aside", { class: "side", "aria-label": "Model and data" }, this.points.element, this.models, this.diagnosis.element);
    const main = make("main", { class: "stage" }, this.makeToolbar(), this.stage, this.timeline.element);
    this.root.replaceChildren(this.makeHeader(), this.banner, this.notice, make("div", { class: "body" }, this.lesson.element, main, side), this.keys, this.live);
    this.root.addEventListener("keydown", (event) => this.shortcut(event));
    this.root.addEventListener("dragover", (event) => event.preventDefault());
    this.root.addEventListener("drop", (event) => {
      event.preventDefault();
      this.points.openFile(event.dataTransfer.files[0]);
    });
  }

  makeHeader() {
    this.undoButton = button("↶", "Undo", () => this.store.undo());
    this.redoButton = button("↷", "Redo", () => this.store.redo());
    this.compareButton = button("Compare", "Show a second model side by side on the same points", () => this.compare());
    this.liftButtons = make("select", { "aria-label": "Lift into three dimensions", title: "Lift into three dimensions", onchange: (event) => this.store.change({ lift: event.target.value || null }) });
    this.liftButtons.append(make("option", { value: "", text: "Flat" }), make("option", { value: "circle", text: "Circle lift" }), make("option", { value: "gaussian", text: "Gaussian lift" }));
    const logo = makeSvg("svg", { viewBox: "0 0 24 24", class: "logo", "aria-hidden": "true" }, makeSvg("path", { d: "M3,21L21,3M1,15L15,1M9,23L23,9" }));
    return make(
      "header",
      { class: "top" },
      make("h1", {}, logo, make("span", { text: "maxmargin studio" })),
      make("div", { class: "group" }, this.undoButton, this.redoButton),
      make("div", { class: "group" }, this.compareButton, this.liftButtons),
      make("div", { class: "group end" }, this.makeLessonMenu(), makeExportMenu(this), button("◐", "Light or dark", () => this.theme.turn())),
    );
  }

  makeLessonMenu() {
    const lessons = this.catalogue.lessons ?? [];
    const select = make("select", { class: "lessons", "aria-label": "Lesson", title: "Lesson", onchange: () => this.lesson.open?.(select.value) });
    select.append(make("option", { value: "", text: "Lessons" }), ...lessons.map((lesson) => make("option", { value: lesson.id, text: lesson.title })));
    this.lessonSelect = select;
    return select;
  }

  makeToolbar() {
    this.toolButtons = TOOLS.map(([tool, text, help]) => button(text, help, () => this.chooseTool(tool), { "aria-pressed": String(tool === this.ui.tool) }));
    this.labelButtons = SHAPES.map((shape, label) => {
      const chip = button("", "", () => this.chooseLabel(label), { class: `chip c${label}`, "aria-pressed": String(label === this.ui.label) });
      chip.append(makeSvg("svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" }, makeSvg("path", { d: shape, class: `point c${label}` })), make("span", { class: "name" }));
      return chip;
    });
    this.showBoxes = SHOWN.map(([name, text, help]) => {
      const box = make("input", { type: "checkbox", onchange: () => this.store.replace({ show: { ...this.store.state.show, [name]: box.checked } }) });
      return [name, box, make("label", { title: help }, box, text)];
    });
    return make(
      "div",
      { class: "toolbar", role: "toolbar", "aria-label": "Drawing" },
      make("div", { class: "group segmented" }, ...this.toolButtons),
      make("div", { class: "group chips" }, ...this.labelButtons),
      make("div", { class: "group shown" }, ...this.showBoxes.map(([, , label]) => label)),
      make("div", { class: "group end" }, button("Fit view", "Show all points", () => this.showAll())),
    );
  }

  // --------------------------------------------------------------------------- what users do

  shortcut(event) {
    if (!(event.ctrlKey || event.metaKey) || /^(input|textarea|select)$/i.test(event.target.tagName)) return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) this.store.undo();
    else if (key === "y" || (key === "z" && event.shiftKey)) this.store.redo();
    else return;
    event.preventDefault();
  }

  chooseTool(tool) {
    this.ui.tool = tool;
    this.toolButtons.forEach((element, k) => element.setAttribute("aria-pressed", String(TOOLS[k][0] === tool)));
    this.root.dataset.tool = tool;
    for (const plot of this.plots) plot.drawMarks();
  }

  chooseLabel(label) {
    this.ui.label = label;
    this.labelButtons.forEach((element, k) => element.setAttribute("aria-pressed", String(k === label)));
    this.announce(`Class ${this.store.state.names[label]}.`);
  }

  addPoints(points, gesture = "") {
    const { state } = this.store;
    const space = this.catalogue.limits.points - state.points.length;
    if (space < points.length) this.announce(`There are ${state.points.length} points: no more can be drawn.`);
    this.store.change({ points: [...state.points, ...points.slice(0, Math.max(0, space))] }, gesture);
  }

  lookAt(view) {
    this.store.replace({ view });
  }

  showAll() {
    const { points } = this.store.state;
    if (!points.length) return this.lookAt(EMPTY.view);
    const range = (values) => {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const more = 0.12 * (high - low) || 1;
      return [low - more, high + more];
    };
    return this.lookAt([...range(points.map((p) => p[0])), ...range(points.map((p) => p[1]))]);
  }

  compare() {
    const { panes } = this.store.state;
    if (panes.length === 2) this.store.change({ panes: panes.slice(0, 1) });
    else this.store.change({ panes: [...panes, { ...panes[0], model: panes[0].model === "LinearSVC" ? "SVC" : "LinearSVC", kernel: "" }], lift: null });
  }

  /** Stop what is computed for a pane; unless something newer was asked for, nothing will come. */
  async cancel(pane) {
    await this.link.ask({ type: "cancel", pane }).catch(() => {});
    const fits = this.link.channels.get(`fit${pane}`);
    if (this.plots[pane] && !fits?.flying && !fits?.pending) this.rest(this.plots[pane]);
  }

  /** Say that no fit is running any more. */
  rest(plot) {
    clearTimeout(plot.busy);
    plot.busy = null;
    this.cards[plot.pane]?.facts.wait(false);
  }

  announce(sentence) {
    this.live.textContent = sentence;
  }

  /** Say a sentence that stays until it is closed. */
  tell(sentence) {
    const close = button("✕", "Close this message", () => (this.notice.hidden = true));
    this.notice.replaceChildren(make("span", { text: sentence }), close);
    this.notice.hidden = false;
  }

  /** Show the state that a link holds, or say why it cannot be read. */
  async openLink(link) {
    const found = await fromFragment(link);
    if (found?.state) this.showState(found.state);
    if (found?.message) this.tell(found.message);
  }

  /** Show a state that a lesson or a link gives, as one step that can be undone. */
  showState(state) {
    const known = this.checked(state);
    this.points.forget(known.points);
    this.store.change(known);
  }

  // ------------------------------------------------------------------------- after a change

  update(state, before) {
    if (state.panes.length !== before.panes.length || state.lift !== before.lift) this.panesChanged();
    for (const plot of this.plots) {
      if (state.view !== before.view) plot.look();
      else plot.update(state, before);
    }
    for (const { model } of this.cards) model.update(state);
    if (state.show !== before.show) {
      for (const plot of this.plots) {
        plot.paintField();
        plot.redraw();
      }
    }
    this.reflect(state);
    const moved = state.points !== before.points || state.view !== before.view;
    const asked = state.show.separability !== before.show.separability;
    state.panes.forEach((pane, k) => (moved || asked || pane !== before.panes[k]) && this.refit(k));
    for (const part of [this.timeline, this.lift, this.lesson]) part.update(state, before);
    this.changed(state);
  }

  /** Show the state in buttons and boxes. */
  reflect(state) {
    this.undoButton.disabled = !this.store.past.length;
    this.redoButton.disabled = !this.store.future.length;
    this.compareButton.setAttribute("aria-pressed", String(state.panes.length === 2));
    this.liftButtons.value = state.lift ?? "";
    for (const [name, box] of this.showBoxes) box.checked = state.show[name];
    const counts = [0, 0, 0, 0, 0];
    for (const point of state.points) counts[point[2]] += 1;
    this.labelButtons.forEach((chip, k) => {
      chip.querySelector(".name").textContent = state.names[k];
      const help = `Draw points of class ${state.names[k]} (${counts[k]} so far)`;
      chip.setAttribute("aria-label", help);
      chip.title = help;
    });
  }

  /** Build the plots and the cards of the panes anew. */
  panesChanged() {
    const { state } = this.store;
    for (const plot of this.plots) {
      clearTimeout(plot.busy);
      plot.close();
    }
    this.plots = state.panes.map((_, k) => new Plot(this, k));
    this.cards = state.panes.map((_, k) => ({ model: new ModelCard(this, k), facts: new FactsCard(this, k), projection: new ProjectionView(this) }));
    this.stage.replaceChildren(...this.plots.map((plot) => plot.element), this.lift.element);
    const several = state.panes.length > 1;
    this.models.replaceChildren(
      ...this.cards.map(({ model, facts, projection }, k) =>
        make("section", { class: "card", "aria-label": several ? `Model ${k + 1}` : "Model" }, make("h2", { text: several ? (k ? "Right model" : "Left model") : "Model" }), model.element, facts.element, projection.element),
      ),
    );
    this.root.classList.toggle("two", several || state.lift !== null);
    this.chooseTool(this.ui.tool);
    this.reflect(state);
    this.lift.update(state, EMPTY);
    for (const plot of this.plots) plot.resize(); // at once: a pointer may be on it already
  }

  // ------------------------------------------------------------------- what Python is asked

  /** Return points, model and view of a pane, as requests have them. */
  scene(k) {
    const { points, panes, view } = this.store.state;
    const { models, sliders } = this.catalogue;
    const pane = panes[k];
    const known = [...models[pane.model].sliders, ...this.catalogue.kernel_sliders];
    return {
      x: points.map((p) => p[0]),
      y: points.map((p) => p[1]),
      label: points.map((p) => p[2]),
      model: pane.model,
      parameters: Object.fromEntries(known.map((name) => [name, pane.parameters[name] ?? sliders[name].default])),
      kernel: models[pane.model].kernel ? pane.kernel || models[pane.model].kernel : "",
      view: this.plots[k]?.scale ? this.plots[k].seen() : view,
    };
  }

  /** Ask for the picture of a pane; changes within the same event are asked about once. */
  refit(k) {
    const plot = this.plots[k];
    if (!plot || plot.scheduled) return;
    plot.scheduled = true;
    queueMicrotask(() => {
      plot.scheduled = false;
      if (plot !== this.plots[k] || !plot.scale) return;
      const { state } = this.store;
      const { cause } = this;
      const card = this.cards[k].facts;
      const request = { type: "fit", pane: k, ...this.scene(k), grid: plot.cells(), wants: state.show.separability ? ["separability"] : [] };
      plot.busy ??= setTimeout(() => card.wait(true), BUSY);
      this.link.latest(
        `fit${k}`,
        request,
        (picture) => {
          if (plot !== this.plots[k]) return;
          this.rest(plot);
          if (picture.type !== "picture") return;
          plot.draw(picture);
          card.show(picture);
          this.cards[k].projection.show(picture.projection);
          this.painted(plot, picture, cause);
        },
        (error) => {
          if (plot !== this.plots[k]) return;
          this.rest(plot);
          card.fail(error.message);
        },
      );
    });
  }

  /** Tell when the picture has been painted, and how long after its cause. */
  painted(plot, picture, cause) {
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        plot.element.dataset.seq = picture.seq;
        const detail = { pane: plot.pane, seq: picture.seq, milliseconds: performance.now() - cause };
        this.root.dispatchEvent(new CustomEvent("studio:painted", { detail }));
        channel.port1.close();
      };
      channel.port2.postMessage(null);
    });
  }

  close() {
    this.theme.close();
    this.timeline?.close();
    this.lift?.close();
    for (const plot of this.plots) plot.close();
    this.link.abandon("The page was closed.");
  }
}

// ---------------------------------------------------------------------- the page, and the widget

/** Run the studio as a page of its own: its state is in the fragment of the URL. */
export async function openPage(root) {
  const { protocol, host, search } = window.location;
  const scheme = protocol === "https:" ? "wss:" : "ws:";
  let studio = null;
  const carrier = new SocketCarrier(`${scheme}//${host}/socket${search}`, (connection) => {
    if (!studio?.banner) return;
    studio.banner.hidden = connection === "open";
    studio.banner.textContent = "The connection to Python is lost. Is maxmargin studio still running? Trying again…";
    if (connection === "open") studio.plots.forEach((_, k) => studio.refit(k));
    else studio.link.abandon("The connection to Python is lost.");
  });
  studio = new Studio(root, carrier);
  const found = await fromFragment(window.location.hash);
  await studio.start(found?.state ?? null);
  if (found?.message) studio.tell(found.message);
  let timer = 0;
  let written = "";
  const write = async () => {
    written = `#${await toFragment(studio.store.state)}`;
    window.history.replaceState(null, "", written);
  };
  studio.changed = () => {
    clearTimeout(timer);
    timer = setTimeout(write, 400);
  };
  window.addEventListener("hashchange", () => {
    if (window.location.hash !== written) studio.openLink(window.location.hash);
  });
  return studio;
}

/** The studio as an anywidget. */
function render({ model, el }) {
  const root = make("div", { class: "in-notebook" });
  el.append(root);
  const carrier = new WidgetCarrier(model);
  const studio = new Studio(root, carrier);
  studio.start(readState(model.get("state")));
  return () => {
    studio.close();
    carrier.close();
  };
}

export default { render };
