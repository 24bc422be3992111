/* Several pictures of the stage at once: marked by Shift-click, or by a click after "Pick several", and refined
   together, a row each. In a wall the others can be hidden, the cells enlarged, and a small picture is shown at
   300 px under the pointer. */
import { SeedGrid, addListeners, byId, make, pictureUrl, text } from "./base.js";

const SMALL_PX = 200; // smaller cells are shown enlarged on hover
const LOOK_PX = 300;
const WALL = 4; // pictures; more are a wall
const stage = byId("sg-stage");
const root = document.documentElement;
const marked = new Set(); // ids, of other rounds too
let isAlone = false; // whether the others are hidden
let fewer = 0; // fewer columns, by the slider

const here = () => SeedGrid.stageNow().cells.filter(({ id }) => marked.has(id));
const several = make("button", { id: "sg-several", class: "sg-quiet-button", "aria-pressed": "false", text: text("wall_several"), onclick: () => choose(!root.classList.contains("sg-marking")) });
const count = make("span", { role: "status" });
const refine = make("button", { class: "sg-pill sg-primary", text: text("wall_refine"), title: text("wall_refine_title"), onclick: ({ detail }) => detail > 1 || go() });
const alone = make("button", { class: "sg-pill", "aria-pressed": "false", onclick: () => show(!isAlone), text: text("wall_alone") });
const none = make("button", { class: "sg-pill", text: text("wall_none"), onclick: () => (marked.clear(), choose(false), show(false)) });
const size = make("input", { type: "range", min: "0", value: "0", "aria-label": text("wall_size") });
const sized = make("label", { class: "sg-wall-size" }, make("span", { text: text("wall_size") }), size);
const tools = make("div", { class: "sg-wall-tools" }, count, refine, alone, none);
const bar = make("div", { id: "sg-wall", hidden: "" }, tools, sized);
const look = make("img", { class: "sg-look", alt: "", hidden: "" });
byId("sg-below").append(several);
byId("sg-below").after(bar);
byId("sg-page").append(look);

/** Turn marking by clicks on or off, for touch screens. */
function choose(isOn) {
  root.classList.toggle("sg-marking", isOn);
  several.setAttribute("aria-pressed", String(isOn));
}

/** Mark or unmark a picture. */
export function mark(index) {
  const { id } = SeedGrid.stageNow().cells[index];
  if (!id) return;
  if (!marked.delete(id)) marked.add(id);
  show(isAlone);
}

function show(wanted) {
  isAlone = wanted && here().length > 0;
  SeedGrid.layOut();
}

/** The number of columns, with the slider's change. */
SeedGrid.wallColumns = (fitting) => Math.max(1, fitting - (SeedGrid.stageNow().cells.length > WALL ? fewer : 0));
SeedGrid.isHidden = (id) => isAlone && !marked.has(id);

/** Show the marks after the stage was laid out. */
function draw() {
  const { cells, table } = SeedGrid.stageNow();
  const number = here().length;
  for (const cell of stage.querySelectorAll("[data-cell]")) cell.ariaChecked = number ? marked.has(cell.dataset.pictureId) : null;
  if (!number && isAlone) return show(false);
  const isWall = cells.length > WALL;
  several.hidden = !isWall;
  if (!isWall && !number) choose(false);
  tools.hidden = number === 0;
  sized.hidden = !isWall || Boolean(table && !isAlone);
  bar.hidden = tools.hidden && sized.hidden;
  count.textContent = text("wall_count", { number });
  refine.disabled = !here().every(({ state, lost }) => state === "done" && !lost);
  alone.setAttribute("aria-pressed", String(isAlone));
  size.max = Math.ceil(Math.sqrt(isAlone ? number : cells.length)) - 1;
  return undefined;
}

async function go() {
  const [first, ...rest] = here().map(({ id }) => id);
  choose(false);
  const around = { ...SeedGrid.refinement(), only: "", also: rest };
  const parts = await SeedGrid.turn("refine", { around }, { picked: first });
  if (parts?.stage) SeedGrid.showStage();
}

/** Show a small picture enlarged beside its cell. */
function lookAt({ target, pointerType }) {
  const image = pointerType === "mouse" ? target.closest?.("[data-cell]")?.querySelector("img[data-id]") : null;
  const box = image?.getBoundingClientRect();
  look.hidden = !image || box.width >= SMALL_PX;
  if (look.hidden) return;
  look.src = pictureUrl(image.dataset.id);
  const left = box.right + LOOK_PX + 12 > innerWidth ? box.left - LOOK_PX - 8 : box.right + 8;
  const top = Math.min(Math.max(8, box.top + box.height / 2 - LOOK_PX / 2), innerHeight - LOOK_PX - 8);
  Object.assign(look.style, { left: `${Math.max(8, left)}px`, top: `${top}px` });
}

size.addEventListener("input", () => {
  fewer = Number(size.value);
  SeedGrid.layOut();
});
stage.addEventListener("pointerover", lookAt);
addListeners(stage, "pointerleave pointerdown", () => (look.hidden = true));
document.addEventListener("sg-laid", () => {
  look.hidden = true;
  draw();
});
SeedGrid.layOut();
