// @ts-check
// Sliders, the choice of a model with its kernel, and the choice of points.

import { button, make, short } from "./draw.js";

const LARGEST_REQUEST = 1_990_000; // bytes; Python takes two million
const LONGEST_EXPRESSION = 200; // characters

let gestures = 0; // each use of a slider is undone as a whole

// ------------------------------------------------------------------------------------- sliders

/** Return the round number, 1, 2 or 5 times a power of ten, just below a number. */
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [5, 2, 1].find((factor) => factor * power <= rough * (1 + 1e-9));
}

/** Return a number without what rounding added to its digits. */
function tidy(number) {
  return Number(number.toPrecision(12));
}

/** Return how a slider moves: from numbers to positions and back, and by keys. */
function makeTravel({ low, high, log, whole }) {
  const clip = (number) => Math.min(high, Math.max(low, number));
  const round = (number) => clip(whole ? Math.round(number) : Number(number.toPrecision(3)));
  const step = whole ? 1 : roundStep((high - low) / 40);
  // A number that was rounded to a few digits counts as the step that it was rounded from.
  const next = (at, by) => (by > 0 ? Math.floor(at + 0.05) : Math.ceil(at - 0.05)) + by;
  return {
    ends: log ? [Math.log10(low), Math.log10(high)] : [low, high],
    toPosition: (number) => (log ? Math.log10(number) : number),
    toNumber: (position) => round(log ? 10 ** position : position),
    limit: (number) => clip(whole ? Math.round(number) : number),
    /** Return the number after some steps: tenths of a power of ten, or round distances. */
    move(number, by) {
      if (!log) return clip(tidy(next(number / step, by) * step));
      const moved = round(10 ** (next(10 * Math.log10(number), by) / 10));
      return whole && moved === number ? clip(number + Math.sign(by)) : moved;
    },
  };
}

