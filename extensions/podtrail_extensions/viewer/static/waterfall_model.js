// Rows of a waterfall and which of them are to be seen: what is folded, too short, off the critical path. Pure.

export const ERROR = 1;
export const ORPHAN = 2;
export const CRITICAL = 4;

export class Rows {
  // all: [{id, depth, name, service, offset, duration, flags, children, links}], depth first
  constructor(all, whole) {
    this.all = all;
    this.whole = whole;
    this.folded = new Set();
    this.least = 0;
    this.critical = false;
    this.sought = "";
    this.found = [];
    this.shown = [];
    this.hidden = 0;
    this.parents = new Int32Array(all.length).fill(-1);
    this.ends = new Int32Array(all.length);
    this.byId = new Map(all.map((row, at) => [row.id, at]));
    const above = [];
    all.forEach((row, at) => {
      while (above.length && all[above.at(-1)].depth >= row.depth) this.ends[above.pop()] = at;
      if (above.length) this.parents[at] = above.at(-1);
      above.push(at);
    });
    for (const at of above) this.ends[at] = all.length;
    this.arrange();
  }

  #passes(row) {
    if (this.critical && !(row.flags & CRITICAL)) return false;
    return !this.least || (row.duration ?? 0) * 100 >= this.least * this.whole;
  }

  // Put together anew what is seen; `hidden` counts what a filter leaves out.
  arrange() {
    this.shown = [];
    this.hidden = 0;
    for (let at = 0; at < this.all.length; ) {
      if (this.#passes(this.all[at])) this.shown.push(at);
      else this.hidden += 1;
      at = this.folded.has(at) ? this.ends[at] : at + 1;
    }
    this.placeOf = new Map(this.shown.map((at, place) => [at, place]));
  }

  fold(at, folded) {
    if (this.ends[at] === at + 1) return false;
    if (folded === this.folded.has(at)) return false;
    if (folded) this.folded.add(at);
    else this.folded.delete(at);
    this.arrange();
    return true;
  }

  foldAll(folded) {
    this.folded.clear();
    if (folded) this.all.forEach((row, at) => this.ends[at] > at + 1 && row.depth > 0 && this.folded.add(at));
    this.arrange();
  }

  filter(least, critical) {
    this.least = least;
    this.critical = critical;
    this.arrange();
  }

  // Open what is folded over a row; false where a filter hides it.
  reveal(at) {
    let opened = false;
    for (let over = this.parents[at]; over >= 0; over = this.parents[over]) opened = this.folded.delete(over) || opened;
    if (opened) this.arrange();
    return this.placeOf.has(at);
  }

  // The row itself where it is seen, else the next one above it that is.
  seen(at) {
    let one = at;
    while (one >= 0 && !this.placeOf.has(one)) one = this.parents[one];
    return one >= 0 ? one : this.shown[0] ?? -1;
  }

  seek(words) {
    const sought = words.trim().toLowerCase();
    if (sought !== this.sought) {
      this.sought = sought;
      this.found = sought
        ? this.all.flatMap((row, at) => (`${row.name}\n${row.service}\n${row.id}`.toLowerCase().includes(sought) ? [at] : []))
        : [];
    }
  }

  // Of what was sought, the one behind (step 1) or before (step -1) a row, around the end.
  following(at, step) {
    const { found } = this;
    if (!found.length) return -1;
    const next = step > 0 ? found.find((one) => one > at) : found.findLast((one) => one < at);
    return next ?? (step > 0 ? found[0] : found.at(-1));
  }
}
