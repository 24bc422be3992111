/* The card of the picked picture: its locked seed, its words compared with its parent's, its settings. */
import { SeedGrid, byId, icon, image, inputOf, language, make, withVisitor, pick, refresh, shows, text, thumbUrl, words } from "./base.js";

const element = byId("sg-picked");
const isTouched = matchMedia("(pointer: coarse)").matches;
const star = byId("sg-star");
star.addEventListener("click", () => now && mark(now));
let now = null;

function show(value) {
  now = value.id ? value : null;
  const card = now ? full(value) : empty();
  card.classList.add("sg-card-head");
  const typing = element.dataset.pictureId === value.id && element.querySelector(".sg-note:focus"); // stays where it is
  const [facts, note] = now && !now.isEarly ? [make("p", { class: "sg-facts", text: factsOf(value) }), typing || noteField(value)] : [];
  const said = value.lost ? "card_lost" : value.trashed ? "card_trashed" : (value.hint ?? (now ? "card_picked" : "card_none"));
  for (const old of [...element.childNodes]) if (old !== typing) old.remove();
  element.prepend(...[card, facts, note !== typing && note].filter(Boolean));
  star.setAttribute("aria-pressed", String(Boolean(now?.favourite)));
  byId("sg-hint").textContent = text(said);
  if (now && !now.isEarly) {
    const onStage = SeedGrid.stageNow?.().cells?.find(({ id }) => id === now.id);
    if (onStage) onStage.favourite = now.favourite; // for the large view and the next pick
  }
  element.dataset.pictureId = value.id ?? "";
  refresh();
  document.dispatchEvent(new CustomEvent("sg-card", { detail: value.id }));
}

function empty() {
  const about = make("p", { class: "sg-quiet", text: text(isTouched ? "pick_touch" : "pick_text") });
  const words = make("div", {}, make("strong", { text: text("pick_title") }), about);
  return make("div", { class: "sg-card-empty" }, make("span", { class: "sg-thumb sg-thumb-empty" }), words);
}

function full(value) {
  const seed = make("span", { class: "sg-lock-seed", text: value.seed });
  const badges = [value.lock, value.checked === false && { key: "lock_elsewhere", data: {} }].filter(Boolean).map(badge);
  const lock = make("p", { class: "sg-lock", title: text("lock_title") }, icon("lock"), seed, ...badges);
  const facts = make("div", { class: "sg-card-text" }, lock, mixed(value), words(value.pieces), painted(value));
  return make("div", {}, image(thumbUrl(value.id), value.lost, { class: "sg-thumb" }), facts);
}

/** Wait for the server's card of the pick: it would overwrite the mark. */
function mark({ id, favourite }) {
  SeedGrid.picking.then(() => SeedGrid.ask("favourite", { id, favourite: !favourite }));
}

/** The noise mix: shares of seeds, or the number of a subtle or strong variation. */
function mixed({ mix, neighbour }) {
  const shares = [mix ?? []].flat().map((share) => text("mix_share", share));
  if (!shares.length) return null;
  const which = neighbour ? ` ${text("mix_neighbour", { number: neighbour })}` : "";
  return make("p", { class: "sg-quiet sg-mix", text: shares.join(" + ") + which });
}

/** The painted words, if they were typed in another language. */
function painted(value) {
  if (!value.painted) return null;
  return make("p", { class: "sg-quiet sg-painted", text: text("painted_from", { words: value.painted }) });
}

/** The probe's result for the lock; empty before a probe. */
function badge(lock) {
  return make("span", { class: "sg-badge", "data-lock": lock.key.replace("lock_", ""), title: text(`${lock.key}_why`, lock.data), text: text(lock.key, lock.data) });
}

function noteField({ id, note }) {
  const label = text("note_placeholder");
  const save = (event) => SeedGrid.ask("note", { id, note: event.target.value });
  return make("input", { class: "sg-note", maxlength: "2000", value: note, placeholder: label, "aria-label": label, onchange: save });
}

