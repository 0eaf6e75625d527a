// A trace's waterfall: takes the place of the table that the server has drawn. The rows come as JSON, in several answers
// where they are many.

import { Drawing } from "./waterfall_rows.js";
import { Rows } from "./waterfall_model.js";
import { Scale } from "./waterfall_scale.js";

const MOST = 60_000;
const DRAGGED = 4;
const NARROW = matchMedia("(max-width: 70rem)");
const byId = (id) => document.getElementById(id);
const section = byId("spans");
const trace = section.dataset.trace;

const load = async () => {
  const rows = [];
  let told = null;
  do {
    const answer = await fetch(`/api/v1/traces/${trace}/rows?from=${rows.length}`);
    if (!answer.ok) return null;
    told = await answer.json();
    for (const [id, depth, name, service, offset, duration, flags, children, links] of told.rows) {
      rows.push({ id, depth, name, service, offset, duration, flags, children, links });
    }
  } while (told.rows.length && rows.length < Math.min(told.spans, MOST));
  return { rows, spans: told.spans, duration: told.duration };
};

class Waterfall {
  constructor({ rows, spans, duration }) {
    this.rows = new Rows(rows, duration);
    this.scale = new Scale(duration, rows);
    this.spans = spans;
    this.grid = byId("wf-grid");
    this.drawing = new Drawing(this.grid, byId("wf-rows"), this.rows, this.scale);
    this.drawing.active = this.rows.byId.get(section.dataset.chosen) ?? 0;
    this.drawing.chosen = this.drawing.active;
    this.waiting = false;
    this.listen();
  }

  get at() {
    return this.drawing.active;
  }

  begin() {
    byId("waterfall-table").remove();
    for (const id of ["wf", "wf-tools", "wf-help"]) byId(id).hidden = false;
    this.redraw();
    this.drawing.reach(this.at);
    this.drawing.scroll();
  }

  redraw() {
    byId("wf-ticks").replaceChildren(
      ...this.scale.ticks().map((words) => Object.assign(document.createElement("span"), { textContent: words })),
    );
    this.drawing.draw();
    this.tell();
  }

  tell() {
    const words = [`${this.rows.shown.length.toLocaleString("en")} of ${this.spans.toLocaleString("en")} spans`];
    if (this.rows.hidden) words.push(`${this.rows.hidden.toLocaleString("en")} hidden by what is asked for`);
    if (this.rows.all.length < this.spans) words.push(`only the first ${this.rows.all.length.toLocaleString("en")} are here`);
    const { sought, found } = this.rows;
    if (sought) words.push(found.length ? `“${sought}”: ${Math.max(0, found.indexOf(this.at)) + 1} of ${found.length.toLocaleString("en")}` : `nothing is called “${sought}”`);
    if (!this.scale.all) words.push("zoomed in");
    if (this.scale.log) words.push("log scale");
    byId("wf-told").textContent = words.join(" · ");
  }

  go(at) {
    if (at < 0 || at === undefined) return;
    this.drawing.active = at;
    this.drawing.reach(at);
    this.redraw();
  }

  move(places) {
    const place = (this.rows.placeOf.get(this.at) ?? 0) + places;
    this.go(this.rows.shown[Math.max(0, Math.min(this.rows.shown.length - 1, place))]);
  }

  fold(at, folded) {
    const changed = this.rows.fold(at, folded);
    if (changed) this.go(this.rows.seen(this.at));
    return changed;
  }

  zoom(factor) {
    const row = this.rows.all[this.at];
    const middle = this.scale.at(row.offset + (row.duration ?? 0) / 2);
    this.scale.zoom(factor, middle >= 0 && middle <= 1 ? middle : 0.5);
    this.redraw();
  }

  toSpan() {
    const row = this.rows.all[this.at];
    const room = Math.max((row.duration ?? 0) * 0.05, 10);
    this.scale.show(row.offset - room, row.offset + (row.duration ?? 0) + room);
    this.redraw();
  }

  whole() {
    this.scale.show(0, this.scale.whole);
    this.redraw();
  }

  logScale() {
    this.scale.log = !this.scale.log;
    byId("wf-log").setAttribute("aria-pressed", String(this.scale.log));
    this.redraw();
  }

  seek(step) {
    this.rows.seek(byId("wf-find").value);
    const at = this.rows.following(this.at, step);
    if (at >= 0 && !this.rows.reveal(at)) {
      byId("wf-least").value = "0";
      byId("wf-critical").checked = false;
      this.rows.filter(0, false);
    }
    if (at >= 0) this.go(at);
    else this.redraw();
  }

  filter() {
    const least = Number(byId("wf-least").value);
    this.rows.filter(Number.isFinite(least) ? Math.max(0, Math.min(100, least)) : 0, byId("wf-critical").checked);
    this.go(this.rows.seen(this.at));
    if (!this.rows.shown.length) this.redraw();
  }

