/* Requests to the server, one after the other if they change the place; the stream of a run; and the
   banner when the server does not answer. */
import { SeedGrid, byId, config, kept, language, make, topDialog, shows, render, text } from "./base.js";

const NAMES = ["work", "round", "picked", "run", "epoch"];

/** A queue of requests: each is sent after the answer to the one before. */
SeedGrid.makeQueue = () => {
  let last = Promise.resolve();
  return (ask) => (last = last.then(ask, ask));
};

const enqueue = SeedGrid.makeQueue();
const ownPlace = kept("seedgrid-place");
const ownName = kept("seedgrid-visitor");
let known = ownPlace.recall() ?? {};

/** The page state; at the start the stored one. */
SeedGrid.setPlace = (place) => {
  known = Object.fromEntries(NAMES.map((name) => [name, place[name] ?? null]));
  ownPlace.keep(known);
};
SeedGrid.state = () => known;

/** The visitor's id, for a browser that keeps no cookie of this page. */
const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const visitor = ownName.recall() ?? ownName.keep(newId());
shows.keyed = (isKeyed) => (SeedGrid.by = isKeyed ? visitor : null);

const ownHeaders = async () => ({ "X-SeedGrid-Language": language, "X-SeedGrid-Visitor": visitor, ...(await lentHeaders()) });
/** Send a request; throws if the server does not answer. */
async function send(path, options = {}) {
  try {
    const answer = await fetch(path, { ...options, headers: { ...(await ownHeaders()), ...options.headers } });
    // The server refuses it: too many requests, too large, or an error.
    if (!answer.ok) shows.status?.({ key: "status_refused", kind: "error", data: { code: answer.status } });
    return answer;
  } catch (error) {
    if (error.name === "TypeError") away();
    throw error;
  }
}
SeedGrid.send = send;

const asJson = (body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

async function post(path, options) {
  const answer = await send(path, options).catch(() => null);
  if (!answer?.ok) return null;
  const parts = await answer.json().catch((error) => {
    if (error.name === "TypeError") away(); // the server went in the middle of its answer
    else if (error.name !== "AbortError") throw error;
  });
  if (parts) render(parts);
  return parts ?? null;
}

/** Send an action that does not change the place, and show its answer. Null if it was refused or aborted. */
SeedGrid.ask = (action, data = {}, more = {}, signal = null) =>
  post(`seedgrid/do/${action}`, { ...asJson({ state: { ...known, ...more }, ...data }), signal });

/** Send an action that changes the place, after the answers to all earlier ones: a second click on Back starts
    from the place of the first one's answer. `next` may return a further action, by the answer. */
SeedGrid.turn = (action, data = {}, more = {}, next = () => null) => {
  document.dispatchEvent(new CustomEvent("sg-turn", { detail: [action, data, more] }));
  return enqueue(async () => {
    const parts = await SeedGrid.ask(action, data, more);
    const then = next(parts);
    return then ? SeedGrid.ask(...then) : parts;
  });
};

/** Upload files, in the queue. */
SeedGrid.turnFiles = (files) =>
  enqueue(() => {
    const body = new FormData();
    body.append("state", JSON.stringify(known));
    for (const file of files) body.append("files", file);
    return post("seedgrid/drop", { method: "POST", body });
  });

/** Resolves when all earlier requests are answered. */
SeedGrid.turnsDone = () => enqueue(() => undefined);

/** Read a stream of events to its end; false if it broke off. */
SeedGrid.listen = async (action, data = {}, signal = null) => {
  try {
    const asked = asJson({ state: known, ...data });
    const answer = await fetch(`seedgrid/do/${action}`, { ...asked, signal, headers: { ...asked.headers, ...(await ownHeaders()) } });
    if (!answer.ok) return answer.status < 429; // from 429 on it is tried again
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return true;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) if (part.startsWith("data: ")) render(JSON.parse(part.slice(6)));
    }
  } catch {
    return false;
  }
};

const PAUSE_MS = 2000;
let current = null;

/** Follow the updates of a page state; without one, stop. A broken connection is opened again, until a newer
    page state comes or the server does not answer. */
SeedGrid.stream = async (state) => {
  current?.abort();
  current = state ? new AbortController() : null;
  const signal = current?.signal;
  while (signal && !signal.aborted && !(await SeedGrid.listen("follow", { state }, signal))) {
    if (signal.aborted) return;
    shows.status({ epoch: state.epoch, key: "status_unreachable", kind: "going", data: {} });
    await pause(PAUSE_MS);
    if (SeedGrid.isAway()) return; // the page is reloaded
    if (!(await answers())) return void away();
  }
  if (signal && !signal.aborted) settle(state);
};

