// Draws the rows that are in sight, and no others: elements are used again for other rows as one scrolls.

import { CRITICAL, ERROR, ORPHAN } from "./waterfall_model.js";
import { duration } from "./waterfall_scale.js";

const SVG = "http://www.w3.org/2000/svg";
const SPARE = 6;
const AXIS = 1000;
const LEAST = 3;
const SERVICES = 6;

const element = (name, className, role) => {
  const one = document.createElement(name);
  if (className) one.className = className;
  if (role) one.setAttribute("role", role);
  return one;
};

// The same colour as on the server: sum of the bytes of the service's name.
const hue = (service) => new TextEncoder().encode(service).reduce((sum, byte) => sum + byte, 0) % SERVICES;

const rect = (className, y, height) => {
  const one = document.createElementNS(SVG, "rect");
  if (className) one.setAttribute("class", className);
  one.setAttribute("y", y);
  one.setAttribute("height", height);
  return one;
};

const newLine = () => {
  const line = element("div", "wf-line wf-row", "row");
  const name = element("span", "wf-name", "rowheader");
  const fold = element("span", "wf-fold");
  fold.setAttribute("aria-hidden", "true");
  const words = element("bdi");
  const notes = element("span", "note");
  const fail = element("span", "fail");
  fail.textContent = "error";
  name.append(fold, words, fail, notes);
  const took = element("span", "num", "gridcell");
  const axis = element("span", "wf-axis", "gridcell");
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", `0 0 ${AXIS} 10`);
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("aria-hidden", "true");
  const bar = rect("", 1, 7);
  const critical = rect("critical", 8.5, 1.5);
  drawing.append(bar, critical);
  const told = element("span", "hide");
  axis.append(told, drawing);
  line.append(name, took, axis);
  return { line, name, fold, words, fail, notes, took, drawing, bar, critical, told, at: -1 };
};

export class Drawing {
  constructor(grid, holder, rows, scale) {
    this.grid = grid;
    this.holder = holder;
    this.rows = rows;
    this.scale = scale;
    this.lines = [];
    this.active = 0;
    this.chosen = -1;
    this.hues = new Map();
  }

  get height() {
    return parseFloat(getComputedStyle(this.grid).getPropertyValue("--row"));
  }

  // Everything anew: rows, scale or selection have changed.
  draw() {
    const height = this.height;
    this.holder.style.height = `${this.rows.shown.length * height}px`;
    this.grid.setAttribute("aria-rowcount", this.rows.shown.length + 1);
    for (const one of this.lines) one.at = -1;
    this.scroll();
  }

  // The rows that have come into sight.
  scroll() {
    const height = this.height;
    const top = this.grid.scrollTop;
    const first = Math.max(0, Math.floor(top / height) - SPARE);
    const last = Math.min(this.rows.shown.length, Math.ceil((top + this.grid.clientHeight) / height) + SPARE);
    const wanted = new Set();
    for (let place = first; place < last; place += 1) wanted.add(place);
    const free = [];
    for (const one of this.lines) {
      if (one.at >= 0 && wanted.has(one.at)) wanted.delete(one.at);
      else free.push(one);
    }
    for (const place of wanted) {
      let one = free.pop();
      if (!one) {
        one = newLine();
        this.lines.push(one);
        this.holder.append(one.line);
      }
      this.#fill(one, place, height);
    }
    for (const one of free) {
      one.line.remove();
      this.lines.splice(this.lines.indexOf(one), 1);
    }
    this.#inOrder();
    const active = `wf-${this.rows.placeOf.get(this.active) ?? -1}`;
    if (document.getElementById(active)) this.grid.setAttribute("aria-activedescendant", active);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  // Who reads the page aloud reads it as it is written, not as it is drawn.
  #inOrder() {
    this.lines.sort((one, other) => one.at - other.at);
    let before = null;
    for (const { line } of this.lines) {
      const following = before ? before.nextSibling : this.holder.firstChild;
      if (following !== line) this.holder.insertBefore(line, following);
      before = line;
    }
  }

  #fill(one, place, height) {
    const at = this.rows.shown[place];
    const row = this.rows.all[at];
    const critical = Boolean(row.flags & CRITICAL);
    const below = this.rows.ends[at] - at - 1;
    one.at = place;
    one.line.id = `wf-${place}`;
    one.line.dataset.at = at;
    one.line.style.transform = `translateY(${place * height}px)`;
    one.line.setAttribute("aria-rowindex", place + 2);
    one.line.setAttribute("aria-level", row.depth + 1);
    one.line.classList.toggle("active", at === this.active);
    one.line.setAttribute("aria-selected", String(at === this.chosen));
    if (below) one.line.setAttribute("aria-expanded", String(!this.rows.folded.has(at)));
    else one.line.removeAttribute("aria-expanded");
    one.name.style.setProperty("--depth", Math.min(row.depth, 15));
    one.fold.textContent = below ? (this.rows.folded.has(at) ? "▸" : "▾") : "";
    one.words.textContent = row.name || "(no name)";
    one.fail.hidden = !(row.flags & ERROR);
    const notes = [];
    if (row.flags & ORPHAN) notes.push("parent not received");
    if (row.links) notes.push(`${row.links} link${row.links === 1 ? "" : "s"}`);
    if (below && this.rows.folded.has(at)) notes.push(`+ ${below.toLocaleString("en")} below`);
    one.notes.textContent = notes.join(", ");
    one.took.textContent = duration(row.duration);
    one.told.textContent = `starts ${duration(row.offset)} in${critical ? ", on the critical path" : ""}`;
    if (!this.hues.has(row.service)) this.hues.set(row.service, hue(row.service));
    one.drawing.setAttribute("class", `bar h${this.hues.get(row.service)}${row.flags & ERROR ? " bad" : ""}`);
    const left = this.scale.at(row.offset);
    const right = this.scale.at(row.offset + (row.duration ?? 0));
    const gone = right < 0 || left > 1;
    const start = Math.min(AXIS - LEAST, Math.max(0, left * AXIS));
    const width = gone ? 0 : Math.max(LEAST, Math.min(1, right) * AXIS - start);
    for (const drawn of [one.bar, one.critical]) {
      drawn.setAttribute("x", start.toFixed(2));
      drawn.setAttribute("width", width.toFixed(2));
    }
    one.critical.setAttribute("visibility", critical ? "visible" : "hidden");
  }

  // Scroll only as far as it takes to see a row.
  reach(at) {
    const place = this.rows.placeOf.get(at);
    if (place === undefined) return;
    const height = this.height;
    const head = this.grid.firstElementChild.offsetHeight;
    const top = place * height;
    const room = this.grid.clientHeight - head;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    else if (top + height > this.grid.scrollTop + room) this.grid.scrollTop = top + height - room;
  }
}
