/* <hf-live src="/runs/7/rows/" every="2">…</hf-live>: keeps its content fresh by conditional polling.

   The server answers 200 with new content and an ETag, or 304 or 204 when nothing changed; 286, or a header
   `Hf-Live: stop`, ends it. Hidden pages poll ten times slower; failures back off up to a minute.
   Attributes: swap (default innerHTML; none for out-of-band fragments only), paused ("Hold updates"),
   hold (a selector: while it matches inside, new content waits, `data-held` is set and `live:held` is sent),
   status (the id of an element that is told "Live · updated 2 s ago").
   Events, bubbling: live:updated, live:held, live:stopped, live:failed. */

import { remember, restore } from "hf/focus";
import { UNATTENDED } from "hf/unattended";

const HIDDEN_FACTOR = 10;
const LONGEST_WAIT = 60;
const ENDED = [286, 401, 403, 404, 410];

class Live extends HTMLElement {
  static observedAttributes = ["paused", "src"];
  #timer;
  #etag;
  #held;
  #failures = 0;
  #checkedAt = Date.now();
  #asking;
  #statusTimer;

  connectedCallback() {
    this.#etag = this.getAttribute("etag");
    this.#statusTimer = setInterval(() => this.#tell(), 1000);
    document.addEventListener("visibilitychange", this.#seen);
    this.#plan();
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    clearInterval(this.#statusTimer);
    this.#asking?.abort();
    document.removeEventListener("visibilitychange", this.#seen);
  }

  attributeChangedCallback(name, before) {
    if (!this.isConnected || (name === "src" && before === null)) return;
    if (name === "src") this.#etag = null;
    if (!this.hasAttribute("paused")) this.refresh();
  }

  get stopped() { return this.hasAttribute("stopped"); }
  get #every() { return Math.max(0.25, Number(this.getAttribute("every")) || 2); }

  /** Asks now rather than at the next beat. */
  refresh() {
    clearTimeout(this.#timer);
    return this.#poll();
  }

  #seen = () => { if (!document.hidden && !this.stopped) this.refresh(); };

  #plan() {
    if (this.stopped || !this.isConnected) return;
    const slower = (document.hidden ? HIDDEN_FACTOR : 1) * 2 ** this.#failures;
    const seconds = Math.min(this.#every * slower, Math.max(LONGEST_WAIT, this.#every));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#poll(), seconds * 1000);
  }

  async #poll() {
    if (this.hasAttribute("paused") || this.stopped) return;
    this.#asking?.abort();
    const asking = this.#asking = new AbortController();
    try {
      const headers = {
        "HX-Request": "true",
        "HX-Current-URL": location.href,
        ...UNATTENDED,
        ...(this.#etag && { "If-None-Match": this.#etag }),
      };
      const response = await fetch(this.getAttribute("src"), { headers, signal: asking.signal, cache: "no-store" });
      await this.#take(response);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#failures += 1;
      this.#send("live:failed", { error });
    }
    this.#plan();
  }

  async #take(response) {
    const elsewhere = response.headers.get("HX-Redirect");      // signed out in the meantime
    if (elsewhere && !this.#holds()) return location.assign(elsewhere);
    if (elsewhere) { // nothing is taken from under what somebody types
      this.setAttribute("stopped-text", "Signed out. Nothing here is renewed.");
      return this.#stop();
    }
    if (response.redirected || response.status === 401) return location.reload();
    if (response.status >= 500) throw new Error(`${response.status} ${response.statusText}`);
    this.#failures = 0;
    this.#checkedAt = Date.now();
    if (response.ok && response.status !== 204) {
      this.#etag = response.headers.get("ETag") ?? this.#etag;
      this.#show(await response.text(), response.headers);
    } else if (this.#held) this.#show(...this.#held);
    if (ENDED.includes(response.status) || response.headers.get("Hf-Live") === "stop") this.#stop();
  }

  #holds() {
    const hold = this.getAttribute("hold");
    return Boolean(hold && this.querySelector(hold));
  }

  #show(content, headers) {
    if (this.#holds()) {
      this.#held = [content, headers];
      this.toggleAttribute("data-held", true);
      return this.#send("live:held", { headers });
    }
    this.#held = null;
    this.removeAttribute("data-held");
    remember();
    htmx.swap(this, content, { swapStyle: this.getAttribute("swap") ?? "innerHTML", swapDelay: 0, settleDelay: 0 });
    restore();
    this.#send("live:updated", { headers });
  }

  #stop() {
    this.toggleAttribute("stopped", true);
    clearTimeout(this.#timer);
    this.#send("live:stopped");
    this.#tell();
  }

  #tell() {
    const place = document.getElementById(this.getAttribute("status") ?? "");
    if (!place || document.hidden) return;
    const text = this.#words();
    if (place.textContent !== text) place.textContent = text;
  }

  #words() {
    if (this.stopped) return this.getAttribute("stopped-text") ?? "";
    if (this.hasAttribute("paused")) return "Updates on hold";
    const seconds = Math.floor((Date.now() - this.#checkedAt) / 1000);
    if (this.#failures) return `Not updated for ${seconds} s, trying again`;
    return seconds < 2 ? "Live · updated now" : `Live · updated ${seconds} s ago`;
  }

  #send(name, detail = {}) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}

customElements.define("hf-live", Live);

/* [data-hold="id"]: the button "Hold updates" of an <hf-live id="id">. */
document.addEventListener("click", event => {
  const button = event.target.closest("[data-hold]");
  if (!button) return;
  const held = document.getElementById(button.dataset.hold).toggleAttribute("paused");
  button.setAttribute("aria-pressed", held);
});
