// Asks before something that somebody typed is lost, and says at once when nothing was filled in.

const form = /** @type {HTMLFormElement | null} */ (document.getElementById("review"));

/**
 * Whether a field has another value than the page gave it.
 * @param {Element} field
 */
function changed(field) {
  if (field instanceof HTMLTextAreaElement) return field.value.trim() !== field.defaultValue.trim();
  if (!(field instanceof HTMLInputElement) || field.type === "hidden") return false;
  if (field.type === "radio" || field.type === "checkbox") return field.checked !== field.defaultChecked;
  return field.value.trim() !== field.defaultValue;
}

if (form) {
  let sent = false;
  const isTouched = () => [...form.elements].some(changed);
  form.addEventListener("submit", (event) => {
    const leaves = event.submitter?.hasAttribute("data-leaves");
    const trouble = document.getElementById("trouble");
    if (!leaves && !event.submitter?.hasAttribute("data-sends") && trouble && !isTouched()) {
      event.preventDefault();
      trouble.hidden = false;
      return;
    }
    sent = !leaves;
  });
  addEventListener("beforeunload", (event) => {
    if (!sent && isTouched()) event.preventDefault();
  });
  addEventListener("pageshow", () => (sent = false));
}
