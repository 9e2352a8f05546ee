/* Keys of the job queue's pages. None does what cannot be done without it; all are off
   while somebody types. */
"use strict";

(() => {
  const tabs = document.querySelectorAll("[data-jq-key]");
  if (!tabs.length) return;

  /* Where there is no room for all tabs, the one of this page is in sight. */
  for (const box of document.querySelectorAll(".jq-tabs")) {
    const current = box.querySelector("[aria-current]");
    if (!current || box.scrollWidth <= box.clientWidth) continue;
    const [outer, inner] = [box, current].map((one) => one.getBoundingClientRect());
    box.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  }

  const help = document.querySelector("[data-jq-keys]");
  let going = 0; // until when the second key after "g" is waited for

  const rows = () =>
    [...document.querySelectorAll("#result_list tbody tr, .jq-grid tbody tr")].filter(
      (row) => row.querySelector("a[href]"),
    );
  const here = () => document.activeElement?.closest("tr");
  const mainLink = (row) => row.querySelector("th a[href]") ?? row.querySelector("a[href]");

  const move = (by) => {
    const found = rows();
    const at = found.indexOf(here());
    const next = at < 0 ? (by > 0 ? 0 : found.length - 1) : at + by;
    if (found[next]) mainLink(found[next]).focus();
  };

  const search = () => {
    const box =
      document.querySelector("#searchbar") ?? document.querySelector("[data-jq-jump]");
    box?.focus();
    box?.select();
  };

  const does = {
    "/": search,
    j: () => move(1),
    k: () => move(-1),
    x: () => here()?.querySelector("input.action-select")?.click(),
    a: () => document.querySelector("#action-toggle")?.click(),
    g: () => {
      going = Date.now() + 1500;
    },
    "?": () => help?.showModal?.(),
  };

  const goTo = (key) => {
    const tab = [...tabs].find((one) => one.dataset.jqKey === key);
    tab?.click();
    return Boolean(tab);
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select, textarea, [contenteditable], dialog")) return;
    const second = Date.now() < going;
    going = 0;
    if (second ? goTo(event.key) : does[event.key]) {
      if (!second) does[event.key]();
      event.preventDefault();
    }
  });
})();
