/* Regions of a page are replaced by fresh ones every few seconds: the server is told which
   versions are shown, and answers with those that changed.

   An element with data-jq-region="name" is a region; with data-jq-final it stays as it is,
   and with data-jq-soon it is looked at every two seconds. Nothing is replaced while
   somebody selects, types or reads marked text, or while the page is hidden. Without this
   script the page is complete, and is refreshed by loading it again. */
"use strict";

(() => {
  const bar = document.querySelector("[data-jq-live]");
  const all = "[data-jq-region]:not([data-jq-final])";
  if (!bar || !document.querySelector(all)) return;

  const KEY = "jobqueue.every";
  const USUAL = 10; // seconds
  const SOON = 2;
  const LONGEST = 60;
  const PATIENCE = 30_000; // milliseconds; after that nobody answers any more
  const age = bar.querySelector("[data-jq-age]");
  const note = bar.querySelector("[data-jq-note]");
  const choice = bar.querySelector("[data-jq-every]");
  let updated = Date.now();
  let due = 0;
  let errors = 0;
  let asking = false;
  let ended = false;

  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is forbidden
    }
  };
  const store = (value) => {
    try {
      localStorage.setItem(KEY, value);
    } catch {
      /* remembered on this page only */
    }
  };

  const every = () => {
    const chosen = Number(choice.value);
    return chosen && document.querySelector("[data-jq-soon]") ? Math.min(SOON, chosen) : chosen;
  };
  const plan = () => {
    const seconds = errors ? Math.min(LONGEST, every() * 2 ** errors) : every();
    due = Date.now() + seconds * 1000;
  };

  const isInUse = () => {
    if (document.querySelector("input.action-select:checked")) return true;
    const field = document.activeElement?.closest("input, select, textarea, dialog[open]");
    if (field && field !== choice) return true;
    return Boolean(String(getSelection() ?? ""));
  };

  /* How old what is shown is, whatever else there is to say: figures that are no longer
     refreshed look as fresh as any. */
  const ageText = () => {
    const seconds = Math.round((Date.now() - updated) / 1000);
    const minutes = Math.floor(seconds / 60);
    const [text, n] = seconds < 120 ? [bar.dataset.updated, seconds] : [bar.dataset.minutes, minutes];
    return text.replace("{n}", n);
  };
  const write = (place, text) => {
    if (place.textContent !== text) place.textContent = text;
  };
  const say = (text) => {
    write(age, ageText());
    write(note, text ?? "");
    const stale = ended || errors > 0;
    bar.classList.toggle("jq-is-stale", stale);
    document.querySelectorAll(all).forEach((one) => one.classList.toggle("jq-stale", stale));
  };

  /* Lines of a running job are read at their end, unless somebody scrolled back. */
  const isAtEnd = (box) => box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
  const toEnd = (box) => {
    box.scrollTop = box.scrollHeight;
  };

  /* What people did to a region: opened, scrolled, went to. */
  const LINKS = "a[href], button, summary, [tabindex]";
  const stateOf = (region) => ({
    open: [...region.querySelectorAll("details")].map((one) => one.open),
    left: [...region.querySelectorAll(".jq-scroll")].map((one) => one.scrollLeft),
    top: [...region.querySelectorAll(".jq-lines")].map((one) =>
      isAtEnd(one) ? null : one.scrollTop,
    ),
    focus: [...region.querySelectorAll(LINKS)].indexOf(document.activeElement),
    href: document.activeElement?.getAttribute("href"),
  });
  const restore = (region, state) => {
    region.querySelectorAll("details").forEach((one, n) => {
      one.open = state.open[n] ?? one.open;
    });
    region.querySelectorAll(".jq-scroll").forEach((one, n) => {
      one.scrollLeft = state.left[n] ?? 0;
    });
    region.querySelectorAll(".jq-lines").forEach((one, n) => {
      if (typeof state.top[n] === "number") one.scrollTop = state.top[n];
      else toEnd(one);
    });
    if (state.focus < 0) return;
    const links = [...region.querySelectorAll(LINKS)];
    const same = links.filter((one) => state.href && one.getAttribute("href") === state.href);
    (same.includes(links[state.focus]) ? links[state.focus] : same[0] ?? links[state.focus])
      ?.focus({ preventScroll: true });
  };

  /* Django's own script knows only the check boxes that were there at the start. */
  const renewActions = () => {
    window.Actions?.(document.querySelectorAll("tr input.action-select"));
  };

  const shown = () =>
    [...document.querySelectorAll(all)]
      .map(({ dataset }) => `${dataset.jqRegion}=${dataset.jqVersion}`)
      .join(",");
  const replace = (page) => {
    let rows = false;
    for (const region of document.querySelectorAll(all)) {
      const name = region.dataset.jqRegion;
      const found = page.querySelector(`[data-jq-region="${CSS.escape(name)}"]`);
      if (!found || found.dataset.jqVersion === region.dataset.jqVersion) continue;
      if (region.matches("[data-jq-soon]") && found.matches("[data-jq-final]")) {
        location.reload(); // its title and its form are of the whole page
        return;
      }
      const state = stateOf(region);
      const next = document.adoptNode(found);
      region.replaceWith(next);
      restore(next, state);
      rows ||= Boolean(next.querySelector("#action-toggle"));
      next.dispatchEvent(new CustomEvent("jobqueue:replaced", { bubbles: true }));
    }
    if (rows) renewActions();
  };

  const look = async () => {
    asking = true;
    try {
      const answer = await fetch(location.href, {
        cache: "no-store",
        redirect: "manual",
        signal: AbortSignal.timeout(PATIENCE),
        headers: { "X-Requested-With": "fetch", "Jobqueue-Regions": shown() },
      });
      if (answer.type === "opaqueredirect" && document.querySelector('[data-jq-region="job"]')) {
        location.reload(); // the job is over, and in the archive
        return;
      }
      if (answer.type === "opaqueredirect" || answer.status === 403) {
        ended = true;
        return;
      }
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (isInUse()) return; // meanwhile
      replace(page);
      updated = Date.now();
      errors = 0;
    } catch {
      errors += 1;
    } finally {
      asking = false;
      plan();
    }
  };

  const tick = () => {
    if (!document.querySelector(all)) {
      bar.hidden = true;
      clearInterval(clock);
    } else if (ended) {
      say(bar.dataset.ended);
      clearInterval(clock);
    } else if (document.hidden) {
      return;
    } else if (every() && isInUse()) {
      say(bar.dataset.waits);
    } else {
      say(errors ? bar.dataset.failed : undefined);
      if (every() && !asking && Date.now() >= due) look();
    }
  };

  const known = [...choice.options].map((option) => option.value);
  choice.value = known.includes(stored()) ? stored() : String(USUAL);
  choice.addEventListener("change", () => {
    store(choice.value);
    plan();
  });
  bar.hidden = false;
  document.querySelectorAll(`${all} .jq-lines`).forEach(toEnd);
  plan();
  say();
  const clock = setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
})();
