"use strict";
// The samples of a run: filters, search, and a page of rows at a time. Every text becomes a text node; there is no HTML
// made from text anywhere here, and the page's policy forbids it too.
(() => {
const root = document.getElementById("samples");
if (!root) return;
const PAGE = 50;
const [bar, picked, list, pager] = [".picker", ".picked", ".rows", ".pager"].map((name) => root.querySelector(name));
const scorers = JSON.parse(root.dataset.scorers);
const rows = [];
const asked = new Map(); // problem → the row that holds what was asked; later repeats leave it out
let found = [], page = 0, typing = 0;
const number = new Intl.NumberFormat("en");

function make(tag, given = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}

function shown(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(4))) : value;
}

function scored(row) {
  const value = row.v[0];
  if (value === null || value === undefined)
    return make("span", { className: row.s === "failed" ? "missing failed" : "missing" }, row.w || row.s);
  if (typeof value !== "number" || (value > 0 && value < 1)) return make("span", {}, shown(value));
  return value >= 1
    ? make("span", { className: "good" }, "✓ " + shown(value))
    : make("span", { className: "bad" }, "✕ " + shown(value));
}

function block([caption, text, kind = 0]) {
  if (kind === 1)
    return [make("details", { className: "more" }, make("summary", {}, caption), make("pre", { tabIndex: 0 }, text))];
  if (kind === 2)
    return [make("div", { className: caption === "user" ? "turn by-us" : "turn by-others" },
      make("h3", {}, caption), make("p", { tabIndex: 0 }, text))];
  if (kind === 3) return [make("p", { className: "figure" }, make("b", {}, caption), " " + text)];
  return [make("h3", {}, caption), make("pre", { tabIndex: 0 }, text)];
}

const questionOf = (row) => row.q || (asked.get(row.i) || row).q || "";
const askedOf = (row) => row.asked || (asked.get(row.i) || {}).asked || [];
const nameOf = (row) => (row.r ? `${row.i}.${row.r}` : String(row.i));

function fill(details, row) {
  if (details.childElementCount > 1) return;
  const columns = [askedOf(row), row.got || [], row.why || []].map((blocks) =>
    make("div", {}, ...blocks.flatMap(block)));
  details.append(make("div", { className: "opened" }, ...columns));
  if (row.f) details.append(make("p", { className: "facts" }, row.f));
}

function line(row) {
  const question = make("span", { className: "named" }, make("span", { className: "line" }, questionOf(row) || "…"));
  if (row.c) question.append(make("span", { className: "tag" }, row.c));
  const details = make("details", {}, make("summary", { className: "sample" },
    make("span", { className: "number quiet" }, nameOf(row)), question,
    make("span", { className: "line" }, row.a || "–"), make("span", { className: "number" }, scored(row))));
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    fill(details, row);
    state.open = nameOf(row);
    remember();
  });
  return details;
}

// What is chosen; kept in the address, so that a link opens the same view.
const state = { status: "", why: "", category: "", scorer: "0", from: "", to: "", text: "", order: "", open: "" };
function remember() {
  const said = new URLSearchParams(Object.entries(state).filter(([name, value]) => value && !(name === "scorer" && value === "0")));
  try { history.replaceState(null, "", said.size ? "#" + said : location.pathname + location.search); } catch { /* some viewers forbid it */ }
}
for (const [name, value] of new URLSearchParams(location.hash.slice(1))) if (name in state) state[name] = value;

function searched(row) {
  // Lower case is made once; after that a search is a look through strings.
  if (row.low === undefined) {
    const texts = [questionOf(row), row.c || "", row.w || "", row.f || ""];
    for (const blocks of [askedOf(row), row.got, row.why])
      for (const one of blocks || []) texts.push(one[1]);
    row.low = texts.join("\n").toLowerCase();
  }
  return row.low;
}

function choose() {
  clearTimeout(typing);
  const text = state.text.trim().toLowerCase();
  const place = Number(state.scorer);
  const [from, to] = [state.from, state.to].map((one) => (one.trim() === "" || isNaN(one) ? null : Number(one)));
  found = rows.filter((row) => {
    if (state.status && row.s !== state.status) return false;
    if (state.why && (row.w || "") !== state.why) return false;
    if (state.category && (row.c ?? "") !== state.category) return false;
    if (from !== null || to !== null) {
      const value = row.v[place];
      if (typeof value !== "number" || (from !== null && value < from) || (to !== null && value > to)) return false;
    }
    return !text || searched(row).includes(text);
  });
  if (state.order) {
    const sign = state.order === "lowest" ? 1 : -1;
    const value = (row) => (typeof row.v[place] === "number" ? row.v[place] : sign * Infinity);
    found.sort((a, b) => sign * (value(a) - value(b)) || a.i - b.i || (a.r || 0) - (b.r || 0));
  }
  page = 0;
  show();
  remember();
}