/** After a restart the server does not know the run: it is over. */
function settle(state) {
  const stage = SeedGrid.stageNow();
  if (!stage.busy || stage.epoch !== state.epoch) return;
  shows.stage({ ...stage, busy: false });
  shows.status({ epoch: state.epoch, key: "status_interrupted", kind: "note", data: {} });
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// When the server does not answer, the page says so, keeps what was typed (place.js), and reloads once it answers.
const went = kept("seedgrid-went", () => sessionStorage);
const banner = byId("sg-away");
let isLeaving = false;
addEventListener("beforeunload", () => (isLeaving = true));

async function away() {
  if (SeedGrid.isAway() || isLeaving) return;
  went.keep(SeedGrid.stageNow?.().busy ? "busy" : "idle"); // for the reloaded page
  banner.showPopover(); // over every dialog
  while (!(await answers())) await pause(1500);
  location.reload();
}

const answers = () => fetch("healthz", { cache: "no-store" }).then(() => true, () => false);

/** After a reload: say that the server's restart ended the run, also where its place has no finished picture. */
SeedGrid.back = (epoch) => {
  const before = went.recall();
  went.keep(null);
  setTimeout(() => {
    const said = SeedGrid.statusNow();
    const isLost = said === "place_unknown" ? before : !said && before === "busy" && !SeedGrid.stageNow().busy;
    if (isLost) shows.status({ epoch, key: "status_interrupted", kind: "note", data: {} });
  });
};
SeedGrid.away = away;

/** Import a module that is loaded on demand; without a server it never resolves. */
SeedGrid.module = (name) => import(`./${name}.js`).catch(() => (away(), new Promise(() => undefined)));
SeedGrid.isAway = () => banner.matches(":popover-open");

/** On a Space with ZeroGPU, get the token of the user's quota from the surrounding page. */
function lentHeaders() {
  if (!config.zero_gpu || window.parent === window) return {};
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = ({ data }) => resolve(data ?? {});
    setTimeout(() => resolve({}), 500);
    window.parent.postMessage("zerogpu-headers", "https://huggingface.co", [channel.port2]);
  });
}

/* The status line under the stage, and messages at the field they are about. */
const [statusLine, ways] = byId("sg-status").children;
let epoch = -1;
let isMarked = false;
// The fields of the page; other errors are shown in the status line only.
const PLACES = new Set([...config.fields, "vary", "drop"]);

function show(value) {
  if (value.epoch < epoch) return;
  epoch = value.epoch ?? epoch;
  const sentence = value.key ? text(value.key, value.data) : "";
  if (sentence !== statusLine.textContent) statusLine.textContent = sentence; // the same one costs no frame
  statusLine.dataset.kind = value.kind;
  statusLine.dataset.key = value.key ?? "";
  const said = topDialog()?.querySelector(".sg-said"); // the status line is covered by the dialog
  if (said) said.textContent = value.kind === "error" ? statusLine.textContent : "";
  offer(value);
  clearFields();
  if (PLACES.has(value.field)) complain(value.field, text(value.key, value.data));
  else if (value.kind === "error" || value.kind === "note") statusLine.scrollIntoView({ block: "nearest" });
}

/** The button that fixes an error, if there is one. */
function offer(value) {
  const told = Object.entries(value.data?.settings ?? {}).map(([name, each]) => `${text(`${name}_label`)} ${each}`);
  const button = (key, onclick) => make("button", { class: "sg-pill", text: text(key, { settings: told.join(", ") }), onclick });
  const found = {
    error_imported: ({ settings }) => (Object.keys(settings).length ? [button("import_settings", () => (render({ fields: settings }), offer({})))] : []),
    error_picture_without_recipe: () => [button("drop_describe", () => byId("sg-prompt").querySelector("textarea").focus()), button("library_open", () => byId("sg-library-open").click())],
  };
  ways.replaceChildren(...(found[value.key]?.(value.data) ?? []));
  ways.hidden = !ways.children.length;
}

function clearFields() {
  if (!isMarked) return; // called at every step of a run, so without searching the whole page
  isMarked = false;
  for (const note of document.querySelectorAll(".sg-field-error")) note.remove();
  for (const field of document.querySelectorAll("[data-sg-wrong]")) {
    delete field.dataset.sgWrong;
    field.querySelector("input, textarea, select")?.removeAttribute("aria-invalid");
  }
}

/** Remove a field's error when it is edited. */
function corrected() {
  if (isMarked) statusLine.textContent = "";
  clearFields();
}

/** Show an error at its field; a folded part is opened first. */
function complain(name, sentence) {
  const field = byId(`sg-${name === "vary" ? "vary-1" : name}`);
  if (!field?.checkVisibility()) SeedGrid.reveal(field);
  if (!field) return; // the status line shows it, too
  isMarked = true;
  const input = field.querySelector("input, textarea, select");
  field.dataset.sgWrong = "";
  field.append(make("p", { class: "sg-field-error", role: "alert", text: sentence }));
  input?.setAttribute("aria-invalid", "true");
  input?.addEventListener("input", corrected, { once: true });
  if (input?.type !== "file") input?.focus();
}

SeedGrid.statusNow = () => statusLine.dataset.key ?? "";
shows.status = show;
