// @ts-check
// The panel of a lesson: text, questions and tasks.
//
// A page comes from Python as blocks of plain text, from which elements are made; nothing in it is
// read as HTML. Answers and tasks are judged by Python, by the points and the model of the first
// pane as they are at that moment.

import { button, make } from "./draw.js";
import { EMPTY } from "./state.js";

const CALM = 120; // milliseconds without a change, after which tasks are looked at
const PATIENT = 300; // milliseconds after which it is said that an answer is being checked
const STYLES = { em: "em", strong: "strong", code: "code" };

export class LessonPanel {
  constructor(studio) {
    this.studio = studio;
    this.lesson = null; // as Python sent it
    this.number = 0; // of the page that is open
    this.questions = [];
    this.tasks = [];
    this.solved = new Map(); // "lesson/page" → numbers of tasks that were done before
    this.wanted = 0;
    this.timer = 0;
    this.build();
  }

  build() {
    const { id } = this.studio;
    this.heading = make("h2", { id: `${id}-lesson`, tabindex: "-1" });
    this.place = make("p", { class: "place" });
    this.message = make("p", { class: "message", role: "status", hidden: true });
    this.setUp = button("Set up the picture", "Show the points and the model that this page begins with", () => this.setUpPicture(), { "aria-label": null, class: "set-up" });
    this.text = make("div", { class: "lesson-text" });
    this.back = button("← Previous", "Previous page", () => this.go(-1));
    this.next = button("Next →", "Next page", () => this.go(1), { class: "primary" });
    const close = button("✕", "Close the lesson", () => this.leave(), { class: "close" });
    this.element = make(
      "aside",
      { class: "lesson", "aria-labelledby": `${id}-lesson`, hidden: true },
      make("div", { class: "lesson-head" }, this.place, close),
      this.heading,
      this.message,
      this.setUp,
      this.text,
      make("nav", { class: "lesson-pages", "aria-label": "Pages of the lesson" }, this.back, this.next),
    );
  }

  /** Called after each change of the state. */
  update(state, before) {
    if (!this.lesson || (state.points === before.points && state.panes[0] === before.panes[0])) return;
    for (const question of this.questions) question.grow();
    this.look();
  }

  // ------------------------------------------------------------------------------------ pages

  /** Open a lesson; nothing is the name of none. */
  async open(id, page = 0) {
    if (!id) {
      this.leave();
      return;
    }
    const wanted = ++this.wanted;
    try {
      const reply = await this.studio.link.ask({ type: "lesson", id });
      if (wanted !== this.wanted || reply.type !== "lesson") return;
      this.lesson = reply;
      this.show(page < 0 ? reply.pages.length - 1 : page);
    } catch (error) {
      if (wanted === this.wanted) this.fail(error.message);
    }
  }

  fail(sentence) {
    this.element.hidden = false;
    this.message.textContent = sentence;
    this.message.hidden = !sentence;
  }

  leave() {
    this.wanted += 1;
    this.lesson = null;
    this.questions = [];
    this.tasks = [];
    clearTimeout(this.timer);
    const held = this.element.contains(document.activeElement);
    this.element.hidden = true;
    const menu = this.studio.lessonSelect;
    if (!menu) return;
    menu.value = "";
    if (held) menu.focus();
  }

  /** The lessons that follow each other: those of the course, or the one of a file alone. */
  sequence() {
    const { lessons = [], lesson: own = null } = this.studio.catalogue;
    return this.lesson.id === own ? [] : lessons.filter((lesson) => lesson.id !== own);
  }

  async go(step) {
    const page = this.number + step;
    if (this.lesson.pages[page]) this.show(page);
    else {
      const lessons = this.sequence();
      const at = lessons.findIndex((lesson) => lesson.id === this.lesson.id);
      const other = lessons[at + step];
      if (at < 0 || !other) return;
      await this.open(other.id, step < 0 ? -1 : 0);
    }
    this.heading.focus();
    this.element.scrollTop = 0;
  }

  show(number) {
    const page = this.lesson.pages[number];
    this.number = number;
    this.fail("");
    this.heading.textContent = page.title;
    this.questions = [];
    this.tasks = [];
    this.text.replaceChildren(...this.makeBlocks(page.blocks));
    this.setUp.hidden = !page.state;
    this.reflect();
    this.setUpPicture();
    this.studio.announce(`${this.place.textContent}: ${page.title}`);
    this.look();
  }