function show() {
  const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
  page = Math.min(Math.max(page, 0), last);
  const start = page * PAGE;
  list.replaceChildren(...found.slice(start, start + PAGE).map(line));
  const all = number.format(rows.length), few = number.format(found.length);
  picked.textContent = found.length === rows.length ? `${all} samples` : found.length ? `${few} of ${all} samples` : `None of ${all} samples`;
  pager.hidden = last === 0;
  const turn = (text, step, off) => {
    const made = make("button", { type: "button", disabled: off }, text);
    made.addEventListener("click", () => { page += step; show(); root.scrollIntoView(); });
    return made;
  };
  pager.replaceChildren(
    make("span", {}, `${number.format(start + 1)} to ${number.format(Math.min(start + PAGE, found.length))} of ${few}`),
    turn("Previous", -1, page === 0), turn("Next", 1, page === last));
}

function counted(of) {
  const counts = new Map();
  for (const row of rows) { const key = of(row); if (key) counts.set(key, (counts.get(key) || 0) + 1); }
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

function labelled(label, control) {
  return make("label", {}, make("span", {}, label), control);
}

function choice(label, name, options) {
  const control = make("select", { name }, ...options.map(([value, text]) => make("option", { value }, text)));
  control.value = state[name];
  if (control.selectedIndex < 0) { control.value = ""; state[name] = ""; }
  control.addEventListener("change", () => { state[name] = control.value; choose(); });
  return labelled(label, control);
}

function field(label, name, given) {
  const control = make("input", { name, value: state[name], autocomplete: "off", ...given });
  control.addEventListener("input", () => {
    state[name] = control.value;
    clearTimeout(typing);
    typing = setTimeout(choose, 120);
  });
  return labelled(label, control);
}

function build() {
  const counts = (pairs) => pairs.map(([name, count]) => [name, `${name} (${number.format(count)})`]);
  const statuses = counted((row) => row.s), whys = counted((row) => row.w), categories = counted((row) => row.c);
  bar.replaceChildren();
  bar.append(field("Search", "text", { type: "search" }));
  bar.append(choice("Status", "status", [["", "all"], ...counts(statuses)]));
  if (whys.length) bar.append(choice("Failure", "why", [["", "all"], ...counts(whys)]));
  if (categories.length) bar.append(choice("Category", "category", [["", "all"], ...counts(categories)]));
  if (scorers.length > 1) bar.append(choice("Scorer", "scorer", scorers.map((name, place) => [String(place), name])));
  const value = scorers.length > 1 ? "Score" : scorers[0];
  bar.append(field(`${value} from`, "from", { type: "text", inputMode: "decimal", className: "short" }));
  bar.append(field("to", "to", { type: "text", inputMode: "decimal", className: "short" }));
  bar.append(choice("Order", "order", [["", "as asked"], ["lowest", "lowest score first"], ["highest", "highest score first"]]));
  const clear = make("button", { type: "button" }, "Clear");
  clear.addEventListener("click", () => {
    for (const name of Object.keys(state)) state[name] = name === "scorer" ? "0" : "";
    build();
    choose();
  });
  bar.append(clear);
  bar.hidden = false;
}
bar.addEventListener("submit", (event) => event.preventDefault());

function ready() {
  const open = state.open;
  build();
  choose();
  root.dataset.ready = "yes";
  if (!open) return;
  const place = found.findIndex((row) => nameOf(row) === open);
  if (place < 0) return;
  page = Math.floor(place / PAGE);
  show();
  const details = list.children[place % PAGE];
  details.open = true;
  details.scrollIntoView();
}

// The data are read block by block, so that a large report can be scrolled meanwhile.
const blocks = [...document.querySelectorAll("script.rows")];
function read() {
  const until = performance.now() + 30;
  while (blocks.length && performance.now() < until) {
    const one = blocks.shift();
    for (const row of JSON.parse(one.textContent)) {
      if (row.asked) asked.set(row.i, row);
      rows.push(row);
    }
    one.remove();
  }
  if (blocks.length) { setTimeout(read, 0); return; }
  ready();
}
setTimeout(read, 0);
})();
