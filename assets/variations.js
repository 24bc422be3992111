/* Four variations of one thing, written into the four fields: words, or a setting that the picked
   picture has. What stands in the fields is what is painted. */
import { SeedGrid, bare, byId, config, inputOf, kept, make, shortList, text, variations, setValue } from "./base.js";

const foursBox = byId("sg-fours");

function chip(words, lines) {
  const fill = () => variations.forEach((input, index) => setValue(input, lines[index] ?? ""));
  return make("button", { class: "sg-chip", title: lines.join("\n"), text: words, onclick: fill });
}

function showFours() {
  const picked = SeedGrid.pickedNow();
  if (picked?.isEarly) return; // the offers come with the full card
  const fours = Object.entries(picked?.fours ?? {}).map(([name, lines]) => chip(text(`fours_${name}`), lines));
  foursBox.replaceChildren(...(fours.length ? [make("span", { text: text("fours_title") }), ...fours] : []));
}

document.addEventListener("sg-card", showFours);

/* Second rounds: when a picture is picked, a variation that made its round, or that is in its prompt already,
   is replaced by an untried one: the user's own last ones first (this browser keeps them), then the model's.
   Typed and chosen variations stay. */
const { recall, keep } = shortList("seedgrid-variations", 40);
const says = (suffix) => bare(suffix).trim() !== "";

/** A line such as "guidance 3" is not offered for other pictures. */
const settings = new Set(["lora", "hold", ...config.fields].flatMap((name) => [name, name.replace(/s$/, "")]));
const isSetting = (line) => /^\w/.test(line) && settings.has(line.toLowerCase().split(/\W/)[0]);

/** Remember the artist's own variations when Refine is pressed. */
function note() {
  const { offers } = SeedGrid.placeNow();
  const lines = variations.map((input) => input.value.trim());
  const own = lines.filter((line) => says(line) && !offers.includes(line) && !isSetting(line));
  keep([...new Set([...own, ...recall()])]);
}
byId("sg-refine").addEventListener("click", note, true);

/** Offers for a picture: not in its prompt, and not tried in this work. */
function freshFor(prompt, isTried, offers) {
  const isNew = (suffix) => says(suffix) && !prompt.includes(bare(suffix));
  const fresh = [...recall(), ...offers].filter((suffix) => isNew(suffix) && !isTried(suffix));
  return [...new Set([...fresh, ...offers.filter(isNew)])]; // else those that were tried
}

function offer() {
  const { isFilled, epoch, offers } = SeedGrid.placeNow();
  const stage = SeedGrid.stageNow();
  const picked = stage.cells?.[stage.picked];
  if (!isFilled || stage.epoch !== epoch || !picked?.prompt) return;
  const prompt = bare(picked.prompt);
  const round = stage.cells.filter((cell) => cell.locked);
  const made = (line) => round.some((cell) => bare(cell.words) === bare(line) || bare(cell.prompt).endsWith(bare(line)));
  const work = new Set(SeedGrid.railNow().rounds.flatMap((each) => each.changes.map(bare)));
  const isTried = (line) => made(line) || work.has(bare(line));
  const isSpent = (line) => made(line) || (offers.includes(line) && prompt.includes(bare(line)));
  const spent = variations.filter((input) => says(input.value) && !input.sgTyped && isSpent(input.value.trim()));
  const others = variations.filter((input) => !spent.includes(input)).map((input) => bare(input.value));
  const fresh = freshFor(prompt, isTried, offers).filter((suffix) => !others.includes(bare(suffix)));
  SeedGrid.isOffering = true;
  spent.forEach((input, index) => setValue(input, fresh[index] ?? ""));
  SeedGrid.isOffering = false;
}

/** Offer what can enlarge: the model itself, unless its results are bad, and installed networks; or say that
    there is none. The chosen one stays chosen. */
function offerFinals() {
  const { enlarges, upscalers } = SeedGrid.placeNow();
  const names = enlarges ? ["", ...upscalers] : upscalers;
  for (const id of ["sg-final", "sg-final-4"]) byId(id).hidden = names.length === 0;
  byId("sg-no-finals").hidden = names.length > 0;
  byId("sg-upscaler").hidden = names.length < 2; // there is no choice
  const list = inputOf("sg-upscaler");
  const chosen = list.value;
  list.replaceChildren(...names.map((name) => make("option", { value: name, text: name || text("upscaler_model") })));
  if (names.includes(chosen)) list.value = chosen;
}

// Typed values stay, whatever is picked.
document.addEventListener("input", (event) => {
  if (event.target.closest?.("#sg-variations")) event.target.sgTyped = event.isTrusted;
});
document.addEventListener("sg-filled", () => {
  for (const input of variations) input.sgTyped = false;
  offer();
  offerFinals();
});
document.addEventListener("sg-pick", offer);
SeedGrid.forgetOwn = () => keep([]);

/* How much of the picked picture's composition a refinement holds: a share of its steps, remembered per
   model in this browser. Where there are too few steps it is not offered. */
const MIN_STEPS = 4; // as in seedgrid/core/variations.py
const shares = kept("seedgrid-hold"); // by model
const row = byId("sg-hold-row");
const slider = byId("sg-hold");

function showShare() {
  const share = Number(slider.value);
  const said = share ? text("hold_share", { percent: Math.round(100 * share) }) : text("hold_none");
  row.querySelector("output").textContent = said;
  slider.setAttribute("aria-valuetext", said);
}

/** The values for Refine: variations, hold, and the region. */
SeedGrid.refinement = () => SeedGrid.typedAround({ hold: row.hidden ? 0 : Number(slider.value), ...SeedGrid.regionNow?.() });

slider.addEventListener("input", showShare);
slider.addEventListener("change", () => {
  const { model } = SeedGrid.pickedNow() ?? {};
  shares.keep({ ...shares.recall(), [model]: slider.value });
});

document.addEventListener("sg-card", () => {
  const card = SeedGrid.pickedNow();
  if (card?.isEarly) return; // The full card has the number of steps.
  const numRun = Math.floor((card?.steps ?? 0) * (Number(card?.strength) || 1));
  row.hidden = !card || Boolean(card.upscaler) || numRun < MIN_STEPS;
  if (card) slider.value = shares.recall()?.[card.model] ?? "0";
  showShare();
});
