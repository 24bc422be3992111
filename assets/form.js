/* The form: lists and defaults of the settings, sizes, the start picture, seeds, notices at fields,
   and folded settings. */
import { SeedGrid, addListeners, byId, config, image, inputOf, make, shows, text, thumbUrl, setValue } from "./base.js";


// ---- Lists and defaults of the settings -------------------------------------------------------------------
const lists = Object.fromEntries(config.lists.map((name) => [name, inputOf(`sg-${name}`)]));
let asking = new AbortController();

/** Fill lists and placeholders; a choice that is still offered stays. */
function showOffer({ lists: choices, chosen, open, hints, shapes }) {
  for (const [name, pairs] of Object.entries(choices)) {
    const list = lists[name];
    const before = list.value;
    const wanted = pairs.some(([, value]) => value === before) ? before : (chosen[name] ?? pairs[0]?.[1] ?? "");
    list.replaceChildren(...pairs.map(([label, value]) => make("option", { value, text: label })));
    select(list, wanted);
  }
  for (const [name, placeholder] of Object.entries(open)) inputOf(`sg-${name}`).placeholder = placeholder;
  SeedGrid.showHints(hints);
  showShapes(shapes);
}

/** Choose a value; one that is not offered is added, and Generate says why it is refused. */
function select(list, value) {
  if (![...list.options].some((option) => option.value === value)) list.add(new Option(value, value));
  list.value = value;
}

/** Ask for a model's lists and defaults; only the newest answer counts. */
SeedGrid.offer = (model = lists.model.value) => {
  asking.abort();
  asking = new AbortController();
  lists.model.dataset.wanted = model;
  return SeedGrid.ask("offer", { model: model || null }, {}, asking.signal);
};
shows.offer = (offer) => {
  showOffer(offer);
  const { wanted } = lists.model.dataset;
  if (wanted && [...lists.model.options].some(({ value }) => value === wanted)) lists.model.value = wanted;
};

