// @ts-check
// Sliders, the choice of a model with its kernel, and the choice of points.

import { button, make, short } from "./draw.js";

const STEPS = 1000; // positions of a slider

/** Return a slider with a field for the exact number; `changed` gets the value and a gesture. */
export function makeSlider(id, slider, value, changed) {
  const { low, high, log, whole } = slider;
  const round = (number) => (whole ? Math.round(number) : Number(number.toPrecision(3)));
  const clip = (number) => Math.min(high, Math.max(low, number));
  const toPosition = (number) =>
    STEPS * (log ? Math.log(number / low) / Math.log(high / low) : (number - low) / (high - low));
  const toValue = (position) =>
    clip(round(log ? low * (high / low) ** (position / STEPS) : low + ((high - low) * position) / STEPS));
  const range = make("input", { type: "range", id, min: 0, max: STEPS, step: "any", title: slider.help });
  const field = make("input", { type: "text", inputmode: "decimal", class: "number", "aria-label": `${slider.symbol}, exact value` });
  let gesture = 0;
  const set = (number) => {
    range.value = String(toPosition(number));
    range.setAttribute("aria-valuetext", short(number));
    range.style.setProperty("--filled", `${toPosition(number) / (STEPS / 100)}%`);
    if (document.activeElement !== field) field.value = short(number);
  };
  const say = (number, name) => {
    set(number);
    changed(number, name);
  };
  range.addEventListener("input", () => say(toValue(Number(range.value)), `${id}-${gesture}`));
  range.addEventListener("change", () => (gesture += 1));
  range.addEventListener("keydown", (event) => {
    const turn = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 }[event.key];
    if (!turn) return;
    event.preventDefault();
    const span = whole ? (high - low) / 1 : 40;
    let position = Number(range.value) + (turn * STEPS) / span;
    let number = toValue(Math.min(STEPS, Math.max(0, position)));
    if (whole && log) number = clip(toValue(Number(range.value)) + turn);
    say(number, `${id}-${gesture}`);
  });
  field.addEventListener("change", () => {
    const number = Number(field.value.replace(",", "."));
    const known = field.value.trim() !== "" && Number.isFinite(number);
    field.blur();
    if (known) say(clip(whole ? Math.round(number) : number), "");
    else set(toValue(Number(range.value)));
  });
  set(value);
  const element = make(
    "div",
    { class: "slider" },
    make("label", { for: id, text: slider.symbol, title: slider.help }),
    range,
    field,
  );
  return { element, set };
}

/** Return the names of sliders that an expression for a kernel mentions. */
export function namesIn(kernel, catalogue) {
  return catalogue.kernel_sliders.filter((name) => new RegExp(`\\b${name}\\b`).test(kernel));
}

/** The card with which the model of one pane is chosen. */
export class ModelCard {
  constructor(studio, pane) {
    this.studio = studio;
    this.pane = pane;
    const { models } = studio.catalogue;
    const options = Object.entries(models).map(([name, model]) => make("option", { value: name, text: model.title }));
    this.select = make("select", { id: `${studio.id}-model-${pane}`, onchange: () => this.choose() }, ...options);
    this.help = make("p", { class: "help" });
    this.sliders = make("div", { class: "sliders" });
    this.kernel = this.buildKernel();
    this.element = make(
      "div",
      { class: "model" },
      make("label", { for: this.select.id, text: "Model", class: "visually-hidden" }),
      this.select,
      this.help,
      this.kernel,
      this.sliders,
    );
    this.shown = "";
    this.update(studio.store.state);
  }

