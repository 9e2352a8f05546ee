/* Suggests names while one is typed: data-jq-names is the address that knows them. */
"use strict";

(() => {
  const PAUSE = 150; // milliseconds without a key

  document.querySelectorAll("input[data-jq-names]").forEach((field) => {
    let timer = 0;
    let asked = "";
    const suggest = async () => {
      const text = field.value.trim();
      if (!text || text === asked) return;
      asked = text;
      const query = new URLSearchParams({ q: text });
      const answer = await fetch(`${field.dataset.jqNames}?${query}`).catch(() => null);
      if (!answer?.ok || asked !== text) return;
      const { names } = await answer.json();
      const options = names.map((name) => new Option(name, name));
      field.list.replaceChildren(...options);
    };
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(suggest, PAUSE);
    });
  });
})();
