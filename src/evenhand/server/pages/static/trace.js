// Spans open without loading the whole page again; the address follows, so that Back and shared links work.
import { localTimes } from "./times.js";
import { startCopies } from "./copies.js";

/**
 * Shows the span of an address in the panel, and marks its row.
 * @param {URL} address
 */
async function show(address) {
  const part = new URL(address);
  part.searchParams.set("part", "span");
  part.hash = "";
  const answer = await fetch(part, { headers: { accept: "text/html" } });
  if (!answer.ok) {
    location.assign(address);
    return;
  }
  const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("span");
  const panel = document.getElementById("span");
  if (!made || !panel) return;
  panel.replaceWith(document.adoptNode(made));
  localTimes(made);
  startCopies(made);
}

/** @param {Element | null} row */
function mark(row) {
  for (const old of document.querySelectorAll(".tree .at")) {
    old.classList.remove("at");
    old.removeAttribute("aria-current");
  }
  row?.classList.add("at");
  row?.setAttribute("aria-current", "true");
}

/** @param {MouseEvent} event */
async function open(event) {
  const link = /** @type {HTMLAnchorElement | null} */ (
    /** @type {Element} */ (event.target).closest(".tree .nm a:first-of-type, #span .tabs a")
  );
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const row = link.closest("li");
  if (row && link.closest(".tree")) mark(row);
  history.pushState(null, "", link.href);
  await show(new URL(link.href));
}

document.addEventListener("click", open);
addEventListener("popstate", async () => {
  const wanted = new URL(location.href).searchParams.get("span");
  const links = /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(".tree .nm a:first-of-type"));
  const link = [...links].find((one) => new URL(one.href).searchParams.get("span") === wanted) ?? links[0];
  mark(link?.closest("li") ?? null);
  await show(new URL(location.href));
});