  buildKernel() {
    const { studio, pane } = this;
    const id = `${studio.id}-kernel-${pane}`;
    this.text = make("input", { id, type: "text", spellcheck: "false", maxlength: 200, "aria-describedby": `${id}-message`, oninput: () => this.type() });
    this.message = make("p", { id: `${id}-message`, class: "message", "aria-live": "polite" });
    const kernels = studio.catalogue.kernels ?? [];
    const choices = () => kernels.map((kernel) => make("option", { value: kernel.call, text: kernel.name, title: kernel.help }));
    const pick = (title, apply) => {
      const select = make("select", { "aria-label": title, title }, make("option", { value: "", text: title }), ...choices());
      select.addEventListener("change", () => {
        if (select.value) this.setKernel(apply(this.current(), select.value));
        select.value = "";
      });
      return select;
    };
    return make(
      "fieldset",
      { class: "kernel" },
      make("legend", { text: "Kernel" }),
      make("label", { for: id, text: "Expression", class: "visually-hidden" }),
      this.text,
      make(
        "div",
        { class: "builder" },
        pick("Choose", (_, chosen) => chosen),
        pick("+ Add", (kernel, chosen) => `${kernel} + ${chosen}`),
        pick("× Multiply", (kernel, chosen) => `${/[+]/.test(kernel) ? `(${kernel})` : kernel} * ${chosen}`),
      ),
      this.message,
    );
  }

  current() {
    const { model, kernel } = this.studio.store.state.panes[this.pane];
    return kernel || this.studio.catalogue.models[model].kernel;
  }

  choose() {
    const known = this.studio.catalogue.models[this.select.value];
    const kept = known.kernel && this.studio.catalogue.models[this.studio.store.state.panes[this.pane].model]?.kernel;
    this.studio.cause = performance.now();
    this.studio.store.changePane(this.pane, { model: this.select.value, kernel: kept ? this.current() : known.kernel });
  }

  setKernel(kernel) {
    this.studio.cause = performance.now();
    this.studio.store.changePane(this.pane, { kernel });
    this.text.value = kernel;
    this.check(kernel);
  }

  /** Take over what is typed as soon as it can be read. */
  type() {
    const kernel = this.text.value.trim();
    const { parameters } = this.studio.store.state.panes[this.pane];
    this.studio.link.latest(`kernel${this.pane}`, { type: "kernel", text: kernel, parameters }, (reply) => {
      if (reply.ok && kernel) this.studio.store.changePane(this.pane, { kernel }, `type-${this.pane}`);
      this.say(reply);
    });
  }

  check(kernel) {
    const { parameters } = this.studio.store.state.panes[this.pane];
    this.studio.link.latest(`kernel${this.pane}`, { type: "kernel", text: kernel, parameters }, (reply) => this.say(reply));
  }

  say(reply) {
    this.message.textContent = reply.ok ? "" : reply.message;
    this.text.setAttribute("aria-invalid", String(!reply.ok));
  }

  update(state) {
    const pane = state.panes[this.pane];
    if (!pane) return;
    const { models, sliders } = this.studio.catalogue;
    const model = models[pane.model];
    const names = [...model.sliders, ...namesIn(model.kernel ? this.current() : "", this.studio.catalogue)];
    this.select.value = pane.model;
    this.help.textContent = model.help;
    this.kernel.hidden = !model.kernel;
    if (document.activeElement !== this.text) this.text.value = this.current();
    const wanted = names.join(" ");
    if (wanted !== this.shown) {
      this.shown = wanted;
      this.parts = Object.fromEntries(names.map((name) => [name, this.makePart(name, sliders[name], pane)]));
      this.sliders.replaceChildren(...names.map((name) => this.parts[name].element));
    }
    for (const name of names) this.parts[name].set(pane.parameters[name] ?? sliders[name].default);
  }

  makePart(name, slider, pane) {
    const id = `${this.studio.id}-${name}-${this.pane}`;
    return makeSlider(id, slider, pane.parameters[name] ?? slider.default, (value, gesture) => {
      const { parameters } = this.studio.store.state.panes[this.pane];
      this.studio.cause = performance.now();
      this.studio.store.changePane(this.pane, { parameters: { ...parameters, [name]: value } }, gesture);
    });
  }
}

