"use strict";
// Keys. The page works without: everything here only moves the focus or presses a button.
(() => {
  const setting = "podtrail.keys";
  const toggle = document.getElementById("keys");
  const rows = () => [...document.querySelectorAll("main a.row")];
  let on = localStorage.getItem(setting) !== "off";

  const tell = () => {
    toggle.textContent = on ? "keys on" : "keys off";
    toggle.setAttribute("aria-pressed", String(on));
  };
  document.documentElement.classList.add("js");
  toggle.hidden = false;
  tell();
  toggle.addEventListener("click", () => {
    on = !on;
    localStorage.setItem(setting, on ? "on" : "off");
    tell();
  });

  const move = (step) => {
    const all = rows();
    const at = all.indexOf(document.activeElement);
    const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step];
    if (next) next.focus();
  };
  const keys = {
    "/": () => document.getElementById("search")?.focus(),
    j: () => move(1),
    k: () => move(-1),
    u: () => document.getElementById("up")?.click(),
    r: () => location.reload(),
    n: () => document.getElementById("live-new")?.click(),
    p: () => document.getElementById("live-pause")?.click(),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
    if (!on || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
