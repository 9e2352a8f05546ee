/* Goes on with a search that looked through the newest jobs only: window by window, until
   everything was looked at, a page is full, or somebody stops it. Without this script, a
   link does one window. */
"use strict";

(() => {
  const note = document.querySelector("[data-jq-older]");
  const button = note?.querySelector("button");
  const region = document.querySelector('[data-jq-region="rows"]');
  if (!button || !region) return;

  const ENOUGH = 100; // jobs
  let link = note.querySelector("a")?.href;
  let going = false;

  const rows = (root) => [...root.querySelectorAll("#result_list tbody tr")];
  const told = () =>
    button.dataset.found.replace("{n}", String(rows(region).length));

  const take = (page) => {
    const found = page.querySelector('[data-jq-region="rows"]');
    if (!rows(region).length && found && rows(found).length) {
      region.replaceChildren(...found.childNodes);
    } else {
      region.querySelector("#result_list tbody")?.append(...rows(page));
    }
    document.querySelectorAll("[data-jq-nothing]").forEach((one) => {
      one.hidden = rows(region).length > 0;
    });
  };

  const look = async () => {
    region.dataset.jqFinal = ""; // no refresh: it would begin again
    while (going && link && rows(region).length < ENOUGH) {
      const answer = await fetch(link, { headers: { "X-Requested-With": "fetch" } });
      if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      take(page);
      const next = page.querySelector("[data-jq-older]");
      link = next?.querySelector("a")?.getAttribute("href");
      link = link ? new URL(link, location.href).href : undefined;
      const text = next?.querySelector("[data-jq-back]")?.textContent;
      note.querySelector("[data-jq-back]").textContent = text ?? button.dataset.all;
      note.querySelector("[role=status]").textContent = told();
    }
    if (link) note.querySelector("a").href = link;
    else note.querySelector("a").hidden = button.hidden = true;
  };

  const write = () => {
    button.textContent = going ? button.dataset.stop : button.dataset.go;
  };
  button.hidden = false;
  write();
  button.addEventListener("click", async () => {
    going = !going;
    write();
    if (!going) return;
    try {
      await look();
    } catch {
      note.querySelector("[role=status]").textContent = button.dataset.failed;
    }
    going = false;
    write();
  });
})();
