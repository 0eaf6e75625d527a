// Live: what a page shows is brought up to date in place, as the server says that something has changed.
//
// A page opts in by attributes in its template; nothing else is needed, on either side:
//   data-live="NAME"  on an element that stands on the page always, empty or not: it is brought up to date, by the
//                     element of that name in the same page fetched anew (the same template made both)
//   data-key="KEY"    on the rows in it: by this they are known again, wherever they stand
//   data-own          on an element that a script has put there: it is left alone
// Words and numbers change at any time. Rows come, go and change places only while nobody reads there: while the
// pointer or the focus is in the region, text is selected in it, it was just touched, or its beginning is scrolled out
// of sight, a button says what is new, and does it. What is appended below moves nothing and is appended.
// A page without data-live is told how many changes there were. A page that nobody sees listens to nothing.

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;
const LEAST_BETWEEN = 1000;
const TOUCHED = 4000;
const SETTING = "podtrail.live";

const byId = (id) => document.getElementById(id);
const bar = byId("live");
const word = byId("live-state");
const pause = byId("live-pause");
const news = byId("live-new");
const spoken = byId("changed");
const regions = [...document.querySelectorAll("[data-live]")];

let source = null;
let wait = FIRST_WAIT;
let timer = 0;
let shown = Number(document.body.dataset.changes);
let told = null;
let anew = false; // after a loss the server may be another one, that counts from 0
let fetching = false;
let due = 0;
let earliest = 0;
let pending = null;
let touched = -TOUCHED;
let paused = sessionStorage.getItem(SETTING) === "paused";

// What is alike in two lists of children: by key or id, else the how many-th of its kind.
const listed = (parent) => {
  const counts = new Map();
  const found = new Map();
  for (const one of parent.childNodes) {
    if (one.nodeType === Node.TEXT_NODE ? !one.data.trim() : one.nodeType !== Node.ELEMENT_NODE || "own" in one.dataset) continue;
    const name = one.dataset?.key !== undefined ? `key ${one.dataset.key}` : one.id ? `id ${one.id}` : one.nodeName;
    const nth = counts.get(name) ?? 0;
    counts.set(name, nth + 1);
    found.set(`${name} ${nth}`, one);
  }
  return found;
};

const attributes = (old, fresh) => {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !(name === "open" && old.nodeName === "DETAILS")) old.setAttribute(name, value);
  }
};

const isRow = (key) => key.startsWith("key ");

// Whether one is the other but for words, numbers and rows.
const alike = (old, fresh) => {
  if (old.nodeType === Node.TEXT_NODE) return true;
  const before = listed(old);
  const after = listed(fresh);
  if ([...before.keys(), ...after.keys()].some(isRow)) return true;
  return before.size === after.size && [...before].every(([key, one]) => after.has(key) && alike(one, after.get(key)));
};

// Make `old` what `fresh` is. Held, nothing in it changes its place: what would stays whole as it was, and is counted.
const update = (old, fresh, held, count) => {
  attributes(old, fresh);
  const before = listed(old);
  const after = listed(fresh);
  for (const [key, one] of after) {
    const same = before.get(key);
    if (!same) continue;
    if (held && !isRow(key) && !alike(same, one)) count.places = true;
    else if (same.nodeType === Node.ELEMENT_NODE) update(same, one, held, count);
    else if (same.data !== one.data) same.data = one.data;
  }
  const names = [...after.keys()];
  const onlyMore = [...before.keys()].every((key, at) => key === names[at]);
  if (onlyMore && names.length === before.size) return;
  if (held && !(onlyMore && names.slice(before.size).every(isRow))) {
    count.rows += names.filter((key) => !before.has(key) && isRow(key)).length;
    count.places = true;
    return;
  }
  let at = null;
  for (const key of names.reverse()) {
    const one = before.get(key) ?? document.importNode(after.get(key), true);
    if (one.nextSibling !== at || one.parentNode !== old) old.insertBefore(one, at);
    at = one;
  }
  for (const [key, one] of before) if (!after.has(key)) one.remove();
};

const held = (region) => {
  const selection = getSelection();
  return region.matches(":hover") || region.contains(document.activeElement) || region.getBoundingClientRect().top < 0
    || (!selection.isCollapsed && selection.containsNode(region, true)) || performance.now() - touched < TOUCHED;
};

