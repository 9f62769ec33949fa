// @ts-check
// What can be taken away: a link, Python code, PNG, SVG and CSV.
//
// Pictures are written anew from what is drawn, in pixels and with every colour in the element itself:
// files need no style sheet, and strokes keep their width in programs that know no
// non-scaling strokes.

import { button, make, makeSvg } from "./draw.js";
import { toFragment } from "./state.js";

const RESOLUTION = 2; // pixels of a PNG for each pixel of the screen
const GAP = 16; // pixels between two pictures
const HEADING = 30; // pixels above each of two pictures
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity"];
const SCENERY = ".grid > *, .points > *";
const FOUND = ":is(.slack, .witness, .lines, .lift-cut, .rings) > *, .marks > :is(.focus, .arrow)";
const SVG_SPACE = "http://www.w3.org/2000/svg";

const LINK_NOTE =
  "Paste this link anywhere into an open studio, yours or somebody else’s, to see these points and models. " +
  "It holds all of them, but not the token of your studio.";
const CODE_NOTE = "This program fits the same models to the same points and draws them.";

/** Return a button with a menu of everything that can be taken away. */
export function makeExportMenu(studio) {
  // A popover is above everything, also where the header is moved sideways.
  const menu = make("div", { class: "menu", role: "menu", "aria-label": "Export", popover: "auto" });
  const opener = make("button", { type: "button", text: "Export", title: "Take points, picture or code away", "aria-haspopup": "menu", "aria-expanded": "false" });
  const item = ([text, action]) =>
    make("button", {
      type: "button",
      role: "menuitem",
      tabindex: "-1",
      text,
      onclick: () => {
        menu.hidePopover();
        (async () => action(studio))().catch((error) => studio.tell(error.message));
      },
    });
  const items = Object.entries({ "Copy link": copyLink, "Copy as Python": copyCode, "Save PNG": savePng, "Save SVG": saveSvg, "Save CSV": saveCsv }).map(item);
  menu.append(...items);
  opener.popoverTargetElement = menu;
  menu.addEventListener("toggle", (event) => {
    const open = /** @type {ToggleEvent} */ (event).newState === "open";
    opener.setAttribute("aria-expanded", String(open));
    if (!open) return;
    const box = opener.getBoundingClientRect();
    menu.style.top = `${box.bottom + 4}px`;
    menu.style.left = `${Math.max(8, Math.min(box.left, window.innerWidth - menu.offsetWidth - 8))}px`;
    items[0].focus();
  });
  opener.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    menu.showPopover();
  });
  menu.addEventListener("keydown", (event) => {
    const at = items.indexOf(/** @type {any} */ (event.target));
    if (event.key === "ArrowDown") items[(at + 1) % items.length].focus();
    else if (event.key === "ArrowUp") items.at(at - 1).focus();
    else if (event.key === "Home") items[0].focus();
    else if (event.key === "End") items.at(-1).focus();
    else if (event.key === "Tab") menu.hidePopover();
    else return;
    event.preventDefault();
  });
  takePastes(studio);
  return make("div", { class: "export" }, opener, menu);
}

/** Open links and tables that are pasted into the page. */
function takePastes(studio) {
  const alone = !studio.root.classList.contains("in-notebook");
  const paste = (event) => {
    if (/^(input|textarea|select)$/i.test(event.target.tagName)) return;
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const fragment = /#s=[\w-]+/.exec(text);
    if (!fragment && !/\d[\s\S]*\n[\s\S]*\d/.test(text)) return;
    event.preventDefault();
    if (fragment) studio.openLink(fragment[0]);
    else studio.points.openText(text);
  };
  (alone ? studio.root.ownerDocument.body : studio.root).addEventListener("paste", paste);
}

// ---------------------------------------------------------------------------- link and program

async function copyLink(studio) {
  const fragment = await toFragment(studio.store.state);
  // In a notebook the address is that of the notebook, and says nothing about the studio.
  const { origin, pathname } = window.location;
  const address = studio.root.classList.contains("in-notebook") ? "" : origin + pathname;
  await showText(studio, "Link to this picture", LINK_NOTE, `${address}#${fragment}`);
}

async function copyCode(studio) {
  const scenes = studio.store.state.panes.map((_, k) => studio.scene(k));
  const [{ x, y, label, view }] = scenes;
  const panes = scenes.map(({ model, parameters, kernel }) => ({ model, parameters, kernel }));
  const reply = await studio.link.ask({ type: "code", x, y, label, view, panes });
  await showText(studio, "Python code", CODE_NOTE, reply.text, "code");
}

