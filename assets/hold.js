/* How much of the picked picture's composition a refinement holds: a share of its steps, remembered per
   model in this browser. Where there are too few steps it is not offered. And the opposite: seeds that
   look alike are spread. */
import { SeedGrid } from "./base.js";

const MIN_STEPS = 4; // as in seedgrid/core/way.py
const { byId, text } = SeedGrid;
const shares = SeedGrid.kept("seedgrid-hold"); // by model
const row = byId("sg-hold-row");
const slider = byId("sg-hold");

function show() {
  const share = Number(slider.value);
  const said = share ? text("hold_share", { percent: Math.round(100 * share) }) : text("hold_none");
  row.querySelector("output").textContent = said;
  slider.setAttribute("aria-valuetext", said);
}

/** What Refine is told: the words, the share that is held where that is offered, and the region. */
SeedGrid.refinement = () => SeedGrid.typedAround({ hold: row.hidden ? 0 : Number(slider.value), ...SeedGrid.regionNow?.() });

slider.addEventListener("input", show);
slider.addEventListener("change", () => {
  const { model } = SeedGrid.pickedNow() ?? {};
  shares.keep({ ...shares.recall(), [model]: slider.value });
});

document.addEventListener("sg-card", () => {
  const card = SeedGrid.pickedNow();
  if (card?.isEarly) return; // Python's card says how many steps it has.
  const numRun = Math.floor((card?.steps ?? 0) * (Number(card?.strength) || 1));
  row.hidden = !card || Boolean(card.upscaler) || numRun < MIN_STEPS;
  if (card) slider.value = shares.recall()?.[card.model] ?? "0";
  show();
});

// ---- Seeds that look alike ---------------------------------------------------------------------
const SIDE = 16; // pictures are compared at so many pixels a side
const ALIKE = 0.05; // mean difference of two pictures; four seeds of the bundled model have 0.08 to 0.27
const alike = byId("sg-alike");
const spread = SeedGrid.inputOf("sg-spread");

function tones(picture) {
  const context = new OffscreenCanvas(SIDE, SIDE).getContext("2d");
  context.drawImage(picture, 0, 0, SIDE, SIDE);
  return context.getImageData(0, 0, SIDE, SIDE).data;
}

function difference(one, other) {
  return one.reduce((sum, tone, at) => sum + Math.abs(tone - other[at]), 0) / (255 * 3 * SIDE * SIDE);
}

/** Suggest it for a grid of several seeds whose pictures are nearly the same. */
async function suggestSpread() {
  await SeedGrid.settled();
  const { cells, busy } = SeedGrid.stageNow();
  const seeds = new Set(cells.filter(({ state, locked }) => state === "done" && !locked).map(({ seed }) => seed));
  const found = [...document.querySelectorAll("#sg-stage img[data-id]")].map(tones);
  const pairs = found.flatMap((one, at) => found.slice(at + 1).map((other) => difference(one, other)));
  const mean = pairs.reduce((sum, each) => sum + each, 0) / pairs.length;
  alike.hidden = busy || seeds.size < 3 || Number(spread.value) > 0 || !(mean < ALIKE);
}

document.addEventListener("sg-card", suggestSpread);
alike.querySelector("button").addEventListener("click", () => {
  SeedGrid.write(spread, "0.2");
  byId("sg-generate").click();
});
