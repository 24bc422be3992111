/* The stage: the grid of pictures. An <img> is a finished picture, a <canvas> the preview of an
   unfinished one. Picking is local; the server is told afterwards. */
import { SeedGrid, byId, icon, make, noteStep, withVisitor, refresh, rove, shows, text } from "./base.js";

const element = byId("sg-stage");
const SUBTLE_PERCENT = 20;
const MANY = 10; // columns, from which on seeds are hidden
const FEW = 4; // columns, up to which captions are shown
const pick = (data) => (SeedGrid.picking = SeedGrid.ask("pick", data));
const example = (data) => SeedGrid.turn("example", data);
const grid = element.firstElementChild;

let cells = [];
let current = { epoch: -2 };
let columns = 2;
let picked = null;
let stopped = -1;
let settled = Promise.resolve();
SeedGrid.picking = settled; // resolves when the picked picture's card is here

// Stop shows Generate again at once, before the last step has ended.
byId("sg-stop").addEventListener("click", () => {
  stopped = current.epoch;
  setBusy(false);
});

function newCell(index) {
  const node = byId("sg-cell").content.firstElementChild.cloneNode(true);
  const parts = ["canvas", ".sg-caption", ".sg-seed", ".sg-bar-line i", ".sg-cell-mark"];
  const [canvas, caption, seed, bar, mark] = parts.map((part) => node.querySelector(part));
  const cell = { index, node, canvas, caption, seed, bar, mark, image: null, face: "" };
  node.tabIndex = index ? -1 : 0;
  node.dataset.cell = index;
  node.querySelector(".sg-number").textContent = index + 1;
  if (index < 9) node.setAttribute("aria-keyshortcuts", index + 1);
  node.addEventListener("click", (event) => take(event, index));
  node.addEventListener("dblclick", () => SeedGrid.module("large").then(({ zoom }) => zoom(index)));
  node.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      take(event, index);
    } else if (rove(event, () => seen().map((each) => each.node), columns)) {
      event.preventDefault();
    }
  });
  node.addEventListener("focus", () => cells.forEach((each) => (each.node.tabIndex = each === cell ? 0 : -1)));
  return cell;
}

const seen = () => cells.filter((cell) => !cell.node.hidden);

/** Pick a cell, or mark it in multiple selection. */
function take(event, index) {
  const isMarked = event.shiftKey || document.documentElement.classList.contains("sg-marking");
  if (isMarked) SeedGrid.module("wall").then(({ mark }) => mark(index));
  else choose(index);
}

/** Pick a cell; an unfinished one is picked in the card when it is done. */
function choose(index) {
  const state = current.cells?.[index]?.state;
  if (state === "live") return SeedGrid.keepLive(index);
  if (current.cells?.[index]?.example) return example({ example: current.cells[index].example });
  if (!["done", "waiting", "painting"].includes(state)) return;
  if (picked === index) return;
  const [before, epoch] = [picked, current.epoch];
  noteStep({ isThere: () => current.epoch === epoch && picked === index, undo: () => (before === null ? SeedGrid.letGo() : choose(before)) });
  picked = index;
  mark();
  if (state === "done") pick({ id: current.cells[index].id });
}

SeedGrid.chooseCell = choose;

/** Deselect the picked picture, with a status. */
SeedGrid.letGo = () => {
  if (picked === null) return;
  const number = picked + 1;
  picked = null;
  mark();
  pick({ id: null });
  shows.status({ epoch: current.epoch, key: "status_let_go", kind: "done", data: { number } });
};

function mark() {
  for (const { node, index } of cells) node.setAttribute("aria-selected", String(index === picked));
  refresh();
  document.dispatchEvent(new CustomEvent("sg-pick", { detail: pickedId() }));
}

const pickedId = () => current.cells?.[picked]?.id ?? null;

function show(value) {
  if (value.epoch < current.epoch) return; // late news of a replaced run
  const isNew = value.epoch !== current.epoch;
  const before = isNew ? [] : current.cells;
  if (isNew) picked = value.picked ?? alone(value.cells);
  if (["stopped", "missed"].includes(value.cells[picked]?.state)) picked = null; // it has no picture
  current = value;
  const isChanged = isNew || value.cells.some((state, index) => face(state) !== cells[index]?.face);
  if (isChanged) layOut(value);
  value.cells.forEach((state, index) => fill(cells[index], state, isNew));
  if (isChanged) document.dispatchEvent(new Event("sg-laid"));
  drawPreviews(value.cells);
  if (isChanged) mark();
  setBusy(value.busy);
  if (isNew && value.epoch >= 0) SeedGrid.stream(value.follow);
  const now = value.cells[picked];
  const hasFormed = before[picked] ? before[picked].state !== "done" : value.picked === null && value.cells.length === 1;
  if (now?.state === "done" && hasFormed) pick({ id: now.id });
}

