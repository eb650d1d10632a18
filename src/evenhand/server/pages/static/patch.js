// Turns a part of the page into a newer version of itself and keeps the elements: focus, open folds and scrolling stay.

/**
 * What tells an element from its neighbours: its id, or where a row of a table leads to.
 * @param {Node} node
 */
function keyOf(node) {
  if (!(node instanceof Element)) return "";
  return node.id || (node.matches("tr.link") && node.querySelector("a.go")?.getAttribute("href")) || "";
}

/**
 * @param {Node} old
 * @param {Node} made
 */
function isSame(old, made) {
  return old.nodeName === made.nodeName && keyOf(old) === keyOf(made);
}

/**
 * @param {Element} old
 * @param {Element} made
 */
function patchAttributes(old, made) {
  const keeps = (/** @type {string} */ name) =>
    (name === "open" && old.matches("details")) || (name === "hidden" && old.matches("[data-copy]"));
  for (const { name } of [...old.attributes]) {
    if (!made.hasAttribute(name) && !keeps(name)) old.removeAttribute(name);
  }
  for (const { name, value } of made.attributes) {
    if (old.getAttribute(name) !== value && !keeps(name)) old.setAttribute(name, value);
  }
}

/**
 * @param {Node} old in the page
 * @param {Node} made its newer version, from another document
 */
export function patch(old, made) {
  if (old instanceof CharacterData) {
    if (old.data !== made.nodeValue) old.data = made.nodeValue ?? "";
    return;
  }
  if (old instanceof Element) patchAttributes(old, /** @type {Element} */ (made));
  const keyed = new Map([...old.childNodes].map((child) => [keyOf(child), child]));
  keyed.delete("");
  let at = old.firstChild;
  for (const next of [...made.childNodes]) {
    const known = keyed.get(keyOf(next)) ?? at;
    if (known && isSame(known, next)) {
      // Moving an element would take the focus from it: what stands before it goes instead.
      while (at && at !== known && !keyed.has(keyOf(at))) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
      if (known === at) at = at.nextSibling;
      else old.insertBefore(known, at);
      patch(known, next);
    } else {
      old.insertBefore(document.importNode(next, true), at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}
