// What scripts add to every page: local times, copy buttons, keys, live updates. Pages are complete without it.
import { startCopies } from "./copies.js";
import { startKeys } from "./keys.js";
import { startLive } from "./live.js";
import { localTimes } from "./times.js";

localTimes(document);
startCopies(document);
startLive(document);

// A link or button with data-key="n" is pressed, and a field gets the focus, when somebody presses n.
/** @type {Record<string, () => void>} */
const keyed = {};
for (const link of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-key]"))) {
  keyed[link.dataset.key ?? ""] = () => (link.matches("textarea, input[type=text]") ? link.focus() : link.click());
}
startKeys(document, keyed);
