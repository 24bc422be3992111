/* The large view: one picture as large as the window or enlarged, arrows to the others of the grid, and buttons to
   pick it (as on the stage), mark, save and refine it. */
import { SeedGrid, addListeners, byId, icon, image, make, pick, pictureUrl, shows, text } from "./base.js";
import { arrows, overlay, pan } from "./zoom.js";

const MOST_PX = 2048; // a side, as in seedgrid/core/recipe.py
const isShown = (cell) => cell?.state === "done" && !cell.lost && !SeedGrid.isHidden?.(cell.id);
let redraw = () => undefined;

/** Show a cell of the stage, by default the picked one or the first. */
export const zoom = (index) => {
  const stage = SeedGrid.stageNow();
  const wanted = index ?? stage.picked ?? stage.cells.findIndex(isShown);
  if (!isShown(stage.cells[wanted])) return;
  if (document.querySelector("dialog.sg-zoom")) return redraw(wanted);
  open(wanted);
};

function open(first) {
  let at = first;
  let asked = null; // the stage's epoch when an enlargement was requested
  const figure = make("figure");
  const tools = make("div", { class: "sg-zoom-tools" });
  const [before, after] = arrows(go);
  const sizes = [["fit", null], ["whole", 1], ["fourfold", 4]].map(([name, size]) => tool(name, `zoom_${name}`, false, () => near.to(size)));
  const full = tool("full", "zoom_full", null, () => (document.fullscreenElement ? document.exitFullscreen() : screen.requestFullscreen()));
  const screen = make("div", { class: "sg-zoom-screen" }, figure, before, after, make("div", { class: "sg-zoom-sizes" }, ...sizes, document.fullscreenEnabled && full));
  const dialog = overlay("zoom", screen); // A dialog itself cannot be full screen.
  screen.prepend(dialog.querySelector(".sg-close"));
  dialog.setAttribute("aria-label", text("zoom"));
  const near = pan(dialog, { changed: sayNear, swiped: go });

  /** Mark the button of the current size. */
  function sayNear(size, scale) {
    const at = scale === 1 ? 0 : [1, 4].findIndex((each) => Math.abs(each - size) < 0.01) + 1 || -1;
    sizes.forEach((each, place) => each.setAttribute("aria-pressed", String(place === at)));
  }

  redraw = (wanted = at) => {
    const stage = SeedGrid.stageNow();
    const cell = stage.cells[wanted];
    if (!isShown(cell)) return asked !== null && stage.busy ? undefined : dialog.close();
    tools.inert = asked === stage.epoch;
    at = wanted;
    const [width, height] = stage.size;
    dialog.style.setProperty("--sg-cell-ratio", width / height);
    const had = tools.contains(document.activeElement) ? document.activeElement.dataset.tool : null;
    tools.replaceChildren(...buttons(cell, stage));
    if (figure.dataset.id !== cell.id) {
      figure.replaceChildren(picture(cell), caption(cell, stage), tools);
      near.to(null);
    }
    figure.dataset.id = cell.id;
    if (had) tools.querySelector(`[data-tool="${had}"]`)?.focus();
    for (const each of [before, after]) each.hidden = stage.cells.filter(isShown).length < 2;
  };

  /** Go to the next finished picture, after the last one to the first. */
  function go(step) {
    const { cells } = SeedGrid.stageNow();
    let next = at;
    do next = (next + step + cells.length) % cells.length;
    while (!isShown(cells[next]) && next !== at);
    redraw(next);
  }

  function buttons(cell, stage) {
    const isPicked = stage.picked === at;
    const card = SeedGrid.pickedNow();
    const isLoved = card?.id === cell.id ? card.favourite : cell.favourite;
    return [
      tool("pick", isPicked ? "zoom_picked" : "zoom_pick", isPicked, () => SeedGrid.chooseCell(at)),
      tool("favourite", "help_favourite", Boolean(isLoved), () => (pickShown(), SeedGrid.favourite())),
      ...(card?.id === cell.id && card.upscaler ? [] : [tool("brush", "brush", null, () => (pickShown(), paintOver(cell, stage.size)))]),
      tool("save", "save", null, () => download(cell)),
      ...(canEnlarge(stage) ? [tool("large", "final_fourfold", null, enlarge)] : []),
      tool("refine", "refine", null, () => (pickShown(), dialog.close(), byId("sg-refine").click())),
    ];
  }

  function tool(name, words, isPressed, onclick) {
    return make("button", { class: "sg-toggle", "data-tool": name, "aria-pressed": isPressed, text: text(words), onclick });
  }

  const pickShown = () => SeedGrid.stageNow().picked === at || SeedGrid.chooseCell(at);
  /** Enlarge it by a network, and show the result here when it is done. */
  async function enlarge() {
    pickShown();
    asked = SeedGrid.stageNow().epoch;
    dialog.focus();
    redraw();
    const around = SeedGrid.typedAround({ upscaler: SeedGrid.placeNow().upscalers[0] });
    const parts = await SeedGrid.turn("final-4", { around }, pick());
    if (!parts?.stage) dialog.close(); // the status line says why
  }

  const closed = new AbortController();
  addListeners(document, "sg-pick sg-card", () => redraw(Math.min(at, SeedGrid.stageNow().cells.length - 1)), { signal: closed.signal });
  dialog.addEventListener("close", () => closed.abort());
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) go(step);
  });
  redraw(first);
}

