/* The models panel: models and LoRAs on this machine, downloads, and recommended models.
   This file is fetched when the panel is first opened. */
import { SeedGrid, bare, byId, inputOf, language, make, text, setValue } from "./base.js";
import { overlay } from "./zoom.js";

const LOOK_MS = 700;
const COMING = new Set(["add", "download", "configure"]);
let parts;
let timer;
let moved = 0;

const say = (key, data) => text(`models_${key}`, data);

/** A size in bytes as text. */
function size(bytes) {
  const units = [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"]];
  const [one, unit] = units.find(([each]) => bytes >= each) ?? units.at(-1);
  const number = bytes / one;
  const digits = number < 10 ? 1 : 0;
  return `${number.toLocaleString(language, { maximumFractionDigits: digits })} ${unit}`;
}

function time(seconds) {
  if (seconds < 90) return say("seconds", { number: Math.max(1, Math.round(seconds)) });
  if (seconds < 5400) return say("minutes", { number: Math.round(seconds / 60) });
  return say("hours", { number: (seconds / 3600).toFixed(1) });
}

SeedGrid.showModels = async () => {
  clearTimeout(timer);
  moved = 0;
  const [note, here, moving, loras, first] = [
    make("p", { class: "sg-models-note", role: "status" }),
    make("ul"),
    make("ul", { class: "sg-models-moving" }),
    make("ul", { id: "sg-loras" }),
    make("ul"),
  ];
  parts = { note, here, moving, loras, first, adding: make("div"), box: make("section", { id: "sg-models-panel" }) };
  const dialog = overlay("models", parts.box);
  dialog.addEventListener("close", () => {
    clearTimeout(timer);
    byId("sg-models")?.focus();
  });
  const title = make("h2", { id: "sg-models-title", text: say("title") });
  dialog.setAttribute("aria-labelledby", title.id);
  parts.box.append(title, note);
  const told = await ask().catch(() => null);
  if (!told?.may || !dialog.isConnected) return void (note.textContent = told?.said ?? say("state_failed"));
  const aboutLoras = [make("h3", { text: say("loras") }), make("p", { class: "sg-models-quiet", text: say("loras_note") })];
  parts.box.append(moving, make("h3", { text: say("here") }), here, ...aboutLoras, loras, parts.adding, ...firsts(told, first));
  if (told.may.change) parts.adding.append(adding());
  else if (!told.may.download) note.textContent = say("read_only");
  show(told);
};

const ask = async (isMovingOnly = false) => (await fetch(`seedgrid/models?lang=${language}${isMovingOnly ? "&moving=1" : ""}`)).json();

function firsts(told, list) {
  if (!told.may.download) return [];
  return [make("h3", { text: say("first") }), make("p", { class: "sg-models-quiet", text: say("first_note") }), list];
}

/** Send an action and show its result. */
async function act(action, name) {
  tell("");
  const asked = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name }) };
  const answer = await fetch(`seedgrid/models/${action}?lang=${language}`, asked).catch(SeedGrid.away);
  const told = await answer.json().catch(() => ({ said: answer.statusText, wrong: true }));
  if (told.said) tell(told.said, told.wrong); // A late answer without a sentence clears no newer one.
  await look();
  if (told.wrong || COMING.has(action)) reveal();
  return !told.wrong;
}

/** Scroll the message or the downloads into view, which may be far above on a phone. */
const reveal = () => (parts.note.textContent ? parts.note : parts.moving).scrollIntoView({ block: "nearest" });

function tell(sentence, isWrong = false) {
  parts.note.textContent = sentence ?? "";
  parts.note.classList.toggle("sg-models-wrong", Boolean(isWrong));
}

/** Reload everything, or only the downloads. */
async function look(isMovingOnly = false) {
  clearTimeout(timer);
  const { box } = parts;
  box.setAttribute("aria-busy", "true");
  const told = await ask(isMovingOnly).catch(() => null);
  if (told?.wrong) tell(told.said, true);
  else if (told && box.isConnected) show(told);
  else if (box.isConnected) timer = setTimeout(() => look(isMovingOnly), LOOK_MS); // the net may come back
  box.setAttribute("aria-busy", "false");
}

const goesOn = ({ state }) => ["waiting", "asking", "fetching"].includes(state);

function show({ items, loras, first, may, downloads }) {
  draw(parts.moving, downloads.map(movingRow));
  if (items) {
    draw(parts.here, items.map((item) => hereRow(item, may)));
    drawLoras(loras, may);
    draw(parts.first, first.map(firstRow));
  }
  const coming = downloads.filter(goesOn).length;
  if (coming < moved) look();
  else if (coming) timer = setTimeout(() => look(true), LOOK_MS);
  moved = coming;
}