/** Choose values in lists, if they are wanted still when another model's lists have come. */
SeedGrid.choose = async (fields, isWanted = () => true) => {
  if (fields.model && fields.model !== (lists.model.dataset.wanted || lists.model.value)) await SeedGrid.offer(fields.model);
  for (const [name, list] of Object.entries(lists)) {
    const value = fields[name];
    if (value && list.value !== value && isWanted()) {
      select(list, value);
      list.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }
};

lists.model.addEventListener("change", () => SeedGrid.offer());

// ---- Aspect ratios: each writes its size into the field ----------------------------------------
const shapesBox = byId("sg-shapes");
const size = inputOf("sg-size");
const typedSize = make("option", { hidden: "" });

function shapeOption(shape) {
  const { ratio, width, height, is_own: own } = shape;
  const title = text("shapes_title", { name: ratio || text("shapes_own"), width, height }) + (own ? ` · ${text("shapes_own")}` : "");
  return make("option", { value: shape.size, text: ratio || `${width} × ${height}`, "data-title": title, "data-ratio": ratio, "data-own": own ? "" : null });
}

/** Select the ratio of the size in the field; an empty field means the model's own. */
function markShape() {
  const wanted = size.value.trim().toLowerCase().replaceAll(" ", "").replace("×", "x");
  typedSize.textContent = wanted;
  const chosen = [...shapesBox.options].find((each) => (wanted ? each.value === wanted : "own" in each.dataset)) ?? typedSize;
  chosen.selected = true;
  shapesBox.title = chosen.dataset.title ?? text("shapes_label");
}

function showShapes(shapes) {
  shapesBox.hidden = shapes.length < 2;
  shapesBox.replaceChildren(...shapes.map(shapeOption), typedSize);
  markShape();
}
size.addEventListener("input", markShape);
shapesBox.addEventListener("change", () => setValue(size, shapesBox.value));

// ---- Settings in pasted prompts of other tools (--ar, --seed) --------------------------
byId("sg-prompt").addEventListener("input", ({ target, inputType }) => {
  if (inputType !== "insertFromPaste") return;
  const [, across, down] = /\s--ar (\d{1,3}):(\d{1,3})\b/.exec(target.value) ?? [];
  const [, number] = /\s--seed (\d{1,10})\b/.exec(target.value) ?? [];
  const seed = Number(number) < NUM_SEEDS ? number : null;
  const shape = shapesBox.querySelector(`[data-ratio="${across}:${down}"]`);
  if (shape) setValue(size, shape.value);
  if (seed) setValue(seeds, seed);
  const rest = target.value.replace(shape ? /\s--ar \d{1,3}:\d{1,3}\b/ : "", "").replace(seed ? /\s--seed \d{1,10}\b/ : "", "");
  if (rest !== target.value) setValue(target, rest);
});

// ---- The start picture beside the prompt ------------------------------------
const start = inputOf("sg-start");
let shownStart = "";

function showStart() {
  const value = start.value.trim();
  if (value === shownStart) return;
  shownStart = value;
  const isId = /^[0-9a-f]{32}([0-9a-f]{32})?$/.test(value);
  const button = (key, name, onclick, content) => make("button", { class: name, title: text(key), "aria-label": text(key), onclick }, content);
  const picture = isId ? image(thumbUrl(value), false, { class: "sg-thumb" }) : "…";
  const chip = button("starting_title", "sg-starting", () => openField("sg-strength"), picture);
  const away = button("starting_away", "sg-starting-away", () => setValue(start, ""), "×");
  byId("sg-starting").replaceChildren(...(value ? [chip, away] : []));
}
start.addEventListener("input", showStart);
byId("sg-begin").addEventListener("click", () => setValue(start, SeedGrid.pickedNow()?.id ?? ""));

// ---- New seeds, written into the field -------------------------------
const NUM_SEEDS = 2 ** 32;
const MOST = 256; // pictures of a run, as in seedgrid/core/checks.py
const seeds = inputOf("sg-seeds");

/** The seeds in the field, "0-3" or "7, 11", read as the server does; empty if they are invalid. */
function writtenSeeds() {
  if (!/^\s*(\d+(\s*[-–…]\s*\d+)?(\s*[,;]\s*|\s+|$))+$/.test(seeds.value)) return [];
  return [...seeds.value.matchAll(/(\d+)(?:\s*[-–…]\s*(\d+))?/g)].flatMap(([, first, last = first]) => Array.from({ length: Math.min(Math.max(0, last - first + 1), MOST) }, (_, index) => Number(first) + index));
}

const seedsOnStage = () => (SeedGrid.stageNow?.()?.cells ?? []).map((cell) => cell.seed).filter(Number.isInteger);
const seedsNow = () => [writtenSeeds(), seedsOnStage(), [0, 1, 2, 3]].find((found) => found.length);
const drawn = (found) => [...crypto.getRandomValues(new Uint32Array(Math.min(found.length, MOST)))].join(", ");

function following(found) {
  const past = Math.max(...found) + 1;
  const first = past + found.length > NUM_SEEDS ? 0 : past;
  return found.length > 1 ? `${first}-${first + found.length - 1}` : String(first);
}

function paint(choose) {
  setValue(seeds, choose(seedsNow()));
  byId("sg-generate").click();
}

/** Update the number in "Next". */
function labelNext() {
  const number = seedsNow().length;
  byId("sg-next").textContent = number === 4 ? text("next_seeds") : text("next_number", { number });
}
document.addEventListener("sg-pick", labelNext);
seeds.addEventListener("input", labelNext);

/** Buttons beside the field: so many seeds from the first one on, or new random ones. */
const count = byId("sg-count");
count.addEventListener("change", () => {
  const [first] = seedsNow();
  const start = Math.min(first, NUM_SEEDS - Number(count.value));
  setValue(seeds, count.value === "drawn" ? drawn(seedsNow()) : `${start}-${start + Number(count.value) - 1}`);
  count.selectedIndex = 0;
  seeds.focus();
});

byId("sg-roll").addEventListener("click", ({ detail }) => detail > 1 || paint(drawn));
byId("sg-next").addEventListener("click", ({ detail }) => detail > 1 || paint(following));

// ---- Folded settings ----------------------------------------------
const settings = byId("sg-settings");
const experts = byId("sg-expert");

/** Open the folded part that contains a field. */
SeedGrid.reveal = (field) => {
  experts.open ||= experts.contains(field);
  settings.open = true;
};

settings.addEventListener("click", (event) => {
  // Scroll an opened part into view if it ends below the window.
  if (event.isTrusted && event.target.closest("summary")) requestAnimationFrame(() => settings.scrollIntoView({ block: "nearest" }));
});

// ---- The bar: its height follows the prompt's lines ------------------------
const ONE_LINE_PX = 54;
new ResizeObserver(([{ target }]) => {
  const taller = Math.max(0, target.offsetHeight - ONE_LINE_PX);
  document.documentElement.style.setProperty("--sg-taller", `${taller}px`);
}).observe(byId("sg-bar"));
byId("sg-bar").addEventListener("focusout", ({ target }) => (target.scrollTop = 0));

// ---- Notices at the fields -------------------------------------------------------------
const PAUSE_MS = 250;
const enqueue = SeedGrid.makeQueue();
let timer = 0;
let shownAdvice = "";

/** One question at a time: of two that overlap, the older one may be answered last. One that another has
    followed before its turn came is not sent. */
function adviseSoon() {
  clearTimeout(timer);
  const mine = setTimeout(() => enqueue(() => mine === timer && advise()), PAUSE_MS);
  timer = mine;
}

const advise = () => SeedGrid.ask("advise", { fields: SeedGrid.typed(), around: SeedGrid.typedAround() });

function showAdvice(all) {
  const news = JSON.stringify(all);
  if (news === shownAdvice) return;
  shownAdvice = news;
  for (const note of document.querySelectorAll(".sg-advice")) note.remove();
  for (const each of all) placeAdvice(each);
}

function placeAdvice({ field, key, data }) {
  const at = byId({ vary: "sg-variations", prompt: "sg-hints" }[field] ?? `sg-${field}`);
  const note = make("p", { class: "sg-advice", role: "status" }, make("span", { text: text(key, data) }));
  if (key === "error_words_unknown") {
    note.append(
      adviceButton("advice_words", () => SeedGrid.openHints()),
      adviceButton("advice_model", () => openField("sg-model")),
    );
  }
  const row = at?.closest(".sg-setting-row");
  if (field === "prompt") at?.prepend(note);
  else if (row) row.after(note); // below both of its fields
  else at?.append(note);
}

function adviceButton(key, onclick) {
  // The prompt keeps the focus; otherwise its words would close.
  return make("button", { class: "sg-link", text: text(key), onmousedown: (event) => event.preventDefault(), onclick });
}

/** Focus a field, after opening the folded part that contains it. */
function openField(id) {
  SeedGrid.reveal(byId(id));
  byId(id).scrollIntoView({ block: "center" });
  inputOf(id).focus();
}

addListeners(document, "input change", ({ target }) => target.closest?.("#sg-top, #sg-panel") && adviseSoon());
addListeners(document, "sg-words sg-painted", adviseSoon);
shows.advice = showAdvice;
