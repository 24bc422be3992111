/* Live: the grid of the current words is painted while typing, and not saved. One request runs and the newest one
   waits. A click with the same fields then saves the pictures, which the server still has. */
import { SeedGrid, addListeners, byId, config, inputOf, kept, pick, shows, text, setValue } from "./base.js";

const SOON_MS = 120; // after the last key
const REST_MS = 10_000; // without input: the shown pictures are saved
const AGAIN_MS = 3000; // before the next try while others paint, or without an answer
const LEFT_MS = 300; // a request that takes so much longer is cancelled for a newer one
const LIMIT_S = 1.5; // Live stops if four pictures take longer
const LOW = 0.2; // level of a battery that is not charging
const button = byId("sg-live");
const wish = kept("seedgrid-live");
let tookS = null; // seconds of four pictures with these settings, from the server
let [number, isGoing] = [0, false];
let [asked, next, shown] = [null, null, null]; // the running request; the waiting one; the one on the stage
let settled = null; // the click that made the round on the stage, as `keyOf` writes it
let owed = null; // the request that was held back by a pause
let battery = null;
let [soonTimer, restTimer] = [0, 0];
const isWished = () => wish.recall() === true;
function hindrance() {
  if (config.zero_gpu) return "live_why_lent";
  if (tookS === null) return "live_why_unknown";
  return tookS < (isGoing ? 2 : 1) * LIMIT_S ? null : "live_why_slow"; // with a margin for a busy moment
}
const isOn = () => isWished() && !hindrance();
const speed = () => ({ seconds: tookS?.toFixed(1), limit: LIMIT_S });
const say = (key, data = speed()) => shows.status({ key, data, kind: "going" });

function showButton() {
  const why = hindrance();
  button.setAttribute("aria-pressed", String(isWished()));
  button.setAttribute("aria-disabled", String(Boolean(why)));
  button.title = text(why ?? "live_title", speed());
  isGoing = isOn();
  document.documentElement.classList.toggle("sg-live", isGoing);
}

button.addEventListener("click", () => {
  if (!isWished() && hindrance()) return say(hindrance());
  wish.keep(!isWished());
  drop();
  showButton();
  if (!isLive()) say(isWished() ? "live_on" : "live_off");
});

/** Why Live pauses. */
function pause() {
  if (document.hidden) return "live_paused_hidden";
  if (battery && !battery.charging && battery.level <= LOW) return "live_paused_battery";
  return navigator.connection?.saveData || matchMedia("(prefers-reduced-data: reduce)").matches ? "live_paused_data" : null;
}
function resume() {
  if (owed) soon(...owed);
  owed = null;
}
document.addEventListener("visibilitychange", () => {
  if (!isOn()) return;
  if (!document.hidden) return resume();
  owed = (next ?? asked)?.words ?? owed;
  drop();
  say("live_paused_hidden");
});
navigator.getBattery?.().then((found) => {
  battery = found;
  addListeners(battery, "levelchange chargingchange", resume);
}, () => undefined); // The browser has no battery information.

const keyOf = (action, data, more) => JSON.stringify([action, data, action === "refine" ? more.picked : null]);
const isOnStage = (does) => SeedGrid.stageNow().cells.some(does);
const isLive = () => isOnStage(({ state }) => state === "live");
const canRefine = () => !byId("sg-refine").disabled;

/** The request of a click, with `over` in place of the fields' values. */
function question(action, over = {}, writes = null) {
  const isRound = action === "refine";
  const data = isRound ? { around: { ...SeedGrid.refinement(), ...over } } : { fields: { ...SeedGrid.typed(), ...over } };
  const more = isRound ? pick() : {};
  return { action, data, more, writes, words: [action, over, writes], key: keyOf(action, data, more) };
}

function soon(...words) {
  clearTimeout(soonTimer);
  clearTimeout(restTimer);
  soonTimer = setTimeout(() => ask(...words), SOON_MS);
}

function ask(...words) {
  const isBusy = document.documentElement.classList.contains("sg-busy");
  if (!isWished() || isBusy || (words[0] === "refine" && !canRefine())) return;
  const why = pause() ?? hindrance();
  owed = why ? words : null;
  if (why) return tookS !== null && say(why); // unknown while the page opens
  const wanted = question(...words);
  if (wanted.key === settled) return backToRound();
  const now = asked ?? (isLive() ? shown : null);
  next = wanted.key === now?.key ? null : wanted;
  if (!next) {
    now.writes = wanted.writes; // a previewed word may be typed by now
    restSoon();
  } else if (!asked) send();
  else if (1000 * tookS - (performance.now() - asked.atMs) > LEFT_MS) asked.stop.abort();
}