function drawLoras(loras, may) {
  SeedGrid.triggerWords = () => loras.filter(({ id }) => scaleOf(id) !== null).flatMap((item) => item.words);
  const rows = loras.map((item) => loraRow(item, may, () => drawLoras(loras, may)));
  draw(parts.loras, rows.length ? rows : [make("li", { class: "sg-models-quiet", text: say("loras_none") })]);
}

/** Render a list again, and keep the focus on the same button. */
function draw(list, rows) {
  const had = list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  list.replaceChildren(...rows);
  list.hidden = rows.length === 0;
  if (had === null) return;
  const same = [...list.querySelectorAll("[data-key]")].find((each) => each.dataset.key === had);
  (same ?? parts.box.closest("dialog")).focus();
}

function row(name, facts, badges, buttons) {
  const head = make("div", { class: "sg-models-head" }, make("strong", { text: name }), ...badges);
  const body = make("div", { class: "sg-models-text" }, head, make("p", { text: facts.filter(Boolean).join(" · ") }));
  return make("li", {}, body, make("div", { class: "sg-models-do" }, ...buttons));
}

const badge = (words, kind) => make("span", { class: "sg-models-badge", "data-kind": kind, text: words });

function button(key, name, onclick, kind = "") {
  const label = say(key);
  return make("button", { class: `sg-models-button ${kind}`, "data-key": `${key} ${name}`, "aria-label": `${label}: ${name}`, text: label, onclick });
}

function hereRow(item, may) {
  const isUsed = item.id === chosen();
  const badges = [isUsed && badge(say("in_use"), "used"), item.fits === false && fitting(item), lock(item.lock)];
  const facts = item.problem
    ? [item.problem]
    : [item.family, !item.is_tested && say("family_untested"), item.size, item.formats.join(", "), size(item.num_bytes), item.licence || say("licence_none"), say(`kind_${item.kind}`)];
  const use = !item.problem && !isUsed && button("use", item.id, () => choose(item.id));
  const remove = may.change && item.deletable && button("delete", item.id, () => remove_(item), "sg-models-danger");
  const complete = may.change && item.lacks && button("configure", item.id, () => act("configure", item.id));
  return row(item.id, facts, badges.filter(Boolean), [complete, use, remove].filter(Boolean));
}

/** Memory in each number format, and the first one that fits. */
function fitting({ needs, fitting: format }) {
  const sizes = Object.entries(needs).map(([name, bytes]) => `${name} ${size(bytes)}`).join(", ");
  return badge(say(format ? "fits_as" : "fits_not", { size: sizes, format }), format ? "quiet" : "wrong");
}

function lock(found) {
  if (!found) return badge(say("lock_untested"), "quiet");
  const data = { date: found.date, width: found.width };
  return badge(say(found.holds ? "lock_holds" : "lock_fails", data), found.holds ? "right" : "wrong");
}

function remove_(item) {
  if (confirm(say("delete_sure", { name: item.id, size: size(item.num_bytes) }))) act("delete", item.id);
}

function firstRow(each) {
  const memory = say("memory", { size: `${each.memory_gb} GB` });
  const coming = say("to_fetch", { size: `${each.download_gb} GB` });
  const facts = [each.family, each.use && say(`use_${each.use}`), each.size, coming, memory, each.licence, each.gated && say("gated")];
  const badges = each.fits ? [] : [fitting(each)];
  const fetchIt = button("download", each.id, () => act("download", `${each.id}@${each.revision}`));
  return row(each.id, facts, badges, [fetchIt]);
}

function movingRow(each) {
  const data = { done: size(each.num_bytes), total: size(each.total) };
  const facts = [each.error ?? say(`state_${each.state}`, data)];
  if (each.left_s !== null) facts.push(say("left", { time: time(each.left_s) }));
  const buttons = goesOn(each)
    ? [button("stop", each.id, () => act("stop", each.id))]
    : each.state !== "done" && [button(each.state === "failed" ? "retry" : "resume", each.id, () => act("download", each.id)), button("discard", each.id, () => act("discard", each.id), "sg-models-danger")];
  const made = row(each.id, facts, [], buttons || []);
  if (each.total && each.state !== "done") made.append(bar(each.id, each.num_bytes, each.total));
  return made;
}

const bar = (name, value, max) => make("progress", { "aria-label": name, value, max });

/** A name on the hub, a folder, or a file from this computer. */
function adding() {
  const field = make("input", { type: "text", id: "sg-models-name", placeholder: say("add_placeholder"), autocomplete: "off", spellcheck: "false" });
  const form = make("form", { class: "sg-models-add" }, make("label", { for: field.id, text: say("add_label") }), field, make("button", { type: "submit", class: "sg-models-button", text: say("add") }));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = field.value.trim();
    if (name && (await act("add", name)) && field.value.trim() === name) field.value = ""; // unless something newer is typed
  });
  const file = make("input", { type: "file", id: "sg-models-file", accept: ".safetensors" });
  file.addEventListener("change", () => file.files[0] && send(file.files[0], file));
  // The label is the button, since the browser's own text has its own language.
  form.append(make("span", { class: "sg-models-quiet", text: say("file") }), make("label", { class: "sg-models-button sg-models-choose" }, file, make("span", { text: say("file_choose") })));
  return form;
}

