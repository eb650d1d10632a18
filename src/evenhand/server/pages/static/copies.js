// Buttons that copy: hidden where no script could do it.

/** @param {ParentNode} root */
export function startCopies(root) {
  /** @type {NodeListOf<HTMLButtonElement>} */
  const buttons = root.querySelectorAll("button[data-copy]");
  for (const button of buttons) {
    if (!button.hidden) continue; // has been started
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = button.dataset.copy || button.parentElement?.querySelector("pre")?.textContent || "";
      await navigator.clipboard.writeText(text);
      const before = button.textContent;
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = before), 1500);
    });
  }
}
