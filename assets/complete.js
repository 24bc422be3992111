/* Tab completes the typed word, in the prompt and in the variations: from the model's words, a LoRA's trigger
   words, or earlier prompts. The server is not asked. */
import { SeedGrid } from "./base.js";

const { make, text } = SeedGrid;
const LEAST_PX = 60; // of free space after the text
const lists = ["prompts", "variations"].map((name) => SeedGrid.shortList(`seedgrid-${name}`, 100));
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
  const isPlain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.isComposing);
  if (!field || !isPlain || !["Tab", "Escape", "Enter"].includes(event.key)) return;
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
for (const kind of ["selectionchange", "focusout"]) {
  document.addEventListener(kind, () => field && (document.activeElement !== field || field.selectionEnd !== before.textContent.length) && drop());
}