  /** Show where in the lesson, or in the course, the page is. */
  reflect() {
    const { pages, id } = this.lesson;
    const lessons = this.sequence();
    const at = lessons.findIndex((lesson) => lesson.id === id);
    const inside = pages.length > 1 ? `Page ${this.number + 1} of ${pages.length}` : "";
    const course = at >= 0 ? `${pages.length > 1 ? "Lesson" : "Page"} ${at + 1} of ${lessons.length}` : "";
    const title = pages[this.number].title === this.lesson.title ? "" : this.lesson.title;
    this.place.textContent = [title, course, inside].filter(Boolean).join(" · ") || "Page 1 of 1";
    this.back.disabled = this.number === 0 && at <= 0;
    this.next.disabled = this.number === pages.length - 1 && (at < 0 || at === lessons.length - 1);
    if (this.studio.lessonSelect) this.studio.lessonSelect.value = id;
  }

  setUpPicture() {
    const given = this.lesson.pages[this.number].state;
    if (!given) return;
    const { run, ...rest } = given;
    const { studio } = this;
    studio.timeline.close();
    studio.showState({
      ...EMPTY,
      ...rest,
      names: [...rest.names, ...EMPTY.names.slice(rest.names.length)],
      show: { ...EMPTY.show, ...rest.show },
    });
    if (run) studio.timeline.start(0, run);
  }

  // ----------------------------------------------------------------------------------- blocks

  makeBlocks(blocks) {
    const elements = [];
    for (const block of blocks) {
      if (block.kind === "task") {
        // Tasks that follow each other are one list.
        const last = elements[elements.length - 1];
        const list = last?.matches("ul.tasks") ? last : make("ul", { class: "tasks", "aria-label": "Tasks" });
        if (list !== last) elements.push(list);
        const task = new Task(block);
        this.tasks[block.item] = task;
        list.append(task.element);
      } else {
        elements.push(this.makeBlock(block));
      }
    }
    return elements;
  }

  makeBlock(block) {
    if (block.kind === "list") {
      return make(block.ordered ? "ol" : "ul", {}, ...block.items.map((item) => make("li", {}, ...makeSpans(item))));
    }
    if (block.kind === "formula") return make("p", { class: "formula", text: block.text });
    if (block.kind === "heading") return make("h3", {}, ...makeSpans(block.spans));
    if (block.kind === "question") {
      const question = new Question(this, block);
      this.questions[block.item] = question;
      return question.element;
    }
    return make("p", {}, ...makeSpans(block.spans));
  }

  // ------------------------------------------------------------------------------------ tasks

  /** Ask which tasks are done, once the scene is at rest; only the newest reply counts. */
  look() {
    clearTimeout(this.timer);
    if (!this.tasks.length) return;
    this.timer = setTimeout(() => {
      const { lesson, number } = this;
      if (!lesson) return;
      const request = { type: "tasks", lesson: lesson.id, page: number, ...this.studio.scene(0) };
      this.studio.link.latest(
        "tasks",
        request,
        (reply) => this.lesson === lesson && this.number === number && reply.type === "tasks" && this.check(reply),
        (error) => this.lesson === lesson && this.fail(error.message),
      );
    }, CALM);
  }

  /** Mark what is done. What was done once stays done, although the scene has changed since. */
  check(reply) {
    this.fail("");
    const key = `${this.lesson.id}/${this.number}`;
    const solved = this.solved.get(key) ?? new Map();
    this.solved.set(key, solved);
    this.tasks.forEach((task, k) => {
      if (reply.done[k] && !solved.has(k)) this.studio.announce(`Done: ${task.title}. ${reply.messages[k]}`);
      if (reply.done[k]) solved.set(k, reply.messages[k]);
      task.show(solved.has(k), solved.get(k) ?? "", reply.numbers[k]);
    });
  }
}

/** Something to do, with a mark that says whether it was done, and how far it is. */
class Task {
  constructor({ do: spans }) {
    this.title = spans.map((span) => span.text).join("");
    this.mark = make("span", { class: "mark", "aria-hidden": "true", text: "○" });
    this.state = make("span", { class: "visually-hidden", text: "To do: " });
    this.numbers = make("p", { class: "numbers" });
    this.message = make("p", { class: "done" });
    this.element = make("li", {}, this.mark, make("div", {}, make("p", {}, this.state, ...makeSpans(spans)), this.message, this.numbers));
  }

