/* Shared by all parts of the page: texts of the language, storage, and DOM helpers. */
export const config = JSON.parse(document.getElementById("sg-config").textContent);
export const { language } = config;

/** The sentence of a key in the visitor's language, with its data filled in as text. */
export function text(key, data = {}) {
  const sentence = config.texts[key];
  if (sentence === undefined) return data.message ?? key;
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => (name in data ? word(name, data[name]) : whole));
}

/** Translate data that are keys: the name of a field, or a list of sentences. */
function word(name, value) {
  if (Array.isArray(value)) return clauses(value.map((part) => text(part.key, part.data)));
  return config.texts[`${name}_${value}`] ?? String(value);
}

/** Join sentences into one. */
function clauses(sentences) {
  const open = sentences.map((sentence) => sentence.replace(/[.。]$/, ""));
  return open.map((part) => (config.lowers ? part[0].toLowerCase() + part.slice(1) : part)).join(config.joiner);
}

/** The words of a text between spaces, to test whether one text contains another. */
export const bare = (said) => ` ${said.toLowerCase().split(/[^\p{L}\p{N}]+/u).join(" ").trim()} `;

/** A value in this browser's, or this tab's, storage; without storage it is lost with the page. */
export function kept(key, storage = () => localStorage) {
  return {
    recall() {
      try {
        return JSON.parse(storage().getItem(key));
      } catch {
        return null;
      }
    },
    keep(value) {
      try {
        storage().setItem(key, JSON.stringify(value));
      } catch {
        // The browser refuses storage.
      }
      return value;
    },
  };
}

/** A stored list of texts, the newest first. */
export function shortList(key, most) {
  const list = kept(key);
  return {
    recall() {
      const found = list.recall();
      return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
    },
    keep: (all) => list.keep(all.slice(0, most)),
  };
}

/** Make an element; `text` becomes textContent, never HTML. Buttons have type "button" by default. */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  if (tag === "button") node.type = "button";
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter(Boolean));
  return node;
}

