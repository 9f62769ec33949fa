// @ts-check
// What Python says about a fit: the certificate, the numbers, a legend, and what the data need.

import { KINDS, SHAPES, button, make, makeSvg, short } from "./draw.js";

/** The part of a pane's card that shows what was found. */
export class FactsCard {
  constructor(studio, pane) {
    this.studio = studio;
    this.pane = pane;
    this.about = null; // the points and the pane of the picture that is shown
    this.message = make("p", { class: "message", role: "status" });
    this.proof = new Proof();
    this.facts = make("dl", { class: "facts" });
    this.witness = make("p", { class: "witness-sentence" });
    this.legend = new Legend(studio);
    this.cancel = button("Cancel", "Stop this fit", () => studio.cancel(pane));
    this.busy = make("p", { class: "busy", hidden: true }, make("span", { class: "spinner", "aria-hidden": "true" }), make("span", { text: "Fitting…" }), this.cancel);
    this.element = make("div", { class: "found" }, this.busy, this.message, this.proof.element, this.facts, this.witness, this.legend.element);
  }

  /** Say that a fit is running; what is shown until it ends may belong to other points. */
  wait(busy) {
    this.busy.hidden = !busy;
    if (!busy) return;
    const { points, panes } = this.studio.store.state;
    this.mark(this.about?.points !== points || this.about?.pane !== panes[this.pane]);
  }

  fail(text) {
    this.message.textContent = text;
    this.message.classList.add("error");
    this.mark(true);
  }

  show(picture) {
    const { points, panes } = this.studio.store.state;
    this.about = { points, pane: panes[this.pane] };
    this.mark(false);
    this.message.textContent = picture.message;
    this.message.classList.remove("error");
    this.proof.show(picture.certificate);
    this.witness.textContent = picture.witness?.sentence ?? "";
    this.showFacts(picture.facts);
    this.legend.show(picture);
  }

  /** Grey lines and numbers that do not belong to the points. */
  mark(stale) {
    this.element.classList.toggle("stale", stale);
    this.studio.plots[this.pane]?.element.classList.toggle("stale", stale);
  }

  /** Show the numbers; those with the same names as before keep their places. */
  showFacts(facts) {
    const names = facts.map(([name]) => name).join("\n");
    if (names !== this.names) {
      this.names = names;
      this.values = facts.map(() => [make("dd"), make("dd", { class: "parts" })]);
      this.facts.replaceChildren(...facts.flatMap(([name], k) => [make("dt", { text: name }), ...this.values[k]]));
    }
    facts.forEach(([, value], k) => {
      // "24: 13 on the margin, 11 inside" is a number and what it consists of.
      const [number, parts] = /^[\d.,]+: /.test(value) ? value.split(/: (.*)/s) : [value, ""];
      this.values[k][0].textContent = number;
      this.values[k][1].textContent = parts;
    });
  }
}

/** The certificate: how many digits of the optimum are proved, and how many were asked for. */
class Proof {
  constructor() {
    this.verdict = make("strong");
    this.gap = make("span", { class: "gap" });
    this.bar = make("div", { class: "bar", role: "img", title: "How many digits of the optimum are proved; the mark is at the digits that were asked for" });
    this.sentence = make("p", { class: "sentence" });
    this.heading = make("p", {}, this.verdict, this.gap);
    this.element = make("div", { class: "proof", hidden: true }, this.heading, this.bar, this.sentence);
  }

  show(certificate) {
    this.element.hidden = !certificate;
    if (!certificate) return;
    const { proved: gap, holds, tol, sentence } = certificate;
    const digits = (number) => (number === null ? 0 : Math.max(0, Math.min(10, -Math.log10(Math.max(number, 1e-10)))));
    this.heading.className = `verdict ${holds ? "holds" : "open"}`;
    this.verdict.textContent = holds ? "✓ Proved" : "Not proved";
    // Indefinite kernels have no dual bound, and no gap.
    this.gap.textContent = gap === null ? "" : `gap ${gap === 0 ? "0" : gap.toExponential(1)}`;
    this.bar.style.setProperty("--proved", `${10 * digits(gap)}%`);
    this.bar.style.setProperty("--wanted", `${10 * digits(tol)}%`);
    this.bar.setAttribute("aria-label", `${short(digits(gap), 2)} digits are proved, ${short(digits(tol), 2)} were asked for`);
    this.sentence.textContent = sentence;
  }
}

// --------------------------------------------------------------------------------- the legend

const RINGS = {
  margin: "Support vector on the margin",
  inside: "Support vector inside the margin",
  "wrong side": "Support vector on the wrong side of the boundary",
  outside: "Support vector outside",
  mistake: "A point that the model gets wrong",
};
const LINES = {
  boundary: "Boundary between the classes, f = 0",
  margin: "Margin lines, f = ±1",
  curve: "The curve that was learned",
  tube: "The tube: within it, errors cost nothing",
  level: "Lines of equal value",
};

/** What the symbols of the picture mean: those that are in it, drawn as they are there. */
class Legend {
  constructor(studio) {
    this.list = make("dl");
    this.element = make("details", { class: "symbols", open: studio.ui.legend, hidden: true }, make("summary", { text: "What do I see?" }), this.list);
    this.element.addEventListener("toggle", () => (studio.ui.legend = this.element.open));
    this.shown = "";
  }

