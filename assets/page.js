/* The page: the action of each button, keys, dropped files, and the buttons of the library and the models panel.
   This module comes last; then it asks the server for this browser's place. */
import { SeedGrid, addListeners, byId, config, inputOf, isComposing, make, topDialog, pick, shows, text, undo } from "./base.js";
import "./server.js";
import "./words.js";
import "./stage.js";
import "./rail.js";
import "./card.js";
import "./variations.js";
import "./form.js";
import "./place.js";
import "./live.js";

/* The server action of each button, with the fields' values and the picked picture. */
const on = (id, ask) => byId(id).addEventListener("click", (event) => event.detail > 1 || ask(event)); // once for a double click
async function begin(action, data = {}) {
  const parts = await SeedGrid.turn(action, data, pick());
  if (parts?.stage) SeedGrid.showStage();
}
let sent = "";
let isSending = false;
const round = (action, around) => {
  sent = "";
  begin(action, { around });
};
const upscaler = () => inputOf("sg-upscaler").value;
on("sg-generate", () => {
  const fields = SeedGrid.typed();
  const isBusy = isSending || document.documentElement.classList.contains("sg-busy");
  if (isBusy && JSON.stringify(fields) === sent) return; // the second click of a double click
  sent = JSON.stringify(fields);
  isSending = true;
  begin("generate", { fields }).finally(() => (isSending = false));
});
on("sg-refine", () => round("refine", SeedGrid.refinement()));
for (const name of ["subtle", "strong"]) on(`sg-${name}`, () => round(name, SeedGrid.typedAround()));
for (const name of ["final", "final-4"]) on(`sg-${name}`, () => round(name, SeedGrid.typedAround({ upscaler: upscaler() })));
on("sg-brush", () => SeedGrid.module("brush").then(({ brush }) => brush()));
on("sg-again", () => begin("again"));
on("sg-stop", () => SeedGrid.ask("stop"));

/* Keys: Enter in the prompt or seeds and Ctrl+Enter generate, 1-9 pick, R refine, B back, Z zoom, F favourite, Esc stop or deselect, ? their list.
   In a text field only Enter (in a variation it refines), Ctrl+Z and Esc. Keys click the buttons. */
const press = (id) => byId(id).click();
/** Mark or unmark the picture in the card. */
SeedGrid.favourite = async () => {
  const cell = document.activeElement?.closest?.("[data-state='live']");
  if (cell) await SeedGrid.keepLive(Number(cell.dataset.cell));
  const star = byId("sg-star");
  return star.disabled ? SeedGrid.keepLive() : star.click();
};
const actions = {
  r: () => press("sg-refine"),
  b: () => press("sg-back"),
  z: () => press("sg-zoom"),
  f: SeedGrid.favourite,
  "?": () => help(),
};

/** Every key and what it does. */
async function help() {
  const { overlay } = await SeedGrid.module("zoom");
  const dialog = overlay("help", byId("sg-help-text").content.cloneNode(true));
  dialog.id = "sg-help";
  dialog.setAttribute("aria-labelledby", "sg-help-title");
}

on("sg-keys", help);

/** The letter of a key, by its place where the keyboard writes others, as Korean or Cyrillic. */
const letterOf = ({ key, code }) => (/^[ -~]/.test(key) ? key : code.replace("Key", "")).toLowerCase();

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable='true']") !== null;
}

/** Of all dialogs only the large view has keys, for the picture that it shows. */
function pressOver(dialog, key) {
  if (!dialog.matches(".sg-zoom")) return;
  const tool = { r: "refine", f: "favourite", b: "brush" }[key];
  if (tool) dialog.querySelector(`[data-tool="${tool}"]`)?.click();
  else if (/^[1-9]$/.test(key)) SeedGrid.module("large").then(({ zoom }) => zoom(Number(key) - 1));
  else if (key === "z") dialog.close();
  else if (key === "?") help();
}