const canEnlarge = ({ size }) => SeedGrid.placeNow().upscalers.length > 0 && 4 * Math.max(...size) <= MOST_PX;

const paintOver = ({ id }, [width, height]) => SeedGrid.module("brush").then(({ brush }) => brush({ id, width, height }));

function picture(cell) {
  return image(pictureUrl(cell.id), false, { alt: cell.prompt, class: "sg-pan", draggable: "false" });
}

function caption(cell, stage) {
  const seed = make("span", { class: "sg-lock" }, icon("lock"), String(cell.seed));
  const place = `${stage.cells.indexOf(cell) + 1} / ${stage.cells.length}`;
  return make("figcaption", {}, make("bdi", { text: cell.prompt }), seed, make("span", { class: "sg-place", text: place }));
}

/** Download a picture's PNG with its recipe, named by its words. */
export const download = ({ id, file }) => make("a", { href: pictureUrl(id), download: file ?? `${id}.png` }).click();

/** Copy the picked picture's pixels to the clipboard, which keeps no recipe. */
export function copyPicture() {
  const { id } = SeedGrid.pickedNow();
  const picture = fetch(pictureUrl(id)).then((answer) => answer.blob());
  return tellCopied("sg-copy", navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]));
}

/** Copy a link to the picked picture, which paints it where it does not exist, if a link can tell its recipe. */
export function copyLink() {
  const { id, link } = SeedGrid.pickedNow();
  const address = `${location.origin}${location.pathname}?place=${id}${link && `&${link}`}`;
  // The clipboard needs a secure page: not one in a local network by http.
  if (!navigator.clipboard) return void prompt(text("link_yourself"), address);
  return tellCopied("sg-link", navigator.clipboard.writeText(address), reachOf(location.hostname) ?? "copied");
}

/** Say in the status line, and by a tick at the button, that it is copied, or that the browser refused. */
async function tellCopied(id, copying, key = "copied") {
  const { epoch } = SeedGrid.stageNow();
  try {
    await copying;
  } catch (error) {
    if (error.name !== "NotAllowedError") throw error;
    return shows.status({ epoch, key: "copy_refused", kind: "error", data: {} });
  }
  shows.status({ epoch, key, kind: "done", data: {} });
  const { dataset } = byId(id);
  dataset.copied = "";
  setTimeout(() => delete dataset.copied, 1500);
}

/** Whether the address works only on this machine or in the local network. */
function reachOf(host) {
  if (host === "localhost" || host === "[::1]" || host.startsWith("127.")) return "link_local";
  const isHome = /^(10|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+$/.test(host) || host.endsWith(".local");
  return isHome ? "link_network" : null;
}
