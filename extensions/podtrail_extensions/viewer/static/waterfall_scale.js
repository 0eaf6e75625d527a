// The time axis of a waterfall: a window of a trace's time on a line from 0 to 1, and lengths of time in words.
// Times are nanoseconds from the start of the trace.

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
const LEAST_WINDOW = 100;

// As the server writes them: at most two units.
export const duration = (nanoseconds) => {
  if (nanoseconds === null) return "-";
  if (nanoseconds === 0) return "0 s";
  if (nanoseconds >= 60e9) {
    let rest = Math.floor(nanoseconds / 1e9);
    const parts = [];
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]]) {
      const count = Math.floor(rest / size);
      rest %= size;
      if (count || parts.length) parts.push(`${count}${unit}`);
    }
    return parts.slice(0, 2).filter((part) => !part.startsWith("0")).join(" ");
  }
  for (const [size, unit] of UNITS) {
    if (nanoseconds >= size * 0.9995) return `${Number((nanoseconds / size).toPrecision(3))} ${unit}`;
  }
  return `${Math.round(nanoseconds)} ns`;
};

const placed = (sorted, value) => {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (sorted[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
};

export class Scale {
  // rows: [{offset, duration}]
  constructor(whole, rows) {
    this.whole = Math.max(1, whole);
    this.log = false;
    this.from = 0;
    this.to = this.whole;
    const moments = new Set([0, this.whole]);
    for (const row of rows) {
      moments.add(Math.min(this.whole, Math.max(0, row.offset)));
      moments.add(Math.min(this.whole, Math.max(0, row.offset + (row.duration ?? 0))));
    }
    // On the log scale each stretch between two moments is as wide as the logarithm of its length: what is short stays
    // visible beside what is long, wherever it is.
    this.moments = [...moments].sort((one, other) => one - other);
    this.places = [0];
    for (let at = 1; at < this.moments.length; at += 1) {
      this.places.push(this.places[at - 1] + Math.log2(1 + (this.moments[at] - this.moments[at - 1]) / 1000));
    }
  }

  #place(time) {
    if (!this.log) return time / this.whole;
    const at = Math.min(placed(this.moments, time), this.moments.length - 2);
    const length = this.moments[at + 1] - this.moments[at];
    const part = length ? (time - this.moments[at]) / length : 0;
    return (this.places[at] + part * (this.places[at + 1] - this.places[at])) / (this.places.at(-1) || 1);
  }

  #time(place) {
    if (!this.log) return place * this.whole;
    const sought = place * this.places.at(-1);
    const at = Math.min(placed(this.places, sought), this.moments.length - 2);
    const width = this.places[at + 1] - this.places[at];
    const part = width ? (sought - this.places[at]) / width : 0;
    return this.moments[at] + part * (this.moments[at + 1] - this.moments[at]);
  }

  // Where a time is in the window: 0 at its left edge, 1 at its right.
  at(time) {
    const left = this.#place(this.from);
    return (this.#place(time) - left) / (this.#place(this.to) - left || 1);
  }

  time(at) {
    const left = this.#place(this.from);
    return this.#time(left + at * (this.#place(this.to) - left));
  }

  show(from, to) {
    const middle = (from + to) / 2;
    const half = Math.max(to - from, LEAST_WINDOW) / 2;
    this.from = Math.max(0, Math.min(middle - half, this.whole - 2 * half));
    this.to = Math.min(this.whole, Math.max(middle + half, 2 * half));
  }

  // factor < 1 shows less; what is at `around` (0 to 1) stays where it is.
  zoom(factor, around) {
    const left = this.time(around - around * factor);
    const right = this.time(around + (1 - around) * factor);
    this.show(Math.max(0, left), Math.min(this.whole, right));
  }

  // by: of the window's width
  move(by) {
    const width = this.to - this.from;
    const from = Math.max(0, Math.min(this.whole - width, this.from + by * width));
    this.show(from, from + width);
  }

  get all() {
    return this.from <= 0 && this.to >= this.whole;
  }

  ticks() {
    return [0, 0.25, 0.5, 0.75, 1].map((at) => (at === 0 && this.from === 0 ? "0" : duration(Math.round(this.time(at)))));
  }
}
