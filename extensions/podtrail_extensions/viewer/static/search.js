// What a search may go on with, asked for while it is typed. Without this the field offers what the page brought along.
(() => {
  const field = document.getElementById("search");
  const offered = document.getElementById("suggested");
  if (!field || !offered) return;
  let asked = 0;
  let waiting = 0;

  const offer = async () => {
    const number = ++asked;
    const query = new URLSearchParams({ q: field.value.slice(0, 256) });
    try {
      const answer = await fetch(`${field.dataset.suggestedBy}?${query}`);
      if (!answer.ok || number !== asked) return;
      const { suggestions } = await answer.json();
      offered.replaceChildren(
        ...suggestions.map(({ text, meaning }) => {
          const option = document.createElement("option");
          option.value = text;
          option.textContent = meaning;
          return option;
        }),
      );
    } catch {
      // podtrail does not answer, as the foot of the page says: what was offered stays.
    }
  };
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(offer, 120);
  });
})();