/** The fields are those of the saved round again: show it, paint nothing. */
function backToRound() {
  drop();
  if (isLive()) SeedGrid.lookAgain();
}

async function send() {
  const mine = { ...next, number: ++number, atMs: performance.now(), stop: new AbortController() };
  [asked, next] = [mine, null];
  const state = { ...SeedGrid.state(), ...mine.more };
  const came = await SeedGrid.listen(`live-${mine.action}`, { ...mine.data, number: mine.number, state }, mine.stop.signal);
  if (asked !== mine) return;
  asked = null;
  if (next) return send();
  if (!came) await SeedGrid.send("healthz").catch(() => null); // which says so where nobody answers
  if (!came || mine.waits) soonTimer = setTimeout(() => ask(...mine.words), AGAIN_MS);
  else restSoon();
}

shows.live = (value) => {
  if ("took_s" in value) {
    tookS = value.took_s;
    showButton();
    if (isOn()) resume();
  } else if (value.number === asked?.number) { // otherwise the answer of an older request
    asked.waits = value.key === "live_paused_queue";
    if (isLive() && [undefined, "live_shown"].includes(value.key)) shown = asked; // otherwise it was refused or waits
    if (value.key) say(value.key, value.data);
  }
};

/** Stop requests; one that equals the click goes on. */
function drop(key = null) {
  clearTimeout(soonTimer);
  clearTimeout(restTimer);
  if (asked?.key !== key) asked?.stop.abort();
  asked = next = null;
}

document.addEventListener("sg-turn", ({ detail: [action, data, more] }) => {
  const key = ["generate", "refine"].includes(action) ? keyOf(action, data, more) : null;
  drop(key);
  if (action !== "load") settled = key; // which shows the same round, or is asked by Back
  shown = owed = null;
});
addEventListener("popstate", () => (settled = null));

/** Save the shown pictures and pick one, unless they are saved. */
SeedGrid.keepLive = async (index = null) => {
  const kept = shown;
  if (!kept || !isLive()) return;
  if (kept.writes) setValue(inputOf(kept.writes.id), kept.writes.value);
  const parts = await SeedGrid.turn(kept.action, kept.data, kept.more);
  if (!parts?.stage) shown = kept;
  else if (index !== null) SeedGrid.chooseCell(index);
};

function restSoon() {
  clearTimeout(restTimer);
  const isNew = isOnStage(({ source }) => source?.startsWith("live/"));
  if (asked || !shown || shown.writes || !isNew) return; // a previewed word is not typed
  restTimer = setTimeout(() => (document.hasFocus() && !document.hidden ? SeedGrid.keepLive() : restSoon()), REST_MS);
}
addListeners(document, "keydown pointerdown", restSoon);
document.addEventListener("click", ({ target }) => target.closest?.("#sg-save, #sg-star") && SeedGrid.keepLive());

addListeners(document, "input compositionend", ({ target, isComposing, isTrusted }) => {
  if (isComposing || (!isTrusted && (!SeedGrid.placeNow().isFilled || SeedGrid.isOffering))) return; // not typed
  if (target.closest?.("#sg-variations, #sg-hold-row")) soon("refine");
  else if (target.closest?.("#sg-prompt, #sg-seeds, #sg-settings")) soon("generate");
});

let [looked, before] = [null, null]; // the previewed word; the request before it
function look(chip) {
  if (looked === chip || !isOn()) return;
  if (!looked) before = isLive() ? shown?.action : null;
  looked = chip;
  if (!chip) return before || !SeedGrid.state().round ? soon(before ?? "generate") : backToRound();
  const { id, value } = chip.sgWrites();
  const at = Number(/^sg-vary-(\d)$/.exec(id)?.[1]) - 1;
  if (at >= 0 && canRefine()) return soon("refine", { vary: SeedGrid.typedAround().vary.with(at, value) }, { id, value });
  const prompt = at >= 0 ? inputOf("sg-prompt").value + value : value;
  soon("generate", { prompt }, { id: "sg-prompt", value: prompt });
}
addListeners(document, "pointerover focusin", ({ target }) => look(target.closest?.("#sg-hints .sg-chip") ?? null));
showButton();
