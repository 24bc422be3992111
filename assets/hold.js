/* How much of the picked picture's composition a refinement holds: a share of its steps, remembered per
   model in this browser. Where there are too few steps it is not offered. */
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

/** What Refine is told; nothing where it is not offered. */
SeedGrid.holdNow = () => (row.hidden ? 0 : Number(slider.value));

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