/** Copy a text, and show it in case the clipboard is out of reach. */
async function showText(studio, title, note, text, kind = "link") {
  const area = make("textarea", { readonly: true, spellcheck: "false", rows: kind === "code" ? 18 : 5, "aria-label": title, class: kind });
  area.value = text;
  const status = make("span", { class: "status", role: "status" });
  const copy = async () => {
    const copied = await copyText(text, area);
    status.textContent = copied ? "Copied to the clipboard." : "Not copied: choose the text and press Ctrl+C.";
  };
  const id = `${studio.id}-dialog`;
  const dialog = make(
    "dialog",
    { class: "text-dialog", "aria-labelledby": id },
    make("h2", { id, text: title }),
    make("p", { class: "help", text: note }),
    area,
    make("div", { class: "buttons" }, button("Copy", "Copy the text", copy), button("Close", "Close", () => dialog.close()), status),
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  studio.root.append(dialog);
  dialog.showModal();
  area.setSelectionRange(0, 0);
  area.scrollTop = 0;
  dialog.querySelector("button").focus();
  await copy();
}

/** Copy a text to the clipboard; tell whether it worked. */
async function copyText(text, area) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Frames of notebooks may not use the clipboard, but they may copy what is selected.
    area.select();
    const copied = document.execCommand("copy");
    area.setSelectionRange(0, 0);
    return copied;
  }
}

// ------------------------------------------------------------------------------------ pictures