function factsOf(value) {
  const parts = [`${value.width} × ${value.height}`, text("facts_steps", { number: value.steps })];
  const { scheduler, usual_scheduler: usual } = value;
  parts.push(scheduler === usual ? scheduler : text("facts_scheduler", { name: scheduler, usual }), text("facts_guidance", { number: value.guidance }), value.model);
  parts.push(...value.loras.map((lora) => `${text("fours_lora")} ${lora}`));
  if (value.strength) parts.push(text("facts_start", { number: value.strength }));
  if (value.upscaler) parts.push(text("facts_enlarged", { name: value.upscaler }));
  if (value.portable) parts.push(text("facts_portable"));
  if (value.negative) parts.push(text("facts_without", { words: value.negative }));
  return parts.join(" · ");
}

/** Show what the stage knows of a picture at once; the server's full card follows. */
document.addEventListener("sg-pick", (event) => {
  if (!event.detail || event.detail === now?.id) return;
  const cell = SeedGrid.stageNow().cells.find((each) => each.id === event.detail);
  if (cell) show({ ...cell, pieces: [["same", cell.prompt]], isEarly: true });
});
/** Ignore a card of a picture that is no longer picked. */
function isLate({ id }) {
  const { cells, picked } = SeedGrid.stageNow();
  const ringed = cells?.[picked]?.id;
  return ringed ? id !== ringed : Boolean(cells?.some((cell) => cell.id && cell.id === id));
}

SeedGrid.pickedNow = () => now;
shows.picked = (value) => isLate(value) || show(value);
show({ id: null });

/* The verdict: whether a picture's recipe gives its very pixels here, and if not, why. */
const verdict = byId("sg-verdict");
let verifying = null; // stopped when another picture, or none, is in the card

function showVerdict(value) {
  if (value.id !== now?.id) return; // another picture was picked meanwhile
  const box = make("div", { class: "sg-verdict", role: "status" });
  if (value.error) box.append(make("p", { class: "sg-is-difference", text: text(value.error.key, value.error.data) }));
  else if (value.working) box.append(make("p", { text: text(value.total ? "verdict_step" : "verdict_working", value) }));
  else fillVerdict(box, value);
  verdict.replaceChildren(box);
  verdict.dataset.pictureId = value.id;
}

function fillVerdict(box, value) {
  box.dataset.verdict = value.verdict;
  box.append(make("strong", { text: text(`verdict_${value.verdict}`) }));
  if (value.verdict === "identical") box.append(make("p", { text: text("verdict_identical_why") }));
  if (value.max_abs_diff) {
    const data = { max: value.max_abs_diff, pixels: value.differing_pixels, psnr: value.psnr_db };
    box.append(make("p", { text: text("verdict_numbers", data) }));
  }
  for (const reason of value.reasons) {
    const kind = reason.is_difference ? "sg-is-difference" : null;
    box.append(make("p", { class: kind, text: text(reason.key, reason.data) }));
  }
  if (value.difference) box.append(make("img", { src: value.difference, alt: text("compare_difference") }));
}

// The verdict is removed when another picture is in the card.
document.addEventListener("sg-card", (event) => {
  if (verdict.dataset.pictureId === event.detail) return;
  verifying?.abort();
  verdict.replaceChildren();
});
shows.verdict = showVerdict;
byId("sg-verify").addEventListener("click", async () => {
  verifying?.abort();
  const { signal } = (verifying = new AbortController());
  verdict.dataset.pictureId = pick().picked;
  const came = await SeedGrid.listen("verify", { id: pick().picked }, signal);
  if (!came && !signal.aborted) SeedGrid.send("healthz").catch(() => null); // which says so where nobody answers
});

/* Exports of the picture in the card: its round as a sheet, its work as a poster, both as bundles. Start pictures,
   which may be photographs, go along only on request. */
const exports = byId("sg-export");
const starts = inputOf("sg-export-starts");

function addressExports() {
  exports.hidden = !now;
  if (!now) return;
  byId("sg-export-starts").hidden = !now.begun;
  for (const link of exports.querySelectorAll("a")) {
    const { route, file } = link.dataset;
    link.href = withVisitor(`seedgrid/${route}/${now.id}/${file}?lang=${language}${starts.checked ? "&starts=true" : ""}`);
  }
}

starts.addEventListener("change", addressExports);
document.addEventListener("sg-card", () => {
  starts.checked = false;
  addressExports();
});