document.addEventListener("keydown", (event) => {
  const dialog = topDialog();
  const isCommand = event.ctrlKey || event.metaKey;
  const isHeld = isCommand || event.altKey || event.repeat || isComposing(event);
  const isStepBack = letterOf(event) === "z" && isCommand && !event.shiftKey;
  if (isStepBack && (!dialog || dialog.matches(".sg-works"))) {
    if (undo(isTyping(event.target) ? event.target : null)) event.preventDefault();
    return;
  }
  if (dialog) {
    if (!isHeld && !isTyping(event.target)) pressOver(dialog, letterOf(event));
    return;
  }
  const isVarying = Boolean(event.target.closest?.("#sg-variations"));
  const isAsking = isVarying || (!event.shiftKey && Boolean(event.target.closest?.("#sg-prompt, #sg-seeds")));
  if (event.key === "Enter" && (isCommand || isAsking) && !isComposing(event)) {
    event.preventDefault();
    event.stopPropagation();
    if (isCommand || isVarying) document.activeElement?.blur(); // so that the next key picks a picture
    press(isVarying ? "sg-refine" : "sg-generate");
    return;
  }
  if (isHeld) return;
  if (event.key === "Escape") {
    if (document.documentElement.classList.contains("sg-busy")) press("sg-stop");
    else if (!isTyping(event.target)) SeedGrid.letGo();
    return;
  }
  if (isTyping(event.target)) return;
  if (/^[1-9]$/.test(event.key)) document.querySelector(`#sg-stage [data-cell="${event.key - 1}"]:not([hidden])`)?.click();
  else actions[letterOf(event)]?.();
}, true);

/* Files dropped anywhere are imported; models and LoRAs go to their panel. */
const veil = byId("sg-veil"); // over everything, also dialogs, while files are dragged
let isOwn = false; // whether a picture of the page is dragged, which Safari takes for a file
addListeners(document, "dragstart dragend", ({ type }) => (isOwn = type === "dragstart"));
const hasFiles = (event) => !isOwn && event.dataTransfer?.types.includes("Files");
document.addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  veil.showPopover();
});
document.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? veil.hidePopover()); // out of the window
const field = inputOf("sg-drop");

function troubleOf({ name, size }) {
  const kinds = field.accept.split(",");
  if (!kinds.some((kind) => name.toLowerCase().endsWith(kind))) {
    return { key: "upload_kind", data: { name, kinds: kinds.join(", ") } };
  }
  const data = { name, value: Math.ceil(size / 2 ** 20), limit: config.max_upload_mb };
  return data.value > data.limit ? { key: "upload_large", data } : null;
}

/** Upload files, or say at once which ones cannot be sent, and send none. */
function take(files) {
  topDialog()?.close(); // the message is on the page
  const wrong = [...files].map(troubleOf).find(Boolean);
  if (wrong) shows.status({ ...wrong, kind: "error", field: "drop" });
  else if (files.length) SeedGrid.turnFiles([...files]);
}

field.addEventListener("change", () => {
  take(field.files);
  field.value = ""; // so that choosing the same file again is noticed
});
document.addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  veil.hidePopover();
  event.preventDefault();
  const { files } = event.dataTransfer;
  const weights = [...files].filter(({ name }) => /\.safetensors$/i.test(name));
  if (weights.length) SeedGrid.module("models").then(() => SeedGrid.takeModels(weights));
  else take(files);
});

/* The buttons of library and models: their modules are loaded at the first click. */
for (const id of ["sg-library-open", "sg-library-door"]) on(id, async () => (await SeedGrid.module("library")).openLibrary());
on("sg-models", async () => {
  await SeedGrid.module("models");
  SeedGrid.showModels();
});

/* This visitor's other runs, also of closed tabs: a chip each, under the bar. */
const LOOK_MS = 1000;
const list = byId("sg-queue");
let timer = 0;
let shown = "[]";

function chip({ run, words, done, total }) {
  const name = text("queue_stop", { words });
  const stop = make("button", { title: name, "aria-label": name, text: "×", onclick: () => SeedGrid.ask("queue", { stopped: run }) });
  return make("li", { title: words }, make("span", { text: words }), make("span", { text: text("queue_part", { done, total }) }), stop);
}

shows.queue = (runs) => {
  clearTimeout(timer);
  if (runs.length) timer = setTimeout(() => SeedGrid.ask("queue"), LOOK_MS);
  if (shown === JSON.stringify(runs)) return;
  shown = JSON.stringify(runs);
  list.replaceChildren(...runs.map(chip));
};

/* The large view is loaded with the first pick, before a click needs it. */
document.addEventListener("sg-card", ({ detail }) => detail && SeedGrid.module("large"));
byId("sg-copy").hidden = !navigator.clipboard; // Browsers give it to secure pages only.
const large = () => SeedGrid.module("large");
on("sg-zoom", async () => (await large()).zoom());
on("sg-save", async () => (await large()).download(SeedGrid.pickedNow()));
on("sg-copy", async () => (await large()).copyPicture());
on("sg-compare", async () => (await SeedGrid.module("zoom")).compare());
on("sg-link", async () => (await large()).copyLink());
SeedGrid.arrive();
