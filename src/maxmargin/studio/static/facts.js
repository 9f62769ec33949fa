// @ts-check
// What Python says about a fit: the certificate, the numbers, and what the data need.

import { button, make, short } from "./draw.js";

/** The part of a pane's card that shows what was found. */
export class FactsCard {
  constructor(studio, pane) {
    this.studio = studio;
    this.pane = pane;
    this.message = make("p", { class: "message", role: "status" });
    this.proof = make("div", { class: "proof" });
    this.facts = make("dl", { class: "facts" });
    this.witness = make("p", { class: "witness-sentence" });
    this.cancel = button("Cancel", "Stop this fit", () => studio.cancel(pane));
    this.busy = make("p", { class: "busy", hidden: true }, make("span", { class: "spinner", "aria-hidden": "true" }), make("span", { text: "Fitting…" }), this.cancel);
    this.element = make("div", { class: "found" }, this.busy, this.message, this.proof, this.facts, this.witness);
  }

  wait(busy) {
    this.busy.hidden = !busy;
  }

  fail(text) {
    this.message.textContent = text;
    this.message.classList.add("error");
  }

  show(picture) {
    this.message.textContent = picture.message;
    this.message.classList.remove("error");
    this.showProof(picture.certificate);
    this.witness.textContent = picture.witness?.sentence ?? "";
    this.facts.replaceChildren(...picture.facts.flatMap(([name, value]) => [make("dt", { text: name }), make("dd", { text: value })]));
  }

  /** Show the gap as the part of a bar that is not yet proved, each tenth a power of ten. */
  showProof(certificate) {
    if (!certificate) {
      this.proof.replaceChildren();
      return;
    }
    const { relative_gap: gap, holds, tol, sentence } = certificate;
    const digits = Math.max(0, Math.min(10, -Math.log10(Math.max(gap, 1e-10))));
    const bar = make("div", { class: "bar", role: "img", "aria-label": `Proved to ${short(digits, 2)} digits` });
    bar.style.setProperty("--proved", `${10 * digits}%`);
    bar.style.setProperty("--wanted", `${10 * Math.min(10, -Math.log10(tol))}%`);
    const heading = make("p", { class: `verdict ${holds ? "holds" : "open"}` }, make("strong", { text: holds ? "✓ Proved" : "Not proved" }), ` gap ${short(gap, 2)}`);
    this.proof.replaceChildren(heading, bar, make("p", { class: "sentence", text: sentence }));
  }
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
