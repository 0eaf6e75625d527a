// Copies links and reports for a ticket; without it they are links. Buttons: data-copy-link (an address as it is),
// data-copy-text (what an address answers). They may come and go with their part of the page.
const text = async ({ copyLink, copyText }) => {
  if (copyLink !== undefined) return new URL(copyLink, location.href).href;
  const answer = await fetch(copyText);
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.text();
};

// Where a page is not reached over https or on this machine browsers have no clipboard for it, but for what is selected.
const copy = async (words) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(words);
  const area = document.createElement("textarea");
  area.className = "hide";
  area.value = words;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("not copied");
};

document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-copy-link], [data-copy-text]");
  if (!button) return;
  const said = button.closest(".share").querySelector("[role=status]");
  try {
    await copy(await text(button.dataset));
    said.textContent = "Copied.";
    button.focus();
  } catch {
    said.textContent = "The browser does not let this page copy: use the link.";
  }
});