/** Make an SVG element. */
function shape(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** An icon: a symbol of the page's document. */
export function icon(name) {
  const looks = { viewBox: "0 0 24 24", class: `sg-icon sg-icon-${name}`, "aria-hidden": "true" };
  return shape("svg", looks, shape("use", { href: `#sg-symbol-${name}` }));
}

/** A toggle button; `change` is called with its new state. */
export function toggle(look, key, change) {
  const press = () => {
    const isOn = button.ariaPressed !== "true";
    button.ariaPressed = isOn;
    change(isOn);
  };
  const button = make("button", { class: look, "aria-pressed": "false", text: text(key), onclick: press });
  return button;
}

/** An address with the visitor's id, if the browser keeps no cookie. */
export const withVisitor = (path) => (SeedGrid.by ? `${path}${path.includes("?") ? "&" : "?"}by=${SeedGrid.by}` : path);

/** A picture's address on this server; ids are 32 hexadecimal digits. */
export const pictureUrl = (id) => withVisitor(`seedgrid/pictures/${id}.png`);
export const thumbUrl = (id) => withVisitor(`seedgrid/thumbs/${id}.jpg`);

/** An image of a picture, or a placeholder if its file is missing. */
export function image(source, isLost, attributes = {}) {
  const gone = () => make("span", { ...attributes, class: `${attributes.class ?? ""} sg-gone`, title: text("picture_gone") });
  if (isLost) return gone();
  const node = make("img", { alt: "", ...attributes });
  node.addEventListener("error", () => node.replaceWith(gone()));
  node.src = source;
  return node;
}

/** Prompt pieces as [kind, text] pairs: added words marked, removed ones struck out. */
export function words(pieces) {
  const tags = { same: "span", added: "ins", removed: "del" };
  const box = make("bdi", { class: "sg-words" });
  for (const [kind, part] of pieces) box.append(make(tags[kind], { text: part }));
  return box;
}

/** Functions that show a new value of a part of the page, by name. */
export const shows = {};
/** What the modules offer each other, also for tests and the console. */
export const SeedGrid = { shows };
globalThis.SeedGrid = SeedGrid;

/** Show all parts of an answer of the server. */
export function render(update) {
  for (const [name, value] of Object.entries(update)) shows[name]?.(value);
}

/** Whether a key belongs to an input method; Safari tells by the code alone that Enter ends its word. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

export const byId = (id) => document.getElementById(id);
/** The topmost open dialog, if any. */
export const topDialog = () => [...document.querySelectorAll("dialog[open]")].at(-1);

/** The input of a field, by the field's id. */
export const inputOf = (id) => byId(id)?.querySelector("textarea, input, select");

/** The inputs of the four variations. */
export const variations = [1, 2, 3, 4].map((number) => inputOf(`sg-vary-${number}`));

/** Listen to several kinds of events, named with spaces between them. */
export function addListeners(target, kinds, heard, options = {}) {
  for (const kind of kinds.split(" ")) target.addEventListener(kind, heard, options);
}

const AT_ONCE_MS = 50;

/** Steps that Ctrl+Z can undo, the newest last. */
const steps = [];
let isUndoing = false;
export const noteStep = (step) => isUndoing || steps.push({ ...step, atMs: performance.now() });

/** Undo the last step, or the last of an input; steps of one action are undone together. */
export function undo(input = null) {
  const last = steps.findLast((step) => step.isThere());
  if (input && last?.input !== input) return false; // The browser undoes what was typed.
  steps.length = steps.indexOf(last) + 1;
  isUndoing = true;
  for (let step = last; step && last.atMs - step.atMs < AT_ONCE_MS; step = steps.at(-1)) {
    steps.pop();
    if (step.isThere()) step.undo();
  }
  isUndoing = false;
  return Boolean(last);
}

/** Set an input's value and dispatch `input`. */
export function setValue(input, value) {
  if (!input || input.value === value) return;
  const before = input.value;
  if (SeedGrid.placeNow?.().isFilled && navigator.userActivation.isActive) noteStep({ input, isThere: () => input.value === value, undo: () => setValue(input, before) });
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Enable or disable a button. */
export const setEnabled = (id, isEnabled) => (byId(id).disabled = !isEnabled);

/** Enable the buttons that apply to the stage and the card. */
export function refresh() {
  const stage = SeedGrid.stageNow?.();
  const card = SeedGrid.pickedNow?.();
  const pickedCell = stage?.cells?.[stage.picked];
  const isForming = pickedCell && pickedCell.state !== "done";
  const isPickReady = Boolean(card) && !isForming;
  for (const id of ["sg-refine", "sg-subtle", "sg-strong"]) setEnabled(id, isPickReady);
  const hasFile = isPickReady && !card.lost;
  for (const id of ["sg-star", "sg-save", "sg-copy", "sg-verify", "sg-begin", "sg-final", "sg-final-4"]) setEnabled(id, hasFile);
  setEnabled("sg-link", isPickReady && card.link !== undefined);
  setEnabled("sg-brush", hasFile && !card.isEarly && !card.upscaler);
  const seen = stage?.cells?.filter((cell) => cell.state === "done" && !cell.lost) ?? [];
  const hasOthers = seen.some((cell) => cell.id !== card?.id);
  // The parent is known from the full card, which the server sends after the pick.
  setEnabled("sg-compare", hasFile && !card.isEarly && Boolean(card.parent || hasOthers));
  setEnabled("sg-zoom", seen.length > 0);
}

/** Move the focus among nodes by arrows, Home and End (roving tabindex). */
export function rove(event, nodesOf, columns = 1) {
  const nodes = nodesOf();
  const at = nodes.indexOf(document.activeElement);
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  const ends = { Home: 0, End: nodes.length - 1 };
  const next = ends[event.key] ?? at + steps[event.key];
  if (at < 0 || !nodes[next] || event.ctrlKey || event.metaKey || event.altKey) return false;
  nodes[next].focus();
  return true;
}

/** The id of the picked picture on the stage, else of the one in the card. */
export function pick() {
  const stage = SeedGrid.stageNow();
  const ringed = stage.cells[stage.picked];
  return { picked: ringed?.id ?? SeedGrid.pickedNow()?.id ?? null };
}
