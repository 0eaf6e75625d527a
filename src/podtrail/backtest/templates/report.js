"use strict";
// Finds rows by what stands in them, and opens what is folded before the page is printed. Inserts nothing.
for (const find of document.querySelectorAll("input[data-finds]")) {
  find.closest("p").hidden = false;
  const rows = document.querySelectorAll("#" + find.dataset.finds + " tbody");
  const found = document.getElementById(find.dataset.finds + "-found");
  find.addEventListener("input", () => {
    const sought = find.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(sought);
      shown += row.hidden ? 0 : 1;
    }
    found.textContent = sought ? shown + " of " + rows.length : "";
  });
}
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