/** The card with which points are made: presets with their sliders, tables, and all away. */
export class PointsCard {
  constructor(studio) {
    this.studio = studio;
    const { presets } = studio.catalogue;
    this.values = {};
    this.seed = 0;
    const options = presets.map((preset) => make("option", { value: preset.name, text: preset.title }));
    this.select = make("select", { id: `${studio.id}-preset`, onchange: () => this.choose() }, make("option", { value: "", text: "Choose an example…" }), ...options);
    this.sliders = make("div", { class: "sliders" });
    this.file = make("input", { type: "file", accept: ".csv,.tsv,.txt,text/csv", class: "visually-hidden", tabindex: "-1", "aria-label": "CSV file", onchange: () => this.openFile(this.file.files[0]) });
    this.columns = make("div", { class: "columns" });
    this.message = make("p", { class: "message", "aria-live": "polite" });
    this.again = button("Draw again", "Draw the example again with other random numbers", () => this.draw(this.seed + 1), { hidden: true });
    this.element = make(
      "section",
      { class: "card points-card", "aria-label": "Points" },
      make("h2", { text: "Points" }),
      make("label", { for: this.select.id, text: "Example", class: "visually-hidden" }),
      this.select,
      this.sliders,
      make("div", { class: "buttons" }, this.again, button("Open CSV…", "Open a CSV file; it can also be dropped onto the page", () => this.file.click()), button("Clear", "Delete all points", () => studio.store.change({ points: [] })), this.file),
      this.columns,
      this.message,
    );
  }

  /** Begin with an example. */
  start(name) {
    this.select.value = name;
    this.choose();
  }

  choose() {
    const preset = this.studio.catalogue.presets.find((known) => known.name === this.select.value);
    this.again.hidden = !preset;
    this.sliders.replaceChildren();
    this.columns.replaceChildren();
    if (!preset) return;
    this.values = {};
    for (const [name, slider] of Object.entries(preset.sliders)) {
      this.values[name] = slider.default;
      const part = makeSlider(`${this.studio.id}-preset-${name}`, slider, slider.default, (value, gesture) => {
        this.values[name] = value;
        this.draw(this.seed, gesture);
      });
      this.sliders.append(part.element);
    }
    this.draw(0);
  }

  draw(seed, gesture = "") {
    this.seed = seed;
    const request = { type: "preset", name: this.select.value, parameters: { ...this.values }, seed };
    this.studio.link.latest("points", request, (reply) => this.take(reply, gesture), (error) => this.say(error.message));
  }

  async openFile(file) {
    if (!file) return;
    if (file.size > 1_900_000) {
      this.say(`${file.name} has ${short(file.size / 1e6)} MB; at most 1.9 MB can be read here.`);
      return;
    }
    this.table = await file.text();
    this.file.value = "";
    this.ask(null, null);
  }

  /** Ask for the points of the table, in two of its columns. */
  ask(columns, label) {
    const request = { type: "table", text: this.table, columns, label };
    this.studio.link.latest("points", request, (reply) => this.takeTable(reply), (error) => this.say(error.message));
  }

  takeTable(reply) {
    this.select.value = "";
    this.again.hidden = true;
    this.sliders.replaceChildren();
    this.take(reply);
    const numeric = reply.columns.map((column, k) => [k, column]).filter(([, column]) => column.numeric);
    const all = reply.columns.map((column, k) => [k, column]);
    const { columns, label } = reply.chosen;
    const pick = (title, entries, value, apply) =>
      make(
        "label",
        { text: `${title} ` },
        make("select", { onchange: (event) => apply(Number(event.target.value)) }, ...entries.map(([k, column]) => make("option", { value: k, text: column.name, selected: k === value }))),
      );
    this.columns.replaceChildren(
      pick("Across", numeric, columns[0], (k) => this.ask([k, columns[1]], label)),
      pick("Up", numeric, columns[1], (k) => this.ask([columns[0], k], label)),
      pick("Class", [[-1, { name: "none" }], ...all], label ?? -1, (k) => this.ask(columns, k)),
    );
  }

  /** Show points that Python made or read. */
  take(reply, gesture = "") {
    const points = reply.x.map((x, k) => [x, reply.y[k], reply.label[k]]);
    const names = [...reply.names, ..."ABCDE".slice(reply.names.length)];
    this.studio.cause = performance.now();
    this.studio.store.change({ points, names, view: reply.view }, gesture);
    this.say(reply.message ?? "");
  }

  say(message) {
    this.message.textContent = message;
  }
}