/** Return a slider with a field for the exact number; `changed` gets the value and a gesture. */
export function makeSlider(id, slider, value, changed) {
  const scale = makeTravel(slider);
  const [min, max] = scale.ends;
  const range = make("input", { type: "range", id, min, max, step: "any", title: slider.help });
  const field = make("input", {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    class: "number",
    title: `From ${short(slider.low)} to ${short(slider.high)}`,
    "aria-label": `${slider.symbol}, exact value from ${short(slider.low)} to ${short(slider.high)}`,
  });
  let shown = value;
  let typing = false;
  const set = (number) => {
    shown = number;
    const position = scale.toPosition(number);
    range.value = String(position);
    range.setAttribute("aria-valuetext", short(number));
    range.style.setProperty("--filled", `${(100 * (position - min)) / (max - min)}%`);
    if (!typing) field.value = String(tidy(number));
  };
  const say = (number) => {
    set(number);
    changed(number, `${id}-${gestures}`);
  };
  const end = () => (gestures += 1);
  const step = (event) => {
    const by = { ArrowDown: -1, ArrowUp: 1, PageUp: 10, PageDown: -10, ...(event.target === range ? { ArrowLeft: -1, ArrowRight: 1 } : {}) }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    typing = false;
    say(scale.move(shown, by));
  };
  range.addEventListener("input", () => say(scale.toNumber(Number(range.value))));
  range.addEventListener("change", end);
  for (const input of [range, field]) {
    input.addEventListener("keydown", step);
    input.addEventListener("keyup", end);
  }
  const read = () => (field.value.trim() === "" ? NaN : Number(field.value.trim().replace(",", ".")));
  const leave = () => {
    typing = false;
    field.removeAttribute("aria-invalid");
    set(shown);
  };
  field.addEventListener("input", () => {
    typing = true;
    field.toggleAttribute("aria-invalid", false);
    if (!Number.isFinite(read())) field.setAttribute("aria-invalid", "true");
  });
  field.addEventListener("change", () => {
    const number = read();
    leave();
    end();
    if (Number.isFinite(number) && scale.limit(number) !== shown) say(scale.limit(number));
    end();
  });
  field.addEventListener("blur", leave);
  field.addEventListener("keydown", (event) => event.key === "Escape" && leave());
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

// ------------------------------------------------------------------------ expressions of kernels

/** Return the names of sliders that an expression for a kernel mentions. */
export function namesIn(kernel, catalogue) {
  // In RBF(gamma=2) the name before the equals sign is no slider.
  const values = kernel.replaceAll("γ", " gamma ").replace(/\w+\s*=/g, "");
  return catalogue.kernel_sliders.filter((name) => new RegExp(`\\b${name}\\b`).test(values));
}

/** Return the terms of a sum, each with the place where it begins. */
function splitSum(kernel) {
  const terms = [{ start: 0, text: "" }];
  let depth = 0;
  for (let k = 0; k < kernel.length; k += 1) {
    const sign = kernel[k];
    depth += "([".includes(sign) ? 1 : ")]".includes(sign) ? -1 : 0;
    if (sign === "+" && depth === 0) terms.push({ start: k, text: "" });
    else terms[terms.length - 1].text += sign;
  }
  return terms.map(({ start, text }) => ({ start, text: text.trim() }));
}

/** Return an expression with the term at the cursor replaced. */
function changeTerm(kernel, cursor, change) {
  const terms = splitSum(kernel);
  const at = terms.findLastIndex(({ start }) => start <= cursor);
  return terms.map(({ text }, k) => (k === at ? change(text) : text)).join(" + ");
}

/** Return a product or a sum in parentheses, other terms as they are. */
function enclose(term) {
  let depth = 0;
  for (const sign of term) {
    depth += "([".includes(sign) ? 1 : ")]".includes(sign) ? -1 : 0;
    if (depth === 0 && "+*^".includes(sign)) return `(${term})`;
  }
  return term;
}

/** Return a term times a number, which is joined with the number that it begins with. */
function scaleTerm(term, factor) {
  const [, number, rest] = /^([\d.]+(?:e[+-]?\d+)?)\s*\*(?!\*)\s*(.+)$/i.exec(term) ?? [null, "1", term];
  const product = tidy(Number(number) * factor);
  return product === 1 ? rest : `${product} * ${rest}`;
}

/** Return a term with its power one higher. */
function raiseTerm(term) {
  const [, base, power] = /^([^*^]+|\(.+\))\s*(?:\*\*|\^)\s*(\d)$/.exec(term) ?? [null, null, null];
  const whole = base && enclose(base.trim()) === base.trim();
  return whole ? `${base.trim()}**${Number(power) + 1}` : `${enclose(term)}**2`;
}

// ---------------------------------------------------------------------------------- the model

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
    this.shown = null; // names of the sliders
    this.written = null; // the kernel in the field
    this.update(studio.store.state);
  }

  buildKernel() {
    const { studio, pane } = this;
    const id = `${studio.id}-kernel-${pane}`;
    this.text = make("input", {
      id,
      type: "text",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      maxlength: LONGEST_EXPRESSION,
      "aria-describedby": `${id}-message`,
      onfocus: () => (gestures += 1),
      oninput: () => this.propose(this.text.value.trim(), `${id}-${gestures}`),
      onkeydown: (event) => event.key === "Escape" && this.write(this.current()),
    });
    this.message = make("p", { id: `${id}-message`, class: "message", "aria-live": "polite" });
    const kernels = studio.catalogue.kernels ?? [];
    const pick = (text, title, apply) => {
      const options = kernels.map((kernel) => make("option", { value: kernel.call, text: kernel.name, title: kernel.help }));
      const select = make("select", { "aria-label": title, title }, make("option", { value: "", text }), ...options);
      select.addEventListener("change", () => {
        if (select.value) this.propose(apply(this.current(), select.value));
        select.value = "";
      });
      return select;
    };
    const alter = (text, title, change) =>
      button(text, title, () => this.propose(changeTerm(this.current(), this.text.selectionStart ?? Infinity, change)));
    return make(
      "fieldset",
      { class: "kernel" },
      make("legend", { text: "Kernel" }),
      make("label", { for: id, text: "Expression of the kernel", class: "visually-hidden" }),
      this.text,
      this.message,
      make(
        "div",
        { class: "builder" },
        pick("Choose", "Choose a kernel", (_, chosen) => chosen),
        pick("+ Add", "Add a kernel", (kernel, chosen) => `${kernel} + ${chosen}`),
        pick("× Times", "Multiply by a kernel", (kernel, chosen) => `${splitSum(kernel).length > 1 ? `(${kernel})` : kernel} * ${chosen}`),
        make(
          "div",
          { class: "terms" },
          alter("×½", "Halve the term at the cursor", (term) => scaleTerm(term, 0.5)),
          alter("×2", "Double the term at the cursor", (term) => scaleTerm(term, 2)),
          alter("x²", "Raise the term at the cursor to the next power", raiseTerm),
        ),
      ),
    );
  }

  current() {
    const { model, kernel } = this.studio.store.state.panes[this.pane];
    return kernel || this.studio.catalogue.models[model].kernel;
  }

  /** Take another model; it keeps the kernel, unless that was only what the old model begins with. */
  choose() {
    const { model, kernel } = this.studio.store.state.panes[this.pane];
    const given = kernel === this.studio.catalogue.models[model].kernel;
    this.studio.cause = performance.now();
    this.studio.store.changePane(this.pane, { model: this.select.value, kernel: given ? "" : kernel });
  }

  /** Take over a kernel if Python can read it; otherwise say where it cannot. */
  propose(kernel, gesture = "") {
    const { parameters } = this.studio.store.state.panes[this.pane];
    const typed = gesture !== "";
    if (kernel.length > LONGEST_EXPRESSION) {
      this.explain(kernel, `A kernel is written in at most ${LONGEST_EXPRESSION} characters.`, null);
      return;
    }
    this.studio.cause = performance.now();
    this.studio.link.latest(
      `kernel${this.pane}`,
      { type: "kernel", text: kernel, parameters },
      (reply) => {
        if (reply.type !== "kernel") return;
        if (!typed || reply.ok) this.written = kernel;
        if (!typed && reply.ok) this.write(kernel);
        this.explain(kernel, reply.message, reply.position);
        if (reply.ok && kernel !== this.current()) this.studio.store.changePane(this.pane, { kernel }, gesture);
      },
      (error) => this.explain(kernel, error.message, null),
    );
  }

  /** Put a kernel into the field. */
  write(kernel) {
    this.written = kernel;
    if (this.text.value.trim() !== kernel) this.text.value = kernel;
    this.explain(kernel, "", null);
  }

  /** Say what is wrong with an expression, and mark the place. */
  explain(kernel, message, position) {
    this.text.setAttribute("aria-invalid", String(Boolean(message) && this.text.value.trim() === kernel));
    this.message.classList.toggle("error", Boolean(message));
    this.message.replaceChildren();
    if (!message) return;
    if (position !== null && kernel) {
      const word = /^(?:[\w.]+|.?)/u.exec(kernel.slice(position))?.[0] || " ";
      const [before, after] = [kernel.slice(0, position), kernel.slice(position + word.length)];
      this.message.append(make("code", { "aria-hidden": "true" }, before, make("mark", { text: word }), after));
    }
    const still = this.current();
    this.message.append(make("span", { text: `${message} The picture still has ${still.length > 40 ? "the kernel before it" : still}.` }));
  }

  update(state) {
    const pane = state.panes[this.pane];
    if (!pane) return;
    const { models, sliders } = this.studio.catalogue;
    const model = models[pane.model];
    const kernel = model.kernel ? this.current() : "";
    this.select.value = pane.model;
    this.help.textContent = model.help;
    this.kernel.hidden = !kernel;
    if (kernel && kernel !== this.written) this.write(kernel);
    const names = [...model.sliders, ...namesIn(kernel, this.studio.catalogue)];
    if (names.join(" ") !== this.shown) {
      this.shown = names.join(" ");
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

// --------------------------------------------------------------------------------- the points

/** The card with which points are made: presets with their sliders, tables, and all away. */
export class PointsCard {
  constructor(studio) {
    this.studio = studio;
    this.values = {};
    this.seed = 0;
    // Where points come from, so that the controls follow when they are brought back by undo.
    this.origins = new WeakMap();
    this.origin = null;
    this.lent = null; // the pane that an example replaced by one with its own model
    this.select = make(
      "select",
      { id: `${studio.id}-preset`, onchange: () => this.choose() },
      make("option", { value: "", text: "Choose an example…" }),
      ...this.makeGroups(studio.catalogue.presets),
    );
    this.sliders = make("div", { class: "sliders" });
    this.file = make("input", { type: "file", accept: ".csv,.tsv,.txt,text/csv", class: "visually-hidden", tabindex: "-1", "aria-label": "CSV file", onchange: () => this.openFile(this.file.files[0]) });
    this.columns = make("div", { class: "columns" });
    this.axes = make("p", { class: "help axes" });
    this.message = make("p", { class: "message", "aria-live": "polite" });
    this.again = button("Draw again", "Draw the example again with other random numbers", () => this.draw(this.seed + 1), { hidden: true });
    this.clear = button("Clear", "Delete all points", () => studio.store.change({ points: [] }));
    this.element = make(
      "section",
      { class: "card points-card", "aria-label": "Points" },
      make("h2", { text: "Points" }),
      make("label", { for: this.select.id, text: "Example", class: "visually-hidden" }),
      this.select,
      this.sliders,
      this.columns,
      this.axes,
      make("div", { class: "buttons" }, this.again, button("Open CSV…", "Open a CSV file; it can also be dropped onto the page", () => this.file.click()), this.clear, this.file),
      this.message,
    );
    studio.store.subscribe((state, before) => state.points !== before.points && this.follow(state));
    this.follow(studio.store.state);
  }

  makeGroups(presets) {
    const groups = new Map();
    for (const preset of presets) {
      const group = preset.group ?? "Examples";
      if (!groups.has(group)) groups.set(group, make("optgroup", { label: group }));
      groups.get(group).append(make("option", { value: preset.name, text: preset.title }));
    }
    return [...groups.values()];
  }

  /** Begin with an example. */
  start(name) {
    this.select.value = name;
    this.choose();
  }

  /** Take the example that is chosen, with all sliders where they begin. */
  choose() {
    const preset = this.findPreset(this.select.value);
    if (!preset) {
      this.show({});
      return;
    }
    this.show({ name: preset.name, values: { ...preset.default }, seed: 0 });
    this.draw(0, "", true);
  }

  findPreset(name) {
    return this.studio.catalogue.presets.find((known) => known.name === name);
  }

  /** Ask for the points of the example. */
  draw(seed, gesture = "", fresh = false) {
    this.seed = seed;
    const origin = { name: this.select.value, values: { ...this.values }, seed };
    this.studio.link.latest(
      "points",
      { type: "preset", name: origin.name, parameters: origin.values, seed },
      (reply) => reply.type === "points" && this.take(reply, gesture, { ...origin, axes: reply.axes }, fresh),
      (error) => this.say(error.message, true),
    );
  }

  // ------------------------------------------------------------------------------------ tables

  async openFile(file) {
    if (!file) return;
    if (file.size > LARGEST_REQUEST) {
      this.say(`${file.name} has ${short(file.size / 1e6)} MB; at most ${short(LARGEST_REQUEST / 1e6, 2)} MB can be read here.`, true);
      return;
    }
    const bytes = new Uint8Array(await file.arrayBuffer());
    this.file.value = "";
    this.openText(decodeText(bytes));
  }

  /** Show the points of a table. */
  openText(text) {
    this.ask(text, null, null);
  }

  /** Ask for the points of a table, in two of its columns. */
  ask(text, columns, label) {
    const request = { type: "table", text, columns, label };
    if (new Blob([JSON.stringify(request)]).size > LARGEST_REQUEST) {
      this.say("The table is too long to be read here; keep fewer rows or columns.", true);
      return;
    }
    this.studio.link.latest(
      "points",
      request,
      (reply) => reply.type === "points" && this.take(reply, "", { text, columns: reply.columns, chosen: reply.chosen, axes: reply.axes }, true),
      (error) => {
        this.show(this.origin ?? {});
        this.say(error.message, true);
      },
    );
  }

  makeColumns({ text, columns, chosen }) {
    const all = columns.map((column, k) => [k, column.name]);
    const numeric = all.filter(([k]) => columns[k].numeric);
    const [across, up] = chosen.columns;
    const label = chosen.label ?? -1;
    const pick = (title, entries, value, apply) => {
      const id = `${this.studio.id}-${title.toLowerCase()}`;
      const options = entries.map(([k, name]) => make("option", { value: k, text: name, selected: k === value }));
      return [make("label", { for: id, text: title }), make("select", { id, onchange: (event) => apply(Number(event.target.value)) }, ...options)];
    };
    // Choosing the column of the other axis swaps the two.
    return [
      ...pick("Across", numeric, across, (k) => this.ask(text, k === up ? [up, across] : [k, up], label)),
      ...pick("Up", numeric, up, (k) => this.ask(text, k === across ? [up, across] : [across, k], label)),
      ...pick("Class", [[-1, "none"], ...all], label, (k) => this.ask(text, [across, up], k)),
    ];
  }

  // ---------------------------------------------------------------------- points that arrive

  /** Say that points come from neither an example nor a table. */
  forget(points) {
    this.origins.set(points, {});
  }

  /** Show points that Python made or read. */
  take(reply, gesture = "", origin = {}, fresh = true) {
    const points = reply.x.map((x, k) => [x, reply.y[k], reply.label[k]]);
    const spare = [..."FGHIJ"].filter((letter) => !reply.names.includes(letter));
    const names = [..."ABCDE"].map((letter, k) => reply.names[k] ?? (reply.names.includes(letter) ? spare.pop() : letter));
    this.origins.set(points, origin);
    if (origin.name) this.name(origin); // its controls are there, perhaps already further on
    this.studio.cause = performance.now();
    const view = fresh || !this.fits(reply.view) ? { view: reply.view } : {};
    this.studio.store.change({ points, names, ...view, ...(fresh ? this.suit(origin) : {}) }, gesture);
    this.say(reply.message ?? "");
  }

  /** Tell whether the view can stay while a slider moves: it shows all points, and not as a dot. */
  fits([left, right, bottom, top]) {
    const [l, r, b, t] = this.studio.store.state.view;
    const inside = l <= left && right <= r && b <= bottom && top <= t;
    return inside && Math.max((right - left) / (r - l), (top - bottom) / (t - b)) > 0.6;
  }

  /** Return the pane with the model that an example is made for; the next one gives the old back. */
  suit(/** @type {{name?: string}} */ { name }) {
    const [pane, ...others] = this.studio.store.state.panes;
    const wanted = this.findPreset(name)?.model;
    const back = this.lent?.to === pane.model ? this.lent.pane : null;
    this.lent = null;
    if (!wanted) return back ? { panes: [back, ...others] } : {};
    if (wanted === pane.model && !back) return {};
    this.lent = { pane: back ?? pane, to: wanted };
    return wanted === pane.model ? {} : { panes: [{ ...pane, model: wanted, kernel: "" }, ...others] };
  }

  /** Follow the points of the state: the controls are those with which they were made. */
  follow({ points }) {
    this.clear.disabled = !points.length;
    const origin = this.origins.get(points);
    if (origin && origin !== this.origin) this.show(origin);
  }

  /** Show the controls with which points were made. */
  show(origin) {
    const preset = this.findPreset(origin.name);
    const same = preset && this.origin?.name === origin.name;
    this.name(origin);
    this.values = { ...origin.values };
    this.seed = origin.seed ?? 0;
    this.select.value = preset?.name ?? "";
    // The numbers of an example without sliders are not random.
    this.again.hidden = !preset || !Object.keys(preset.sliders).length;
    this.columns.replaceChildren(...(origin.columns ? this.makeColumns(origin) : []));
    if (same) for (const [name, part] of Object.entries(this.parts)) part.set(this.values[name]);
    else this.makeSliders(preset?.sliders ?? {});
  }

  /** Say where points come from. */
  name(origin) {
    this.origin = origin;
    this.axes.textContent = origin.axes && !origin.columns ? `Across: ${origin.axes[0]}. Up: ${origin.axes[1]}.` : "";
  }

  makeSliders(sliders) {
    const pair = ([name, slider]) => [
      name,
      makeSlider(`${this.studio.id}-preset-${name}`, slider, this.values[name], (value, gesture) => {
        this.values[name] = value;
        this.draw(this.seed, gesture);
      }),
    ];
    this.parts = Object.fromEntries(Object.entries(sliders).map(pair));
    this.sliders.replaceChildren(...Object.values(this.parts).map((part) => part.element));
  }

  say(message, wrong = false) {
    this.message.textContent = message;
    this.message.classList.toggle("error", wrong);
  }
}

/** Return the text of a file: UTF-8, UTF-16 if it says so, or what Windows wrote before. */
function decodeText(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}
