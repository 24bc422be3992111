/* What every part of the page shares: the language, its words, small tools. Knows no picture. */
const config = JSON.parse(document.getElementById("sg-config").textContent);
const { language } = config;

/** The sentence for a key in the visitor's language, filled in; data are shown as text only. */
function text(key, data = {}) {
  const sentence = config.texts[key];
  if (sentence === undefined) return data.message ?? key;
  return sentence.replace(/\{(\w+)\}/g, (whole, name) =>
    name in data ? word(name, data[name]) : whole,
  );
}

/** Some data are words of ours: the name of a field, or a list of sentences. */
function word(name, value) {
  if (Array.isArray(value)) return clauses(value.map((part) => text(part.key, part.data)));
  return config.texts[`${name}_${value}`] ?? String(value);
}

/** Sentences as the parts of a longer one. */
function clauses(sentences) {
  const open = sentences.map((sentence) => sentence.replace(/[.。]$/, ""));
  return open.map((part) => (config.lowers ? part[0].toLowerCase() + part.slice(1) : part)).join(config.joiner);
}

/** A text as its words alone, to look whether one holds another. */
const bare = (said) => ` ${said.toLowerCase().split(/[^\p{L}\p{N}]+/u).join(" ").trim()} `;

/** What this browser, or this tab, keeps under a name; one that keeps nothing forgets that, and nothing else. */
function kept(key, storage = () => localStorage) {
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
        // forgotten
      }
      return value;
    },
  };
}

/** A short list of texts that this browser keeps, the newest first. */
function shortList(key, most) {
  const list = kept(key);
  return {
    recall() {
      const found = list.recall();
      return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
    },
    keep: (all) => list.keep(all.slice(0, most)),
  };
}