/** Return what the panes show as one SVG element that needs no style sheet, and its size. */
export function drawStandalone(studio) {
  const colours = getComputedStyle(studio.root);
  const panels = studio.plots.map((plot, k) => ({
    title: studio.catalogue.models[studio.store.state.panes[k].model].title,
    size: plot.size,
    children: drawPlot(plot, `${studio.id}-clip-${k}`, colours),
  }));
  const { lift } = studio;
  if (!lift.element.hidden && lift.size) panels.push({ title: "", size: lift.size, children: [drawLift(lift)] });
  const top = studio.plots.length > 1 ? HEADING : 0;
  const width = panels.reduce((sum, { size }) => sum + size[0] + GAP, -GAP);
  const height = Math.max(...panels.map(({ size }) => size[1])) + top;
  const picture = makeSvg(
    "svg",
    { xmlns: SVG_SPACE, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" },
    makeSvg("title", { text: panels.map(({ title }) => title).filter(Boolean).join(" and ") }),
    makeSvg("rect", { width, height, fill: colours.getPropertyValue("--plot") }),
  );
  let left = 0;
  for (const { title, size, children } of panels) {
    const heading = { x: size[0] / 2, y: -9, "text-anchor": "middle", "font-size": 16, fill: colours.getPropertyValue("--text"), text: title };
    picture.append(makeSvg("g", { transform: `translate(${left} ${top})` }, ...children, top ? makeSvg("text", heading) : null));
    left += size[0] + GAP;
  }
  return { picture, width, height };
}

/** Return the lift, which is drawn in pixels on the screen, too. */
function drawLift(lift) {
  const [width, height] = lift.size;
  return makeSvg("image", { width, height, href: lift.canvas.toDataURL("image/png") });
}

/** Return the elements of a plot in pixels, clipped to its frame. */
function drawPlot(plot, id, colours) {
  const [width, height] = plot.size;
  const clip = makeSvg("clipPath", { id }, makeSvg("rect", { width, height }));
  const body = makeSvg("g", { "clip-path": `url(#${id})` });
  // Lines that belong to other points are grey on the screen, and left out here.
  const stale = plot.element.classList.contains("stale");
  if (!stale && !plot.canvas.hidden && plot.field) body.append(drawBackground(plot));
  const drawn = plot.element.querySelectorAll(stale ? SCENERY : `${SCENERY}, ${FOUND}`);
  body.append(...[...drawn].map((element) => copyElement(element, plot)));
  return [clip, body, makeSvg("rect", { width, height, fill: "none", stroke: colours.getPropertyValue("--line") })];
}

/** Return the background in the size of the plot, as smooth as it is on the screen. */
function drawBackground(plot) {
  const [width, height] = plot.size;
  const canvas = make("canvas", { width, height });
  const context = canvas.getContext("2d");
  const { left, top, width: across, height: up } = plot.canvas.style;
  context.imageSmoothingQuality = "high";
  context.drawImage(plot.canvas, ...[left, top, across, up].map(parseFloat));
  return makeSvg("image", { width, height, href: canvas.toDataURL("image/png") });
}

/** Return an element of a plot with its coordinates in pixels and its style in attributes. */
function copyElement(element, plot) {
  const copy = makeSvg(element.tagName, placeElement(element, plot));
  const style = getComputedStyle(element);
  for (const name of STYLES) {
    const value = style.getPropertyValue(name);
    if (value && value !== "none" && value !== "1" && value !== "normal") copy.setAttribute(name, value.replaceAll("px", ""));
  }
  copy.setAttribute("fill", style.fill);
  if (element.tagName === "text") {
    copy.setAttribute("font-size", style.fontSize.replace("px", ""));
    copy.textContent = element.textContent;
  }
  return copy;
}

/** Return the attributes that say where an element is, in pixels. */
function placeElement(element, plot) {
  const at = (name) => Number(element.getAttribute(name));
  const round = (value) => Number(value.toFixed(3));
  const inData = element.closest(".data") !== null;
  const place = (x, y) => (inData ? plot.toPixels(x, y) : [x, y]).map(round);
  const list = (text) => text.trim().split(/[\s,]+/).map(Number);
  switch (element.tagName) {
    case "line": {
      const [[x1, y1], [x2, y2]] = [place(at("x1"), at("y1")), place(at("x2"), at("y2"))];
      return { x1, y1, x2, y2 };
    }
    case "polyline":
    case "polygon": {
      const numbers = list(element.getAttribute("points"));
      const pairs = numbers.flatMap((_, k) => (k % 2 ? [] : [place(numbers[k], numbers[k + 1]).join(",")]));
      return { points: pairs.join(" ") };
    }
    case "circle": {
      // A ring is scaled by its transform; its stroke is not.
      const matrix = element.transform.baseVal.consolidate()?.matrix;
      const [cx, cy] = place(at("cx"), at("cy"));
      if (!matrix) return { cx, cy, r: round(at("r") * (inData ? plot.scale : 1)) };
      return { cx: round(matrix.e + cx * matrix.a), cy: round(matrix.f + cy * matrix.a), r: round(at("r") * matrix.a) };
    }
    case "text":
      return { x: round(at("x")), y: round(at("y")) };
    default: {
      const path = element.getAttribute("d");
      const moved = (_, letter, x, y) => `${letter}${place(Number(x), Number(y)).join(",")}`;
      const d = inData ? path.replace(/([ML])(-?[\d.e+-]+),(-?[\d.e+-]+)/g, moved) : path;
      return { d, transform: element.getAttribute("transform") };
    }
  }
}

function nameFile(studio, ending) {
  return `maxmargin-${studio.store.state.panes.map((pane) => pane.model).join("-")}.${ending}`;
}

function writeSvg(picture) {
  return new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" });
}

function saveSvg(studio) {
  download(writeSvg(drawStandalone(studio).picture), nameFile(studio, "svg"));
}

async function savePng(studio) {
  const { picture, width, height } = drawStandalone(studio);
  const url = URL.createObjectURL(writeSvg(picture));
  try {
    const image = new Image(width, height);
    image.src = url;
    await image.decode();
    const canvas = make("canvas", { width: RESOLUTION * width, height: RESOLUTION * height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const file = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    if (!file) throw new Error("The browser could not write the picture; save it as SVG.");
    download(file, nameFile(studio, "png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

// -------------------------------------------------------------------------------------- points

/** Return points as a table: numbers with all their digits, classes by their names. */
export function writeCsv({ points, names }) {
  const quote = (name) => (/[",\r\n]|^\s|\s$/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
  const rows = points.map(([x, y, label]) => `${x},${y},${quote(names[label])}`);
  return ["x1,x2,label", ...rows, ""].join("\n");
}

function saveCsv(studio) {
  const { state } = studio.store;
  if (!state.points.length) throw new Error("There are no points yet; draw some first.");
  download(new Blob([writeCsv(state)], { type: "text/csv;charset=utf-8" }), "maxmargin-points.csv");
}

function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = make("a", { href: url, download: name });
  link.click();
  // The browser reads the file after the click.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