  // The span beside the rows; they stay as they are.
  choose(at) {
    const row = this.rows.all[at];
    if (!row) return;
    this.drawing.chosen = at;
    this.go(at);
    const request = new XMLHttpRequest();
    request.open("GET", `/traces/${trace}/spans/${row.id}`);
    request.responseType = "document";
    request.addEventListener("load", () => {
      const told = request.response?.getElementById("details");
      if (this.drawing.chosen !== at) return;
      if (told) byId("details").replaceWith(document.importNode(told, true));
      history.replaceState(null, "", `/traces/${trace}?span=${row.id}`);
      const beside = section.parentElement.querySelector("aside");
      beside.scrollTop = 0;
      beside.classList.toggle("sheet", NARROW.matches);
      byId("close-details").hidden = !NARROW.matches;
    });
    request.send();
  }

  listen() {
    const click = (id, act) => byId(id).addEventListener("click", act);
    click("wf-next", () => this.seek(1));
    click("wf-previous", () => this.seek(-1));
    click("wf-log", () => this.logScale());
    click("wf-in", () => this.zoom(0.5));
    click("wf-out", () => this.zoom(2));
    click("wf-span", () => this.toSpan());
    click("wf-all", () => this.whole());
    click("wf-collapse", () => this.foldAll(true));
    click("wf-expand", () => this.foldAll(false));
    click("close-details", () => this.close());
    byId("wf-least").addEventListener("input", () => this.filter());
    byId("wf-critical").addEventListener("change", () => this.filter());
    byId("wf-find").addEventListener("input", () => {
      this.rows.seek(byId("wf-find").value);
      this.tell();
    });
    byId("wf-find").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.seek(event.shiftKey ? -1 : 1);
    });
    this.grid.addEventListener("keydown", (event) => this.press(event));
    this.grid.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.drawing.draw()).observe(this.grid);
    this.pointer();
  }

  foldAll(folded) {
    this.rows.foldAll(folded);
    this.go(this.rows.seen(this.at));
  }

  close() {
    section.parentElement.querySelector("aside").classList.remove("sheet");
    byId("close-details").hidden = true;
    this.grid.focus();
  }

  scrolled() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawing.scroll();
    });
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.grid.clientHeight / this.drawing.height) - 2);
    const keys = {
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(-1),
      PageDown: () => this.move(page),
      PageUp: () => this.move(-page),
      Home: () => this.go(this.rows.shown[0]),
      End: () => this.go(this.rows.shown.at(-1)),
      ArrowRight: () => this.fold(this.at, false) || (this.rows.ends[this.at] > this.at + 1 && this.move(1)),
      ArrowLeft: () => this.fold(this.at, true) || this.go(this.rows.parents[this.at]),
      Enter: () => this.choose(this.at),
      Escape: () => this.close(),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.whole(),
      z: () => this.toSpan(),
      l: () => this.logScale(),
      "<": () => this.sideways(-0.25),
      ">": () => this.sideways(0.25),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  sideways(by) {
    this.scale.move(by);
    this.redraw();
  }

  // A click chooses a row, or folds it; a drag over the bars zooms to what it covers.
  pointer() {
    let drag = null;
    const brush = byId("wf-brush");
    const where = (event) => (event.clientX - drag.left) / drag.width;
    this.grid.addEventListener("pointerdown", (event) => {
      const axis = event.button === 0 && event.pointerType !== "touch" && event.target.closest(".wf-axis");
      if (!axis) return;
      const box = axis.getBoundingClientRect();
      const inner = getComputedStyle(axis);
      const left = box.left + parseFloat(inner.paddingLeft);
      drag = { left, width: box.width - parseFloat(inner.paddingLeft) - parseFloat(inner.paddingRight), from: event.clientX, wide: false };
      this.grid.setPointerCapture(event.pointerId);
    });
    this.grid.addEventListener("pointermove", (event) => {
      if (!drag) return;
      drag.wide ||= Math.abs(event.clientX - drag.from) > DRAGGED;
      brush.hidden = !drag.wide;
      const frame = byId("wf").getBoundingClientRect();
      brush.style.left = `${Math.min(event.clientX, drag.from) - frame.left}px`;
      brush.style.width = `${Math.abs(event.clientX - drag.from)}px`;
    });
    const end = (event, zoom) => {
      const done = drag;
      if (!done) return;
      brush.hidden = true;
      const to = where(event);
      drag = null;
      if (!zoom || !done.wide) return;
      this.dragged = true;
      const [left, right] = [(done.from - done.left) / done.width, to].sort((one, other) => one - other);
      this.scale.show(this.scale.time(Math.max(0, left)), this.scale.time(Math.min(1, right)));
      this.redraw();
    };
    this.grid.addEventListener("pointerup", (event) => end(event, true));
    this.grid.addEventListener("pointercancel", (event) => end(event, false));
    this.grid.addEventListener("click", (event) => {
      const dragged = this.dragged;
      this.dragged = false;
      // A captured pointer's click goes to the grid: the row is where the pointer is.
      const target = document.elementFromPoint(event.clientX, event.clientY);
      const line = dragged ? null : target?.closest(".wf-row");
      if (!line) return;
      const at = Number(line.dataset.at);
      if (target.closest(".wf-fold") && this.rows.ends[at] > at + 1) {
        this.drawing.active = at;
        this.fold(at, !this.rows.folded.has(at));
      } else this.choose(at);
    });
  }
}

const told = await load();
if (told?.rows.length) new Waterfall(told).begin();
