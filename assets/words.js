/* Earlier prompts of this browser: ArrowUp in the prompt goes back through them as in a terminal, and
   the list under the field can be searched and edited. They are not sent to the server. */
import { SeedGrid, addListeners, byId, icon, inputOf, isComposing, make, rove, shortList, text, setValue } from "./base.js";

const prompts = shortList("seedgrid-prompts", 100);
const { recall } = prompts;
let at = -1; // the position in the list; -1 is the typed prompt
let typed = "";
let isWriting = false;
const input = inputOf("sg-prompt");

function keep(texts) {
  prompts.keep(texts);
  draw();
}

/** Add the generated prompt as the newest one. */
function note() {
  const prompt = input.value.trim();
  at = -1;
  if (prompt) keep([prompt, ...recall().filter((each) => each !== prompt)]);
}

function put(value) {
  isWriting = true;
  setValue(input, value);
  input.setSelectionRange(value.length, value.length);
  isWriting = false;
}

/** Go back or forward in the list. */
function go(step) {
  const prompts = recall();
  if (at < 0) typed = input.value;
  const newest = prompts[0] === typed.trim() ? 1 : 0; // the current prompt is skipped
  const next = at < 0 ? newest : at + step;
  if (next >= prompts.length) return false;
  at = next < newest ? -1 : next;
  put(at < 0 ? typed : prompts[at]);
  return true;
}

/** In a prompt of several lines the arrows move the cursor, unless one is in the list. */
const isFree = () => at >= 0 || input.selectionStart === 0 || input.scrollHeight < 60;
const isPlain = (event) => !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || isComposing(event));
input.addEventListener("keydown", (event) => {
  const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (isPlain(event) && step && !(step < 0 && at < 0) && isFree() && go(step)) event.preventDefault();
});
input.addEventListener("input", () => {
  if (!isWriting) at = -1;
  mark();
});
byId("sg-generate").addEventListener("click", note, true);

// The folded list, below the model's words; hidden while it is empty.
const historyBox = document.querySelector("#sg-hints .sg-history");
const [search, clear, list] = ["input", "button", "ul"].map((tag) => historyBox.querySelector(tag));
search.addEventListener("input", draw);
clear.addEventListener("click", () => (keep([]), SeedGrid.forgetOwn()));

function entry(prompt) {
  const use = make("button", { class: "sg-history-use", onclick: () => (put(prompt), input.focus()) }, make("bdi", { text: prompt }));
  const forget = make("button", { class: "sg-history-forget", "aria-label": text("history_delete", { words: prompt }), onclick: () => keep(recall().filter((each) => each !== prompt)) }, icon("close"));
  return make("li", {}, use, forget);
}

function draw() {
  const prompts = recall();
  const wanted = search.value.trim().toLowerCase();
  const found = prompts.filter((each) => each.toLowerCase().includes(wanted));
  historyBox.hidden = prompts.length === 0;
  list.replaceChildren(...(found.length ? found.map(entry) : [make("li", { class: "sg-quiet", text: text("history_none") })]));
}

draw();

/* Words that the model knows, as chips under the prompt. A subject or a style takes the place of the
   one that is there; all other words go into the variations. */
const element = document.querySelector("#sg-hints .sg-hint-rows");
let lastVariation = 4;
document.addEventListener("focusin", (event) => {
  const field = event.target.closest?.("[id^='sg-vary-']");
  if (field) lastVariation = Number(field.id.at(-1)) - 1;
});

const hasSome = () => chips().length > 0 || !historyBox.hidden;
// Open while the prompt has the focus; closed by Generate, so that they do not cover pictures.
const open = (isOpen) => {
  byId("sg-hints").classList.toggle("sg-open", isOpen);
  if (isOpen) mark();
};
document.addEventListener("focusin", (event) => {
  open(event.target.closest?.("#sg-prompt, #sg-hints") !== null && hasSome());
});
document.addEventListener("pointerdown", (event) => {
  if (event.target.closest?.("#sg-prompt")) open(hasSome());
  else if (!event.target.closest?.("#sg-hints")) open(false);
});
document.addEventListener("keydown", (event) => {
  const isChip = event.target.closest?.("#sg-hints");
  if (event.key === "Escape" && isChip) (event.stopImmediatePropagation(), input.focus());
  else if (event.key === "Enter" && isChip) return;
  if (event.key === "Enter" || event.key === "Escape") open(false);
}, true);
// Tab moves between rows, arrows between words.
const chips = () => [...element.querySelectorAll(".sg-chip")];
element.addEventListener("keydown", (event) => rove(event, chips) && event.preventDefault());
element.addEventListener("focusin", (event) => {
  const row = event.target.closest(".sg-hint-words");
  for (const each of row?.children ?? []) each.tabIndex = each === event.target ? 0 : -1;
});

SeedGrid.openHints = () => {
  input.focus();
  open(hasSome());
};

/** The field that a word would be written into, and its new value. */
function writes(kind, word, words) {
  if (kind !== "subjects" && kind !== "styles") return { id: `sg-vary-${(lastVariation % 4) + 1}`, value: `, ${word}` };
  const id = "sg-prompt";
  const prompt = inputOf(id).value;
  const lower = prompt.toLowerCase();
  const there = words
    .filter((other) => placeOf(other.toLowerCase(), lower) >= 0)
    .sort((one, other) => other.length - one.length)[0];
  if (there) {
    const at = placeOf(there.toLowerCase(), lower);
    return { id, value: prompt.slice(0, at) + word + prompt.slice(at + there.length) };
  }
  const glue = kind === "styles" && !word.startsWith("in ") ? ", " : " ";
  return { id, value: `${prompt.trimEnd()}${prompt.trim() ? glue : ""}${word}` };
}