const show = (page, force) => {
  const count = { rows: 0, places: false };
  for (const region of regions) {
    const fresh = page.querySelector(`[data-live="${CSS.escape(region.dataset.live)}"]`);
    if (fresh) update(region, fresh, !force && held(region), count);
  }
  const first = news.hidden;
  pending = count.places ? page : null;
  news.hidden = !pending;
  news.textContent = count.rows ? `${count.rows.toLocaleString("en")} new` : "changes";
  if (pending && first) spoken.textContent = `${news.textContent}: a button below shows it (n)`;
  if (!pending) spoken.textContent = "";
};

// Parsed by the browser as a document, without scripts: no text is made markup here.
const refresh = () => {
  due = 0;
  if (fetching || paused || document.hidden) return;
  fetching = true;
  const began = performance.now();
  const request = new XMLHttpRequest();
  request.open("GET", location.href);
  request.setRequestHeader("Podtrail-Refresh", "1"); // a page made for another who watches will do
  request.responseType = "document";
  request.addEventListener("loadend", () => {
    fetching = false;
    const page = request.status === 200 ? request.response : null;
    if (!page?.body) return;
    shown = Number(page.body.dataset.changes);
    anew = false;
    if (!paused) show(page, false);
    const now = performance.now();
    earliest = Math.max(began + LEAST_BETWEEN, now + 4 * (now - began));
    if (told && told.changes !== shown) soon();
  });
  request.send();
};

// At most once a second, and never more than a fifth of the time.
const soon = () => {
  due ||= setTimeout(refresh, Math.max(0, earliest - performance.now()));
};

const say = (state, words) => {
  bar.dataset.state = state;
  word.textContent = words;
  pause.textContent = paused ? "go on" : "pause";
};

const hear = (event) => {
  told = JSON.parse(event.data);
  wait = FIRST_WAIT;
  if (bar.dataset.state === "lost") spoken.textContent = "";
  if (!told.ended && !told.nothingSince) say("live", "live");
  else if (!told.ended) {
    if (bar.dataset.state !== "silent") spoken.textContent = `Nothing has come since ${told.nothingSince} UTC`;
    say("silent", `nothing since ${told.nothingSince}`);
  }
  else if (bar.dataset.state !== "ended") {
    say("ended", `as of ${told.asOf}`);
    spoken.textContent = `The simulation or recording has ended: all is as of ${told.asOf} UTC`;
  }
  if (told.changes === shown && !anew) return;
  if (regions.length) soon();
  else spoken.textContent = "This page has changed since it was made: refresh (r)";
};

const leave = () => {
  clearTimeout(timer);
  source?.close();
  source = null;
};

const listen = () => {
  leave();
  if (paused || document.hidden) return;
  source = new EventSource("/api/v1/live");
  source.addEventListener("change", hear);
  source.addEventListener("error", () => {
    leave();
    anew = true;
    if (bar.dataset.state !== "lost") spoken.textContent = "podtrail does not answer: this page is the last that was known.";
    say("lost", "reconnecting…");
    timer = setTimeout(listen, wait * (0.75 + Math.random() / 2));
    wait = Math.min(2 * wait, LONGEST_WAIT);
  });
};

pause.addEventListener("click", () => {
  paused = !paused;
  sessionStorage.setItem(SETTING, paused ? "paused" : "on");
  if (paused) say("paused", "paused");
  else say("live", "connecting…");
  listen();
});
news.addEventListener("click", () => {
  const focused = document.activeElement === news;
  show(pending, true);
  const region = regions.find((one) => one.getBoundingClientRect().top < 0);
  region?.scrollIntoView();
  if (focused) byId("main").focus({ preventScroll: true });
});
document.addEventListener("pointerdown", (event) => {
  if (event.pointerType !== "mouse" && !event.target.closest("#live-new")) touched = performance.now();
});
document.addEventListener("visibilitychange", listen);
addEventListener("pagehide", leave);
addEventListener("pageshow", (event) => event.persisted && listen());

bar.hidden = false;
say(paused ? "paused" : "live", paused ? "paused" : "connecting…");
listen();
