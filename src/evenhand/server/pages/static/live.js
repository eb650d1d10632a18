// Pages that show work under way follow it by themselves. One tab of a browser holds the stream of server-sent events and
// tells the others: browsers open six connections to a host, and a stream per tab would hang the seventh tab.
import { startCopies } from "./copies.js";
import { patch } from "./patch.js";
import { localTimes } from "./times.js";

const NAME = "evenhand-live";
const PAUSE = 2000;

/** @typedef {{ kind: "want" | "who" | "mark", project?: string, mark?: string }} Message */

/**
 * Whether somebody is doing something in the page that an update would disturb: typing, ticking, choosing, reading a
 * dialog, selecting text.
 * @param {Document} page
 */
export function isOccupied(page) {
  const main = page.getElementById("main");
  if (!main) return true;
  if (page.activeElement?.matches("main input:not([type=checkbox],[type=radio]), main textarea, main select")) return true;
  if (page.querySelector(":popover-open")) return true;
  const fields = /** @type {NodeListOf<HTMLInputElement>} */ (main.querySelectorAll("input, textarea"));
  if ([...fields].some((one) => one.type !== "hidden" && (one.value !== one.defaultValue || one.checked !== one.defaultChecked))) {
    return true;
  }
  const selected = page.getSelection();
  return Boolean(selected && !selected.isCollapsed && main.contains(selected.anchorNode));
}

class Live {
  /** @param {HTMLElement} main */
  constructor(main) {
    this.main = main;
    this.channel = new BroadcastChannel(NAME);
    /** @type {Set<string>} */
    this.wanted = new Set();
    /** @type {EventSource | null} */
    this.source = null;
    /** @type {AbortController | null} */
    this.waiting = null;
    /** @type {(() => void) | null} */
    this.release = null;
    this.newest = main.dataset.mark ?? "";
    this.busy = false;
    this.channel.addEventListener("message", (event) => this.hear(event.data));
    document.addEventListener("visibilitychange", () => (document.hidden ? this.leave() : this.enter()));
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", () => this.enter());
    this.enter();
  }

  get project() {
    return this.main.dataset.live ?? "";
  }

  /** Take part: ask for news of this project, and wait for the turn to hold the stream. */
  enter() {
    if (this.waiting || !this.project || document.hidden) return;
    document.documentElement.classList.add("follows");
    this.waiting = new AbortController();
    this.say({ kind: "want", project: this.project });
    navigator.locks
      .request(NAME, { signal: this.waiting.signal }, () => new Promise((resolve) => this.lead(() => resolve(null))))
      .catch(() => {}); // given up before it was our turn
  }

  leave() {
    this.waiting?.abort();
    this.waiting = null;
    this.source?.close();
    this.source = null;
    this.release?.();
    this.release = null;
  }

  /** @param {() => void} release */
  lead(release) {
    if (!this.waiting) return release();
    this.release = release;
    this.wanted = new Set([this.project]);
    this.say({ kind: "who" });
    this.open();
  }

  open() {
    this.source?.close();
    const address = new URL("../../live", import.meta.url);
    for (const project of this.wanted) address.searchParams.set(`of.${project}`, "1");
    this.source = new EventSource(address);
    this.source.addEventListener("mark", (event) => {
      const told = JSON.parse(event.data);
      this.say({ kind: "mark", ...told });
      this.hear({ kind: "mark", ...told });
    });
  }

  /** @param {Message} message */
  say(message) {
    this.channel.postMessage(message);
  }

  /** @param {Message} message */
  hear(message) {
    if (message.kind === "who" && this.waiting) this.say({ kind: "want", project: this.project });
    if (message.kind === "want" && this.release && message.project && !this.wanted.has(message.project)) {
      this.wanted.add(message.project);
      this.open();
    }
    if (message.kind === "mark" && message.project === this.project) {
      this.newest = message.mark ?? "";
      this.update();
    }
  }

  /** Bring the page up to the newest mark, unless somebody is busy in it. */
  async update() {
    if (this.busy || this.newest === this.main.dataset.mark) return;
    this.busy = true;
    if (isOccupied(document)) document.documentElement.classList.add("behind");
    else await this.refresh();
    setTimeout(() => {
      this.busy = false;
      if (this.project && !document.hidden) this.update();
    }, PAUSE);
  }

  async refresh() {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    const made = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
    const main = made?.getElementById("main");
    if (!made || !main) {
      // The session or the object is gone: the person decides what to do.
      document.documentElement.classList.add("behind");
      this.main.dataset.mark = this.newest;
      return;
    }
    if (isOccupied(document)) return; // since we asked
    document.documentElement.classList.remove("behind");
    patch(this.main, main);
    document.title = made.title;
    localTimes(this.main);
    startCopies(this.main);
    if (!this.project) this.leave();
  }
}

/** @param {Document} page */
export function startLive(page) {
  const main = page.getElementById("main");
  // Web Locks are for secure contexts: without them the page has its link to reload.
  if (main?.dataset.live && navigator.locks && window.BroadcastChannel) new Live(main);
}