/** Upload a model's file; XMLHttpRequest, since fetch has no upload progress. */
function send(file, field) {
  const request = new XMLHttpRequest();
  request.open("PUT", `seedgrid/models/file/${encodeURIComponent(file.name)}?lang=${language}`);
  request.upload.onprogress = (event) => tell(say("sending", { name: file.name, done: size(event.loaded), total: size(event.total) }));
  request.responseType = "json"; // null for the plain text of the middleware
  request.onloadend = () => {
    const told = request.response ?? { said: request.statusText || say("state_failed"), wrong: true };
    tell(told.said, told.wrong);
    reveal();
    if (field) field.value = "";
    look();
  };
  request.send(file);
  return request;
}

/** Files that were dropped anywhere on the page, one after the other. */
SeedGrid.takeModels = async (files) => {
  const isOpen = parts?.box.closest("dialog")?.open; // a closed dialog stays in the page for a moment
  if (!isOpen) await SeedGrid.showModels();
  for (const file of files) await new Promise((done) => send(file, null).addEventListener("loadend", done));
};

const chosen = () => inputOf("sg-model").value;

/** Choose a model in the settings, and load its lists. */
function choose(name) {
  SeedGrid.choose({ model: name });
  parts.box.closest("dialog").close();
}

/* LoRAs: their tags stand in the prompt, and are put in and changed there. */
const TAG = / ?<lora:([^:<>\n]+)(?::([^:<>\n]+))?>/gi;
const MOST = 4;
const field = () => inputOf("sg-prompt");
const prompt = () => field()?.value ?? "";
const writePrompt = (words) => setValue(field(), words);
const isOf = (name, tag) => tag.trim().toLowerCase() === name.toLowerCase();

/** The scale of a LoRA in the prompt; null if it is not there. */
function scaleOf(name) {
  const found = [...prompt().matchAll(TAG)].find((tag) => isOf(name, tag[1]));
  return found ? (found[2] ?? "1").trim() : null;
}

const without = (name) => prompt().replace(TAG, (tag, named) => (isOf(name, named) ? "" : tag)).trim();
const put = (name, scale) => writePrompt(`${without(name)} <lora:${name}:${scale}>`.trim());

/** Insert words before the tags at the end. */
function putWords(words) {
  const at = prompt().search(TAG);
  const [said, tags] = at < 0 ? [prompt(), ""] : [prompt().slice(0, at), prompt().slice(at)];
  writePrompt([said.trim(), words].filter(Boolean).join(", ") + tags);
}

function scaleField(item, changed) {
  const label = say("lora_scale", { name: item.id });
  const input = make("input", { type: "number", class: "sg-models-scale", min: -MOST, max: MOST, step: 0.1, value: scaleOf(item.id) ?? "1", "data-key": `scale ${item.id}`, "aria-label": label, title: label });
  input.addEventListener("change", () => {
    const scale = Math.min(MOST, Math.max(-MOST, Number(input.value)));
    input.value = input.value === "" || Number.isNaN(scale) ? "1" : String(scale);
    if (scaleOf(item.id) !== null) put(item.id, input.value);
    changed();
  });
  return make("span", { class: "sg-models-scaled" }, make("span", { "aria-hidden": "true", text: say("lora_scale_short") }), input);
}

function chips(item, changed) {
  if (!item.words.length) return "";
  const box = make("div", { class: "sg-models-words" }, make("span", { text: say("lora_words") }));
  const has = bare(prompt().replace(TAG, ""));
  for (const words of item.words) {
    const isThere = has.includes(bare(words));
    const label = say("lora_put", { words });
    const use = () => (isThere || putWords(words), changed());
    box.append(make("button", { class: "sg-models-chip", "data-key": `words ${item.id} ${words}`, "aria-pressed": String(isThere), "aria-label": label, title: label, text: words, onclick: use }));
  }
  return box;
}

function loraRow(item, may, changed) {
  const isUsed = scaleOf(item.id) !== null;
  const scale = scaleField(item, changed);
  const turn = () => (isUsed ? writePrompt(without(item.id)) : put(item.id, scale.querySelector("input").value), changed());
  const use = button(isUsed ? "lora_out" : "use", item.id, turn);
  use.dataset.key = `lora ${item.id}`; // The same key for both labels.
  const facts = [item.made_for || say("lora_any"), size(item.num_bytes), item.licence, item.hub_id];
  const buttons = [scale, use, item.deletable && may.change && button("delete", item.id, () => remove_(item), "sg-models-danger")];
  const made = row(item.id, facts, isUsed ? [badge(say("in_use"), "used")] : [], buttons.filter(Boolean));
  made.querySelector(".sg-models-text").append(chips(item, changed));
  return made;
}