  show(done, message, numbers) {
    this.mark.textContent = done ? "✓" : "○";
    this.state.textContent = done ? "Done: " : "To do: ";
    this.element.classList.toggle("is-done", done);
    this.message.textContent = message;
    this.numbers.textContent = numbers.map(([name, value]) => `${name}: ${value}`).join(" · ");
  }
}

/** A question with a field for a number, or with choices, and what Python says about the answer. */
class Question {
  constructor(panel, { item, ask, choices }) {
    this.panel = panel;
    this.item = item;
    const id = `${panel.studio.id}-question${item}`;
    this.verdict = make("p", { class: "verdict", id: `${id}-verdict`, role: "status" });
    this.submit = make("button", { type: "submit", text: "Check" });
    this.reveal = button("Show the answer", "Show the answer to this question", () => this.tell(), { "aria-label": null, hidden: true });
    const buttons = make("div", { class: "group" }, this.submit, this.reveal);
    if (choices.length) {
      this.input = null;
      const options = choices.map((spans, k) =>
        make("label", { class: "choice" }, make("input", { type: "radio", name: id, value: k, onchange: () => this.begin() }), make("span", {}, ...makeSpans(spans))),
      );
      this.body = make("fieldset", { "aria-describedby": `${id}-verdict` }, make("legend", {}, ...makeSpans(ask)), ...options, buttons);
    } else {
      this.input = make("input", { type: "text", id, inputmode: "text", autocomplete: "off", maxlength: 100, "aria-describedby": `${id}-verdict`, oninput: () => this.begin() });
      buttons.prepend(this.input);
      this.body = make("div", {}, make("label", { for: id }, ...makeSpans(ask)), buttons);
    }
    this.element = make("form", { class: "question", novalidate: true, onsubmit: (event) => this.check(event) }, this.body, this.verdict);
  }

  /** The answer is being changed: what was said about the last one is gone. */
  begin() {
    this.say("", null);
  }

  /** The scene has changed: what was said is about another one. */
  grow() {
    this.verdict.classList.toggle("stale", Boolean(this.verdict.textContent));
  }

  value() {
    if (this.input) return this.input.value;
    const chosen = /** @type {HTMLInputElement | null} */ (this.element.querySelector("input:checked"));
    return chosen ? chosen.value : "";
  }

  async check(event) {
    event.preventDefault();
    const { studio, lesson, number } = this.panel;
    if (!this.value().trim()) {
      this.say(this.input ? "Please type an answer first." : "Please choose one of the answers.", null);
      return;
    }
    this.begin();
    const patience = setTimeout(() => this.say("Checking…", null), PATIENT);
    try {
      const request = { type: "answer", lesson: lesson.id, page: number, item: this.item, value: this.value(), ...studio.scene(0) };
      const reply = await studio.link.ask(request);
      clearTimeout(patience);
      if (reply.type !== "answer") return;
      this.reply = reply;
      this.say(reply.message, reply.correct);
      if (reply.correct === false) this.reveal.hidden = false;
    } catch (error) {
      clearTimeout(patience);
      this.say(error.message, null);
    }
  }

  /** Give the answer away. */
  tell() {
    const { expected, explain } = this.reply;
    this.say(`The answer is: ${expected.replace(/\.$/, "")}. ${explain}`.trim(), null);
    this.reveal.hidden = true;
    this.submit.focus();
  }

  say(text, correct) {
    this.verdict.textContent = correct === null || !text ? text : `${correct ? "✓" : "✗"} ${text}`;
    this.verdict.classList.remove("stale");
    this.verdict.classList.toggle("right", correct === true);
    this.verdict.classList.toggle("wrong", correct === false);
    if (this.input) this.input.setAttribute("aria-invalid", String(correct === false));
    if (correct) this.reveal.hidden = true;
  }
}

/** Return pieces of text in their styles. */
function makeSpans(spans) {
  return spans.map(({ text, style }) => (STYLES[style] ? make(STYLES[style], { text }) : document.createTextNode(text)));
}
