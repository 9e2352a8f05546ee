/* A <job-progress> asks how far its job is, and shows it, until the job is over.

   It sends "jobqueue:progress" for each answer and "jobqueue:done" at the end, with the
   answer as detail; both bubble. Whoever prevents the default of the second keeps the
   page where it is. Without this script the bar shows how far the job was when the page
   was made, and a link that loads the page again. */

const LONGEST = 60; // seconds between two questions while nobody answers
const FOR_EVER = [403, 404, 410]; // refused, gone, too old: no answer will be better

class JobProgress extends HTMLElement {
  #timer = 0;
  #errors = 0;
  #ended = false;
  #seen = () => {
    if (!document.hidden && !this.#ended) this.#plan(0);
  };

  connectedCallback() {
    if (!this.dataset.url) return; // the job was over when the page was made
    this.#offerRefresh(false);
    document.addEventListener("visibilitychange", this.#seen);
    this.#plan(Number(this.dataset.again) || 1);
  }

  disconnectedCallback() {
    this.#stop();
  }

  #plan(seconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), seconds * 1000);
  }

  #stop() {
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#seen);
  }

  async #ask() {
    if (document.hidden) return; // asked when somebody looks
    try {
      const response = await fetch(this.dataset.url, {
        cache: "no-store",
        headers: { Accept: "application/json" },
      });
      if (FOR_EVER.includes(response.status)) {
        this.#giveUp(response.status);
        return;
      }
      if (!response.ok) throw new Error(response.statusText);
      this.#take(await response.json());
    } catch {
      this.#errors += 1;
      if (this.isConnected) this.#plan(Math.min(LONGEST, 2 ** this.#errors));
    }
  }

  #take(answer) {
    if (!this.isConnected || this.#ended) return;
    this.#errors = 0;
    this.#show(answer);
    this.#tell("jobqueue:progress", answer);
    if (answer.is_over) this.#end(answer);
    else this.#plan(answer.again);
  }

  #show(answer) {
    this.dataset.status = answer.status;
    this.#put("[data-job-status]", this.#wordFor(answer.status));
    this.#put("[data-job-text]", answer.text);
    this.#put("[data-job-note]", answer.note);
    const bar = this.querySelector("progress");
    if (!bar) return;
    if (answer.fraction === null && answer.status === "running") bar.removeAttribute("value");
    else bar.value = answer.fraction ?? 0;
  }

  #end(answer) {
    this.#ended = true;
    this.#stop();
    const stays = !this.#tell("jobqueue:done", answer);
    if (stays) return;
    const { then, reload } = this.dataset;
    if (then && answer.status === "succeeded") this.#go(then);
    else if (reload !== undefined) location.reload();
  }

  #giveUp(status) {
    this.#ended = true;
    this.#stop();
    this.#offerRefresh(true);
    if (status !== 404) return;
    this.dataset.status = "gone";
    this.#put("[data-job-status]", this.#wordFor("gone"));
  }

  #go(address) {
    const url = new URL(address, location.href);
    if (["http:", "https:"].includes(url.protocol)) location.assign(url);
  }

  #tell(name, detail) {
    return this.dispatchEvent(
      new CustomEvent(name, { bubbles: true, cancelable: true, detail }),
    );
  }

  #wordFor(status) {
    return this.getAttribute(`data-word-${status}`) ?? status;
  }

  /* What has not changed is left alone, or screen readers would read it again. */
  #put(selector, text) {
    const place = this.querySelector(selector);
    if (place && place.textContent !== text) place.textContent = text;
  }

  #offerRefresh(offered) {
    const link = this.querySelector("[data-job-refresh]");
    if (link) link.hidden = !offered;
  }
}

if (!customElements.get("job-progress")) customElements.define("job-progress", JobProgress);
