// Single keys: j and k walk over rows, / goes to the search field, ? lists the keys. They can be switched off, and they
// are silent while somebody types (WCAG 2.1.4).

const SWITCH = "evenhand-keys";

/** Whether single keys do something in this browser. */
export function keysAreOn() {
  return localStorage.getItem(SWITCH) !== "off";
}

/**
 * Whether a key belongs to somebody who types, or to the browser.
 * @param {KeyboardEvent} event
 */
export function isTyping(event) {
  const target = /** @type {HTMLElement | null} */ (event.target);
  const field = target?.closest("input:not([type=checkbox],[type=radio]), textarea, select, [contenteditable]");
  return Boolean(field) || event.ctrlKey || event.metaKey || event.altKey || event.isComposing;
}

/**
 * Moves the focus by `step` among the links of rows.
 * @param {Document} page
 * @param {number} step
 */
export function move(page, step) {
  const rows = /** @type {HTMLElement[]} */ ([...page.querySelectorAll("tr.link .go, .cards .go, .tree .nm a:first-of-type")]);
  if (rows.length === 0) return;
  const current = /** @type {HTMLElement} */ (page.activeElement);
  const selected = rows.findIndex((row) => row.closest(".at"));
  const at = rows.includes(current) ? rows.indexOf(current) : selected;
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  rows[next].focus();
}

/**
 * @param {Document} page
 * @param {Record<string, () => void>} more what other keys do on this page
 */
export function startKeys(page, more = {}) {
  const box = /** @type {HTMLInputElement | null} */ (page.querySelector("[data-keys-switch]"));
  if (box) {
    box.checked = keysAreOn();
    box.addEventListener("change", () => localStorage.setItem(SWITCH, box.checked ? "on" : "off"));
  }
  /** @type {Record<string, () => void>} */
  const actions = {
    j: () => move(page, 1),
    k: () => move(page, -1),
    "/": () => /** @type {HTMLElement | null} */ (page.querySelector("[data-search]"))?.focus(),
    "?": () => /** @type {HTMLElement | null} */ (page.getElementById("keys"))?.togglePopover(),
    ...more,
  };
  page.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || !keysAreOn() || isTyping(event)) return;
    // Enter on a link or a button is that link's or button's.
    if (event.key === "Enter" && /** @type {Element} */ (event.target).closest("a, button, summary, [popover]")) return;
    event.preventDefault();
    action();
  });
}