/** A round of one picture picks it. */
const alone = ([cell, ...others]) => (others.length || !["done", "waiting", "painting"].includes(cell?.state) ? null : 0);

function layOut(value) {
  while (cells.length > value.cells.length) cells.pop().node.remove();
  while (cells.length < value.cells.length) {
    const cell = newCell(cells.length);
    cells.push(cell);
    grid.append(cell.node);
  }
  value.cells.forEach(({ id }, index) => (cells[index].node.hidden = Boolean(SeedGrid.isHidden?.(id))));
  const shown = seen();
  if (!shown.some((cell) => cell.node.tabIndex === 0)) shown[0]?.node.setAttribute("tabindex", "0");
  const table = shown.length === cells.length ? value.table : null;
  const fitting = Math.ceil(Math.sqrt(shown.length));
  columns = table?.columns.length ?? SeedGrid.wallColumns?.(fitting) ?? fitting;
  const rows = Math.ceil(shown.length / columns);
  head(table);
  const [width, height] = value.size;
  grid.classList.toggle("sg-table", Boolean(table));
  grid.classList.toggle("sg-many", columns > MANY);
  grid.classList.toggle("sg-captioned", columns <= FEW && !table);
  // The outer cells have the grid's rounded corners.
  const corners = { tl: 0, tr: columns - 1, bl: (rows - 1) * columns, br: rows * columns - 1 };
  for (const [corner, at] of Object.entries(corners)) {
    shown.forEach(({ node }, index) => node.classList.toggle(`sg-${corner}`, index === at));
  }
  element.style.setProperty("--sg-columns", columns);
  element.style.setProperty("--sg-rows", rows);
  const fits = table || columns === fitting; // otherwise the page scrolls
  byId("sg-page").style.setProperty("--sg-ratio", fits ? (columns * width) / (rows * height) : columns);
  element.style.setProperty("--sg-cell-ratio", width / height);
  element.classList.toggle("sg-empty", value.cells.every((cell) => cell.state === "empty"));
  element.classList.toggle("sg-opening", value.cells.some((cell) => cell.example));
  if (cells.length > FEW) SeedGrid.module("wall");
}

/** Headings of a table: seeds or changes above the columns, prompts or seeds above each row. */
function head(table) {
  for (const heading of grid.querySelectorAll(".sg-heading")) heading.remove();
  if (!table) return;
  table.rows.forEach((words, row) => {
    const heading = make("p", { class: "sg-heading sg-row-heading" }, make("bdi", { text: words }));
    cells[row * table.columns.length].node.before(heading);
  });
  grid.prepend(...table.columns.map((words) => make("p", { class: "sg-heading", text: words })));
}

function fill(cell, state, isNew) {
  // A live cell keeps its former picture and caption until its own is here.
  if (state.state === "live" && cell.image && cell.source !== state.source) return state.source && finish(cell, state, state.source);
  if (isNew || cell.face !== face(state)) dress(cell, state);
  cell.bar.style.transform = `scaleX(${state.total ? state.step / state.total : 0})`;
  paint(cell, state, isNew);
}

/** A cell's state without its progress, to render only what changed. */
const face = ({ step, total, preview, ...rest }) => JSON.stringify(rest);

function dress(cell, state) {
  const { node } = cell;
  cell.face = face(state);
  node.dataset.state = state.state;
  node.dataset.seed = state.seed ?? "";
  node.dataset.pictureId = state.id ?? "";
  node.title = state.prompt ?? "";
  const mark = state.lost ? "picture_gone" : state.trashed ? "picture_trashed" : null;
  node.dataset.mark = mark ?? "";
  node.setAttribute("aria-label", [label(cell.index, state), mark && text(mark)].filter(Boolean).join(". "));
  cell.mark.textContent = mark ? text(mark) : "";
  const mixed = state.mix && text(state.mix.percent > SUBTLE_PERCENT ? "mix_strong" : "mix_subtle", { number: cell.index + 1 });
  cell.caption.textContent = state.words || mixed || "";
  cell.seed.replaceChildren(state.locked ? icon("lock") : "", String(state.seed ?? ""));
}

