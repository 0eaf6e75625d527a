// Choosing a time on the picture of attempts: by drag, or by arrows and Enter. It leads to the address that the picture
// names, with from= and to=; without a script the links of the table below it do the same.

const SECOND = 1_000_000_000n;
const SPACE = "http://www.w3.org/2000/svg";
let held = null; // { heat, from, to, start, width }: columns, as they were when it began

const facts = (heat) => ({
  start: BigInt(heat.dataset.start),
  width: BigInt(heat.dataset.width),
  columns: Number(heat.dataset.columns),
});
const seconds = (nano) => `${nano / SECOND}.${String(nano % SECOND).padStart(9, "0")}`.replace(/\.?0+$/, "");
const clock = (nano) => new Date(Number(nano / 1_000_000n)).toISOString().slice(11, 19);

const ends = () => {
  const [low, high] = [Math.min(held.from, held.to), Math.max(held.from, held.to)].map(BigInt);
  return [held.start + low * held.width, held.start + (high + 1n) * held.width - 1n];
};

const draw = () => {
  const cells = held.heat.querySelector(".cells");
  let brush = cells.querySelector(".brush");
  if (!brush) {
    brush = document.createElementNS(SPACE, "rect");
    brush.setAttribute("class", "brush");
    brush.dataset.own = "";
    cells.append(brush);
  }
  const [since, until] = ends();
  const { start, width } = facts(held.heat); // it may have gone on meanwhile
  const at = (nano) => Number(((nano - start) * 10n) / width);
  brush.setAttribute("x", at(since));
  brush.setAttribute("width", at(until + 1n) - at(since));
  brush.setAttribute("height", cells.viewBox.baseVal.height);
  const rows = [...held.heat.parentElement.querySelectorAll("tr[data-attempts]")];
  const within = rows.filter(({ dataset }) => BigInt(dataset.key) >= since && BigInt(dataset.key) <= until);
  const attempts = within.reduce((sum, { dataset }) => sum + Number(dataset.attempts), 0);
  const said = held.heat.parentElement.querySelector(".chosen-time");
  said.textContent = `${clock(since)} to ${clock(until + 1n)}: ${attempts.toLocaleString("en")} attempts`;
};

const drop = () => {
  if (!held) return;
  held.heat.querySelector(".brush")?.remove();
  held.heat.parentElement.querySelector(".chosen-time").textContent = "";
  held = null;
};

const go = () => {
  const [since, until] = ends();
  const address = new URL(held.heat.dataset.path, location.href);
  address.searchParams.set("from", seconds(since));
  address.searchParams.set("to", seconds(until));
  location.assign(address);
};

const column = (heat, event) => {
  const box = heat.querySelector(".cells").getBoundingClientRect();
  const { columns } = facts(heat);
  return Math.max(0, Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns)));
};

const begin = (heat, at) => {
  drop();
  held = { heat, from: at, to: at, ...facts(heat) };
};

document.addEventListener("pointerdown", (event) => {
  const cells = event.target.closest(".cells");
  if (!cells || event.button !== 0) return;
  const heat = cells.closest(".heat");
  event.preventDefault(); // else text is selected
  heat.focus({ preventScroll: true });
  begin(heat, column(heat, event));
  held.drag = true;
  cells.setPointerCapture(event.pointerId);
  draw();
});
document.addEventListener("pointermove", (event) => {
  if (!held?.drag) return;
  held.to = column(held.heat, event);
  draw();
});
document.addEventListener("pointerup", () => {
  if (!held?.drag) return;
  held.drag = false;
  go();
});
document.addEventListener("pointercancel", drop);
document.addEventListener("keydown", (event) => {
  const heat = event.target.closest?.(".heat");
  if (!heat || event.ctrlKey || event.metaKey || event.altKey) return;
  const { columns } = facts(heat);
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -columns, End: columns };
  if (event.key in steps) {
    const step = steps[event.key];
    const last = Math.max(0, Math.min(columns - 1, (held ? held.to : step > 0 ? -1 : columns) + step));
    if (!held || !event.shiftKey) begin(heat, last);
    held.to = last;
    draw();
  } else if (event.key === "Enter" && held) go();
  else if (event.key === "Escape") drop();
  else return;
  event.preventDefault();
});
