/* The next moments of a rule while it is typed. Without this script a button shows
   them. */
"use strict";

(() => {
  const place = document.querySelector("[data-jq-preview]");
  const form = place?.closest("form");
  if (!form) return;

  const PAUSE = 300; // milliseconds without a key
  const NAMES = ["rule", "time_zone", "starts", "ends"];
  let timer = 0;
  let asked = 0;

  const look = async () => {
    const query = new URLSearchParams({ schedule: place.dataset.schedule });
    for (const name of NAMES) {
      const field = form.elements.namedItem(name);
      if (field) query.set(name, field.value);
    }
    asked += 1;
    const mine = asked;
    try {
      const answer = await fetch(`${place.dataset.jqPreview}?${query}`, {
        redirect: "manual",
        headers: { "X-Requested-With": "fetch" },
      });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.querySelector("[data-jq-preview]");
      if (mine === asked && found) place.replaceChildren(...found.childNodes);
    } catch {
      /* nobody answers: the button remains */
    }
  };

  form.addEventListener("input", (event) => {
    if (!NAMES.includes(event.target.name)) return;
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  });
})();
