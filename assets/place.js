/* The place: the round that this tab shows. Each place has an address for the browser's Back and
   Forward, and the fields' values at each place are kept in this tab: nothing is lost by a reload, a
   restart of the server or a second tab. */
import { SeedGrid, addListeners, config, inputOf, kept, shows, variations, setValue } from "./base.js";

const tab = kept("seedgrid-tab", () => sessionStorage);
const fieldsOfPlaces = kept("seedgrid-fields", () => sessionStorage);
const MOST = 60;
const inputs = Object.fromEntries(config.fields.map((id) => [id.replaceAll("-", "_"), inputOf(`sg-${id}`)]));
let current = { epoch: -1, round: null };
let records = fieldsOfPlaces.recall() ?? {};
let isFilled = false;
let wanted = null;
let travelled = []; // places of Back and Forward without an answer yet

let typedEarly = {}; // values that were typed before the first answer
document.addEventListener("input", ({ target, isTrusted }) => {
  const name = isTrusted && current.epoch < 0 && Object.keys(inputs).find((each) => inputs[each] === target);
  if (name) typedEarly[name] = target.value;
});

const keyOf = (round) => round ?? "";

/** The place that the address names: a round or a picture, by its id. */
function addressed() {
  const place = new URLSearchParams(location.search).get("place");
  return /^[0-9a-f]{32}$/.test(place ?? "") ? place : null;
}

/** The recipe in the address, if it is a link. */
function link() {
  const said = [...new URLSearchParams(location.search)].filter(([name]) => config.links.includes(name));
  return new URLSearchParams(said).toString();
}

/** The address of a place, without the former place and a link's recipe. */
function addressOf(place) {
  const query = new URLSearchParams(location.search);
  for (const name of ["place", ...config.links]) query.delete(name);
  if (place) query.set("place", place);
  return `${location.pathname}${query.size ? `?${query}` : ""}`;
}

/** Load the place of the address, or this tab's own, when the page opens. */
function arrive() {
  const was = tab.recall();
  const place = addressed();
  const isOurs = was && (place ? [was.round, was.picked].includes(place) : !link());
  if (isOurs) fill(records[keyOf(was.round)]?.now);
  return SeedGrid.turn("load", { place, link: link(), offer: true }, isOurs ? was : {});
}

addEventListener("popstate", () => {
  record();
  travelled.push(addressed());
  SeedGrid.turn("load", { place: addressed(), start: !addressed() });
});

function show(value) {
  if (value.epoch < current.epoch) return;
  const isFirst = current.epoch < 0;
  const before = current;
  const lost = isFirst && !value.round ? tab.recall()?.round : null;
  record();
  current = value;
  SeedGrid.setPlace(value);
  if (value.asked) sent(before, value);
  else fill({ ...((records[keyOf(lost ?? value.round)] ?? records[keyOf(value.round)])?.now ?? value.fields), ...typedEarly });
  typedEarly = {};
  const { work, round, picked, run } = value;
  tab.keep({ work, round, picked, run });
  name(value.address, isFirst);
  if (isFirst) SeedGrid.back(value.epoch);
}

/** Put a place into the address line, as a new step of the history unless it answers Back or Forward: a new step
    after a late answer would delete the steps forward. */
function name(place, isFirst = false) {
  const [isTravelled, answered] = [travelled.length > 0, travelled.indexOf(place)];
  travelled = answered < 0 ? [] : travelled.slice(answered + 1);
  if (answered >= 0) return;
  if (!place && (isTravelled || link())) return; // nothing is there any more, or a link's recipe is not painted yet
  write(isFirst ? "replaceState" : "pushState", place);
}

/** Browsers take milliseconds for this: the pictures come first. */
const write = (go, place) => setTimeout(() => place === addressed() || history[go](null, "", addressOf(place)));

/** The sent fields belong to the new place; the old place gets its own fields back. */
function sent(before, value) {
  const now = read();
  records[keyOf(value.round)] = { base: now, now, at: Date.now() };
  const old = records[keyOf(before.round)];
  if (old && before.work !== value.work && before.round) old.now = { ...old.base, vary: now.vary };
  keepRecords();
  isFilled = true;
  document.dispatchEvent(new Event("sg-filled"));
}

/** The fields' values by name, the variations' as a list under `vary`. */
function read() {
  const valueOf = (input) => (input.type === "checkbox" ? input.checked : input.value);
  const fields = Object.entries(inputs).map(([name, input]) => [name, valueOf(input)]);
  return { ...Object.fromEntries(fields), vary: variations.map(valueOf) };
}

/** Note the fields' values, unless they are being filled in. */
function record() {
  if (!isFilled || current.epoch < 0) return;
  const [key, now] = [keyOf(current.round), read()];
  records[key] = { base: records[key]?.base ?? now, now, at: Date.now() };
  keepRecords();
}

function keepRecords() {
  const newest = Object.entries(records).sort(([, one], [, other]) => other.at - one.at);
  records = Object.fromEntries(newest.slice(0, MOST));
  fieldsOfPlaces.keep(records);
}

/** Write values into the fields. */
async function fill(fields) {
  wanted = fields;
  isFilled = false;
  for (const [name, value] of Object.entries(fields ?? {})) {
    if (name === "vary") variations.forEach((input, index) => setValue(input, value[index] ?? ""));
    else if (name in inputs && !config.lists.includes(name)) type(inputs[name], value);
  }
  await SeedGrid.choose(fields ?? {}, () => wanted === fields);
  if (wanted !== fields) return;
  isFilled = true;
  record();
  document.dispatchEvent(new Event("sg-filled"));
}

function type(input, value) {
  if (input.type !== "checkbox") setValue(input, value);
  else if (input.checked !== Boolean(value)) input.click();
}

addListeners(document, "input change click", ({ target }) => target.closest?.("#sg-top, #sg-panel") && setTimeout(record));
addEventListener("pagehide", record);

document.addEventListener("sg-pick", (event) => {
  if (!current.round || SeedGrid.stageNow().epoch !== current.epoch) return;
  write("replaceState", event.detail ?? current.round);
  const { work, round, run } = current;
  const aside = current.picked === current.address ? null : current.picked;
  tab.keep({ work, round, run, picked: event.detail ?? aside });
});

/** Whether the fields show this place, and what the next rounds may try there. */
SeedGrid.placeNow = () => ({ isFilled, epoch: current.epoch, offers: current.offers ?? [], enlarges: current.enlarges ?? true, upscalers: current.upscalers ?? [] });
/** The fields of a recipe, by name. */
SeedGrid.typed = () => {
  const { vary, ...fields } = read();
  return fields;
};
/** The values for a round from the picked picture. */
SeedGrid.typedAround = (more = {}) => {
  const { vary, device } = read();
  return { vary, device, ...more };
};
/** Reload the place after changes in the library, unless a run is painting. */
SeedGrid.lookAgain = () => current.round && !SeedGrid.stageNow().busy && SeedGrid.turn("load", { place: addressed() ?? current.round });
shows.place = show;
shows.fields = fill;
SeedGrid.arrive = arrive;