/** Make an element; `text` becomes textContent, never HTML. A button sends no form unless it says so. */
function make(tag, attributes = {}, ...children) {
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

const paths = {
  lock: "M7 10V7.5a5 5 0 0 1 10 0V10h1a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2h1zm2.2 0h5.6V7.5a2.8 2.8 0 0 0-5.6 0V10z",
  star: "M12 3.2l2.7 5.6 6.1.8-4.5 4.2 1.1 6.1L12 17l-5.4 2.9 1.1-6.1-4.5-4.2 6.1-.8z",
  zoom: "M10.5 4a6.5 6.5 0 0 1 5.2 10.4l4.2 4.2-1.5 1.4-4.2-4.2A6.5 6.5 0 1 1 10.5 4zm0 2.1a4.4 4.4 0 1 0 0 8.8 4.4 4.4 0 0 0 0-8.8z",
  save: "M11 4h2v8.2l3.1-3.1 1.4 1.4L12 16l-5.5-5.5 1.4-1.4L11 12.2zM5 17.5h14v2H5z",
  compare: "M4 5h7v14H4zm2 2v10h3V7zm7-2h7v14h-7z",
  copy: "M8 4h11v13H8zm2 2v9h7V6zM5 8h2v10.9h9V21H5z",
  before: "M15 4.6 16.4 6 10.4 12l6 6-1.4 1.4L7.6 12z",
  after: "M9 4.6 7.6 6l6 6-6 6L9 19.4 16.4 12z",
  close: "M6.4 5 12 10.6 17.6 5 19 6.4 13.4 12l5.6 5.6-1.4 1.4-5.6-5.6L6.4 19 5 17.6l5.6-5.6L5 6.4z",
};

/** Make a part of a drawing. */
function shape(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** One of our icons, drawn here so that no icon font is needed. */
function icon(name) {
  const looks = { viewBox: "0 0 24 24", class: `sg-icon sg-icon-${name}`, "aria-hidden": "true" };
  return shape("svg", looks, shape("path", { d: paths[name] }));
}

/** A button that is on or off; `change` is told what it is now. */
function toggle(look, key, change) {
  const press = () => {
    const isOn = button.ariaPressed !== "true";
    button.ariaPressed = isOn;
    change(isOn);
  };
  const button = make("button", { class: look, "aria-pressed": "false", text: text(key), onclick: press });
  return button;
}

/** An address of this visitor's own; where the browser keeps no cookie it says who asks. */
const own = (path) => (SeedGrid.by ? `${path}${path.includes("?") ? "&" : "?"}by=${SeedGrid.by}` : path);

/** A picture's address on this server; ids are 32 hexadecimal digits. */
const pictureUrl = (id) => own(`seedgrid/pictures/${id}.png`);
const thumbUrl = (id) => own(`seedgrid/thumbs/${id}.jpg`);

/** An image of a picture, or a quiet mark in its place when the file is gone. */
function image(source, isLost, attributes = {}) {
  const gone = () =>
    make("span", { ...attributes, class: `${attributes.class ?? ""} sg-gone`, title: text("picture_gone") });
  if (isLost) return gone();
  const node = make("img", { alt: "", ...attributes });
  node.addEventListener("error", () => node.replaceWith(gone()));
  node.src = source;
  return node;
}

/** Prompt pieces as [kind, text] pairs: added words marked, removed ones struck out. */
function words(pieces) {
  const tags = { same: "span", added: "ins", removed: "del" };
  const box = make("bdi", { class: "sg-words" });
  for (const [kind, part] of pieces) box.append(make(tags[kind], { text: part }));
  return box;
}

/** What shows a new value of a part of the page. */
const shows = {};

/** Show what an answer of the server says of each part of the page. */
function tell(news) {
  for (const [name, value] of Object.entries(news)) shows[name]?.(value);
}

const byId = (id) => document.getElementById(id);
/** What lies over the page and over all else; undefined where nothing does. */
const over = () => [...document.querySelectorAll("dialog[open]")].at(-1);

/** The input of a field, by the field's id. */
const inputOf = (id) => byId(id)?.querySelector("textarea, input, select");

const AT_ONCE_MS = 50;

/** What Ctrl+Z takes back, the newest last: each with whether that is possible still. */
const steps = [];
let isUndoing = false;
const noteStep = (step) => isUndoing || steps.push({ ...step, atMs: performance.now() });

/** Take back the last step; what was done in one go, as four lines at once, goes in one. */
function undo() {
  const last = steps.findLast((step) => step.isThere());
  steps.length = steps.indexOf(last) + 1;
  isUndoing = true;
  for (let step = last; step && last.atMs - step.atMs < AT_ONCE_MS; step = steps.at(-1)) {
    steps.pop();
    if (step.isThere()) step.undo();
  }
  isUndoing = false;
  return Boolean(last);
}

/** Write into an input, as if it were typed. */
function write(input, value) {
  if (!input || input.value === value) return;
  const before = input.value;
  if (SeedGrid.placeNow?.().isFilled && navigator.userActivation.isActive) noteStep({ input, isThere: () => input.value === value, undo: () => write(input, before) });
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Allow a button, or not. */
const allow = (id, allowed) => (byId(id).disabled = !allowed);

/** What can be done now, from what is on the stage and in the card. */
function refresh() {
  const stage = SeedGrid.stageNow?.();
  const card = SeedGrid.pickedNow?.();
  const ringed = stage?.cells?.[stage.picked];
  const isForming = ringed && ringed.state !== "done";
  const canGoOn = Boolean(card) && !isForming;
  for (const id of ["sg-refine", "sg-subtle", "sg-strong"]) allow(id, canGoOn);
  const isThere = canGoOn && !card.lost;
  for (const id of ["sg-star", "sg-save", "sg-copy", "sg-verify", "sg-begin", "sg-final", "sg-final-4"]) allow(id, isThere);
  allow("sg-link", canGoOn && Boolean(card.link));
  allow("sg-brush", isThere && !card.isEarly && !card.upscaler);
  const seen = stage?.cells?.filter((cell) => cell.state === "done" && !cell.lost) ?? [];
  const hasOthers = seen.some((cell) => cell.id !== card?.id);
  // What a picture came from stands on the whole card, which Python sends after the stage's first word.
  allow("sg-compare", isThere && !card.isEarly && Boolean(card.parent || hasOthers));
  allow("sg-zoom", seen.length > 0);
}

/** Move the focus among nodes by arrows, Home and End: one of them is reached by Tab, the rest so. */
function rove(event, nodesOf, columns = 1) {
  const nodes = nodesOf();
  const at = nodes.indexOf(document.activeElement);
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  const ends = { Home: 0, End: nodes.length - 1 };
  const next = ends[event.key] ?? at + steps[event.key];
  if (at < 0 || !nodes[next] || event.ctrlKey || event.metaKey || event.altKey) return false;
  nodes[next].focus();
  return true;
}

/** What is picked right now: the ring on the stage, or else the card. */
function pick() {
  const stage = SeedGrid.stageNow();
  const ringed = stage.cells[stage.picked];
  return { picked: ringed?.id ?? SeedGrid.pickedNow()?.id ?? null };
}

/** The page's parts meet here; tests and the console find it as `SeedGrid`. */
export const SeedGrid = { config, fields: config.fields, links: config.links, maxUploadMb: config.max_upload_mb, language, text, bare, kept, shortList, make, shape, icon, toggle, image, words, shows, tell, own, noteStep, undo, pictureUrl, thumbUrl, byId, over, inputOf, write, allow, refresh, rove, pick };
globalThis.SeedGrid = SeedGrid;