function use(chip) {
  const { id, value } = chip.sgWrites();
  if (id !== "sg-prompt") lastVariation = Number(id.at(-1));
  setValue(inputOf(id), value);
}

/** The position of a whole word in a text; -1 if it is not there. */
function placeOf(word, words) {
  const isLatin = (letter) => /[a-z0-9]/.test(letter ?? "");
  const goesOn = (at) => isLatin(words[at - 1]) && isLatin(words[at]);
  let at = words.indexOf(word);
  while (at >= 0 && (goesOn(at) || goesOn(at + word.length))) at = words.indexOf(word, at + 1);
  return at;
}

/** Mark the words that are in the prompt. */
function mark() {
  const prompt = input.value.toLowerCase();
  for (const node of element.querySelectorAll(".sg-chip")) {
    node.setAttribute("aria-pressed", String(placeOf(node.textContent.toLowerCase(), prompt) >= 0));
  }
}

function chip(kind, word, words) {
  const stay = (event) => event.preventDefault(); // the prompt keeps the focus
  const node = make("button", { class: "sg-chip", tabindex: "-1", text: word, onmousedown: stay, onclick: () => use(node) });
  node.sgWrites = () => writes(kind, word, words);
  return node;
}

function show(value) {
  const rows = Object.entries(value).map(([kind, words]) => {
    const name = make("span", { class: "sg-hint-kind", text: text(`hints_${kind}`, { message: kind }) });
    return make("div", { class: "sg-hint-row" }, name, make("div", { class: "sg-hint-words" }, ...words.map((word) => chip(kind, word, words))));
  });
  element.replaceChildren(...rows);
  for (const row of element.querySelectorAll(".sg-hint-words")) row.firstElementChild?.setAttribute("tabindex", "0");
  if (document.activeElement === input) open(true); // the focus came before the words
  document.dispatchEvent(new Event("sg-words")); // another model has other words
}

SeedGrid.showHints = show;

/* Tab completes the typed word, in the prompt and in the variations: from the model's words, a LoRA's trigger
   words, or earlier prompts. The server is not asked. */
const LEAST_PX = 60; // of free space after the text
const lists = [prompts, shortList("seedgrid-variations", 100)];
const [before, words] = [make("span"), make("span")];
const rest = make("span", {}, words, make("kbd", { text: "Tab" }));
const ghost = make("div", { class: "sg-ghost", "aria-hidden": "true" }, before, rest);
let field = null; // that shows a completion
let isTaking = false;

/** The rest of a suggestion that begins with the last typed words, as many of them as possible. */
function completion(typed) {
  const lines = lists.flatMap((list) => list.recall()).map((line) => line.split("<lora:")[0]);
  const chips = [...document.querySelectorAll("#sg-hints .sg-chip")].map((chip) => chip.textContent);
  const known = [...chips, ...(SeedGrid.triggerWords?.() ?? []), ...lines, ...lines.flatMap((line) => line.split(/[,，]/))];
  const said = [...typed.matchAll(/[\p{L}\p{N}]+/gu)].slice(-12);
  if ((said.at(-1)?.[0].length ?? 0) < 2 || !typed.endsWith(said.at(-1)[0])) return "";
  const tails = said.map(({ index }) => typed.slice(index).toLowerCase());
  const goOn = (tail) => known.map((each) => each.trim()).find((each) => each.toLowerCase().startsWith(tail) && /[\p{L}\p{N}]/u.test(each[tail.length] ?? ""));
  const tail = tails.find(goOn);
  return tail ? goOn(tail).slice(tail.length) : "";
}

/** Show it at the end of the text; only LoRA tags may follow. */
function offer(target) {
  const [typed, after] = [target.value.slice(0, target.selectionEnd), target.value.slice(target.selectionEnd).trim()];
  before.textContent = typed;
  words.textContent = after && !after.startsWith("<lora:") ? "" : completion(typed.slice(-200));
  if (!words.textContent || target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight) return;
  target.after(ghost);
  field = target;
  field.setAttribute("aria-keyshortcuts", "Tab");
  field.setAttribute("aria-description", `${text("help_complete")}: ${typed.split(/\s/).at(-1)}${words.textContent}`);
  const room = ghost.clientWidth - rest.offsetLeft;
  rest.style.maxWidth = `${room}px`;
  if (room < LEAST_PX) drop();
}

function drop() {
  ghost.remove();
  for (const name of ["aria-keyshortcuts", "aria-description"]) field?.removeAttribute(name);
  field = null;
}

function take() {
  isTaking = true;
  document.execCommand("insertText", false, words.textContent); // so that Ctrl+Z undoes it
  isTaking = false;
}

document.addEventListener("input", ({ target, inputType, isTrusted, isComposing }) => {
  drop();
  const isTyped = isTrusted && inputType === "insertText" && !isComposing && !isTaking;
  if (isTyped && target.matches("#sg-prompt textarea, #sg-variations input")) offer(target);
});
document.addEventListener("keydown", (event) => {
  if (!field || !isPlain(event) || !["Tab", "Escape", "Enter"].includes(event.key)) return;
  drop();
  if (event.key === "Enter") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (event.key === "Tab") take();
}, true);
rest.addEventListener("pointerdown", (event) => {
  event.preventDefault(); // the field keeps the focus
  drop();
  take();
});
addListeners(document, "selectionchange focusout", () => field && (document.activeElement !== field || field.selectionEnd !== before.textContent.length) && drop());