  show(picture) {
    const kinds = new Set(picture.rows?.kind.map((kind) => KINDS[kind]));
    const lines = new Set(picture.lines.map((line) => line.kind));
    const rings = Object.keys(RINGS).filter((kind) => kinds.has(kind));
    const alphas = new Set(picture.rows?.alpha.filter((_, k) => picture.rows.kind[k]));
    const several = picture.field?.kind === "classes"; // then there is no single f
    const entries = [
      ...Object.keys(LINES).filter((kind) => lines.has(kind)).map((kind) => [drawLine(`line ${kind}`), several && kind === "boundary" ? "Boundary between the classes" : LINES[kind]]),
      ...rings.map((kind) => [drawRing(kind, 1.3), RINGS[kind]]),
      alphas.size > 1 ? [drawSizes(), "The larger the ring, the larger α, the point’s weight"] : null,
      picture.slack.length ? [drawLine("slack-line"), "Slack ξ: how far a point is from the right side of its margin"] : null,
      picture.field ? [drawField(picture.field.kind), picture.field.kind === "classes" ? "The class that is predicted; strong where it is clear" : "The score f: one colour for each sign, strong where |f| is large"] : null,
      picture.witness?.kind === "separated" ? [drawLine("separator"), "A line that separates the classes"] : null,
      picture.witness?.kind === "overlap" ? [drawHulls(), "Points whose hulls meet: no line separates them"] : null,
    ].filter((entry) => entry);
    const wanted = entries.map(([, text]) => text).join("\n");
    this.element.hidden = !entries.length;
    if (wanted === this.shown) return;
    this.shown = wanted;
    this.list.replaceChildren(...entries.flatMap(([symbol, text]) => [make("dt", {}, symbol), make("dd", { text })]));
  }
}

function drawSymbol(...children) {
  return makeSvg("svg", { viewBox: "-22 -12 44 24", class: "symbol", "aria-hidden": "true" }, ...children);
}

function drawLine(name) {
  return drawSymbol(makeSvg("path", { d: "M-20,0H20", class: name }));
}

function drawRing(kind, size) {
  return drawSymbol(
    makeSvg("path", { d: SHAPES[0], class: "point c0" }),
    makeSvg("circle", { r: 8 * size, class: `ring ${kind.replace(" ", "-")}` }),
  );
}

function drawSizes() {
  const ring = (x, r) => [makeSvg("circle", { cx: x, r: 4, class: "point c0" }), makeSvg("circle", { cx: x, r, class: "ring" })];
  return drawSymbol(...ring(-11, 7), ...ring(10, 11));
}

function drawField(kind) {
  const box = (x, label, opacity) => makeSvg("rect", { x, y: -8, width: 10, height: 16, class: `swatch c${label}`, "fill-opacity": opacity });
  const faint = kind === "classes" ? 0.4 : 0.15;
  return drawSymbol(box(-20, 0, 0.4), box(-10, 0, faint), box(0, 1, faint), box(10, 1, 0.4));
}

function drawHulls() {
  return drawSymbol(
    makeSvg("path", { d: "M-18,-8L6,0L-14,9Z", class: "hull c0" }),
    makeSvg("path", { d: "M18,-8L-4,0L14,9Z", class: "hull c1" }),
  );
}

/** The card that says which kind of model the points need. */
export class DiagnosisCard {
  constructor(studio) {
    this.studio = studio;
    this.text = make("div", { class: "diagnosis", "aria-live": "polite" });
    this.ask = button("What do these points need?", "Diagnose which kind of model these points need", () => this.diagnose());
    this.element = make("section", { class: "card", "aria-label": "Diagnosis" }, make("h2", { text: "Diagnosis" }), this.ask, this.text);
    this.about = null;
    studio.store.subscribe((state) => this.element.classList.toggle("stale", this.about !== null && this.about !== state.points));
  }

  async diagnose() {
    const { points } = this.studio.store.state;
    this.ask.disabled = true;
    this.text.replaceChildren(make("p", { class: "busy" }, make("span", { class: "spinner", "aria-hidden": "true" }), "Comparing models by cross-validation…"));
    try {
      const reply = await this.studio.link.ask({ type: "diagnose", ...this.studio.scene(0) });
      if (reply.type === "superseded") return;
      this.about = points;
      this.element.classList.toggle("stale", points !== this.studio.store.state.points);
      const [first, ...rest] = reply.sentences;
      this.text.replaceChildren(
        make("p", { class: "verdict" }, make("strong", { text: reply.verdict })),
        make("p", { text: first ?? "" }),
        make("details", {}, make("summary", { text: "Evidence" }), ...rest.map((text) => make("p", { text }))),
        make("p", { class: "advice", text: reply.advice }),
        make("p", { class: "stale-note", text: "The points have changed since." }),
      );
    } catch (error) {
      this.text.replaceChildren(make("p", { class: "message error", text: error.message }));
    } finally {
      this.ask.disabled = false;
    }
  }
}
