// What scripts add to every page: local times, copy buttons, keys. Pages are complete without it.
import { startKeys } from "./keys.js";
import { localTimes } from "./times.js";

localTimes(document);
startKeys(document);

/** @type {NodeListOf<HTMLButtonElement>} */
const copies = document.querySelectorAll("button[data-copy]");
for (const button of copies) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = button.dataset.copy || button.parentElement?.querySelector("pre")?.textContent || "";
    await navigator.clipboard.writeText(text);
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = before), 1500);
  });
}
