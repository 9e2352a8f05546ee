/* Buttons that copy a text: that of their data-jq-copy, the file at data-jq-copy-url, or
   the element beside them with data-jq-source. They copy what the page shows, so what is
   masked stays masked. Without this script they are hidden. */
"use strict";

(() => {
  const status = document.querySelector("[data-jq-copied]");
  if (!status) return;

  const SHOWN = 2000; // milliseconds that the button says that it was done

  const load = async (url) => {
    const answer = await fetch(url, { headers: { "X-Requested-With": "fetch" } });
    if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
    return (await answer.text()).replace(/\n$/, "");
  };
  const textOf = async (button) => {
    const { jqCopy, jqCopyUrl } = button.dataset;
    if (jqCopyUrl) return load(jqCopyUrl);
    return jqCopy || button.parentElement.querySelector("[data-jq-source]").textContent;
  };

  /* Where the page came over http, browsers copy only what is selected. */
  const copySelected = (text) => {
    const focused = document.activeElement;
    const box = document.createElement("textarea");
    box.className = "jq-hidden";
    box.readOnly = true;
    box.value = text;
    document.body.append(box);
    box.select();
    const isCopied = document.execCommand("copy");
    box.remove();
    focused?.focus({ preventScroll: true });
    if (!isCopied) throw new Error("refused");
  };

  /* Some browsers forget the click before a file is there, so they are given a promise. */
  const copy = async (text) => {
    try {
      const blob = text.then((known) => new Blob([known], { type: "text/plain" }));
      blob.catch(() => {}); // it is told of below
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    } catch {
      copySelected(await text);
    }
  };

  const say = (button, text) => {
    const label = button.dataset.jqLabel ?? button.textContent;
    button.dataset.jqLabel = label;
    button.textContent = text;
    status.textContent = "";
    setTimeout(() => {
      status.textContent = text;
    }, 50); // the same text again is read aloud again
    setTimeout(() => {
      button.textContent = label;
    }, SHOWN);
  };

  document.documentElement.classList.add("jq-can-copy");
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.(".jq-copy");
    if (!button) return;
    try {
      await copy(textOf(button));
      say(button, status.dataset.done);
    } catch {
      say(button, status.dataset.failed);
    }
  });
})();