function label(index, state) {
  const data = { number: index + 1, seed: state.seed ?? "", words: state.prompt ?? "" };
  return text(state.example ? "cell_done" : `cell_${state.state}`, data);
}

function paint(cell, state, isNew) {
  const source = state.state === "done" ? `pictures/${state.id}.png` : state.example ? `opening/${state.example}.webp` : state.source;
  if (source && !state.lost) return finish(cell, state, source);
  if (cell.image?.dataset.recipe && cell.image.dataset.recipe === state.recipe) return; // the live picture, being saved
  cell.image?.remove();
  cell.image = cell.source = null;
  cell.canvas.hidden = false;
  if (!isNew && (state.preview || cell.blank === state.seed)) return;
  cell.blank = state.seed;
  Object.assign(cell.canvas, { width: 1, height: 1 }); // clears it; a background colour is behind
  cell.canvas.style.setProperty("--sg-hue", ((state.seed ?? cell.index) * 137) % 360);
}

function finish(cell, state, source) {
  if (cell.source === source) return;
  cell.source = source;
  const image = make("img", { alt: state.prompt ?? "", "data-id": state.id, "data-recipe": state.recipe, "data-example": state.example, class: state.example && "sg-example", draggable: "true" });
  image.addEventListener("error", () => {
    if (cell.source !== source) return;
    state.lost = true; // its file was deleted meanwhile
    fill(cell, state, true);
    refresh();
  });
  image.src = withVisitor(`seedgrid/${source}`);
  image.addEventListener("dragstart", ({ dataTransfer }) => state.file && dataTransfer.setData("DownloadURL", `image/png:${state.file}:${image.src}`));
  const isInPlace = cell.image && (state.state === "live" || cell.image.dataset.recipe);
  const put = () => {
    cell.image?.remove();
    cell.image = image;
    cell.canvas.after(image);
    cell.preview = null;
    if (state.state === "live") dress(cell, state);
  };
  if (!isInPlace) put();
  const shown = image.decode().then(() => {
    if (cell.source !== source) return;
    if (isInPlace) put();
    cell.canvas.hidden = true; // the preview stays until the picture is decoded
  });
  settled = Promise.allSettled([settled, shown]);
}

/** Draw all previews of a step together, so that the browser paints once. */
async function drawPreviews(states) {
  const news = states
    .map((state, index) => [cells[index], state.state === "painting" && state.preview])
    .filter(([cell, source]) => source && cell.preview !== source);
  if (!news.length) return;
  for (const [cell, source] of news) cell.preview = source;
  const images = await Promise.all(news.map(([, source]) => decoded(source)));
  news.forEach(([cell, source], at) => {
    if (cell.preview !== source || !images[at]) return;
    const { canvas } = cell;
    const { width, height } = images[at];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    canvas.getContext("2d").drawImage(images[at], 0, 0);
  });
}

/** Decode a JPEG off the main thread; errors are ignored, since the next preview replaces it. */
async function decoded(source) {
  const image = new Image();
  image.src = source;
  return image.decode().then(() => image, () => null);
}

function setBusy(wanted) {
  const busy = wanted && current.epoch !== stopped;
  if (element.ariaBusy === String(busy)) return;
  element.ariaBusy = busy;
  document.documentElement.classList.toggle("sg-busy", busy);
  byId("sg-generate").textContent = text(busy ? "add" : "generate");
  if (busy) return;
  SeedGrid.askLibrary?.();
  document.dispatchEvent(new Event("sg-painted"));
}

/** On a phone, scroll to the stage when a button of the card starts a round. */
SeedGrid.showStage = () => {
  const { top, bottom } = grid.getBoundingClientRect();
  if (bottom < (bottom - top) / 2) grid.scrollIntoView({ block: "start" });
};

/** Lay the stage out again after hiding cells or changing columns. */
SeedGrid.layOut = () => {
  layOut(current);
  document.dispatchEvent(new Event("sg-laid"));
};
SeedGrid.stageNow = () => ({ ...current, picked });

/** Resolves when the stage's pictures are decoded and drawn: what is less urgent waits for it. */
SeedGrid.settled = () => settled.then(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
shows.stage = show;
show({ epoch: -1, cells: [0, 1, 2, 3].map((seed) => ({ state: "empty", seed })), size: [1, 1], picked: null, busy: false });
