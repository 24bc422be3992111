/* Only here: the user paints over a part of the picked picture, and a refinement changes that part alone.
   The strokes are kept for each picture; the server gets a mask of the picture's size. */
import { SeedGrid, addListeners, byId, icon, inputOf, make, pictureUrl, text, toggle } from "./base.js";
import { overlay } from "./zoom.js";

const TOOLS = ["brush", "lasso", "rectangle"];
const VEIL = "rgb(12 12 14 / 68%)";
const FEATHER_SHARE = 16; // as in seedgrid/core/variations.py
const MAX_FEATHER_PX = 256; // as in seedgrid/core/recipe.py
const KEY_STEP = 1 / 32; // of the shorter side
const regions = new Map();

/** The mask for Refine: a PNG, white where the picture may change. */
SeedGrid.regionNow = () => {
  const region = regions.get(SeedGrid.pickedNow()?.id);
  if (!region) return {};
  const { width, height } = region;
  const sheet = make("canvas", { width, height });
  const context = sheet.getContext("2d");
  context.fillRect(0, 0, width, height);
  context.drawImage(painted(region.strokes, width, height), 0, 0);
  return { only: sheet.toDataURL("image/png").split(",")[1], feather: region.feather };
};

/** The strokes on a canvas: opaque where the picture may change, else transparent. */
function painted(strokes, width, height) {
  const sheet = make("canvas", { width, height });
  const context = sheet.getContext("2d", { willReadFrequently: true });
  Object.assign(context, { fillStyle: "#fff", strokeStyle: "#fff", lineCap: "round", lineJoin: "round" });
  for (const { tool, size, takesAway, points } of strokes) {
    context.globalCompositeOperation = takesAway ? "destination-out" : "source-over";
    const path = outline(tool, points);
    context.lineWidth = size;
    if (tool === "brush") context.stroke(path);
    else context.fill(path);
  }
  return sheet;
}

function outline(tool, points) {
  const path = new Path2D();
  const [[left, top], [right, bottom]] = [points[0], points.at(-1)];
  if (tool === "rectangle") path.rect(left, top, right - left, bottom - top);
  else for (const [x, y] of [[left - 0.01, top], ...points]) path.lineTo(x, y); // A line of length 0 would not be drawn.
  return path;
}

/** The painted share of the picture, 0 to 1. */
function shareOf(sheet) {
  const { data } = sheet.getContext("2d").getImageData(0, 0, sheet.width, sheet.height);
  let count = 0;
  for (let at = 3; at < data.length; at += 4) count += data[at] >= 128;
  return count / (sheet.width * sheet.height);
}

/** Open a picture, by default the picked one, to paint a region. */
export function brush({ id, width, height } = SeedGrid.pickedNow()) {
  const short = Math.min(width, height);
  const kept = regions.get(id);
  const strokes = [...(kept?.strokes ?? [])];
  let tool = "brush";
  let percent = 0; // of the picture is painted
  let takesAway = false;
  let down = null; // the stroke that is being drawn
  let sheet = null; // the canvas of the strokes
  let cursor = [width / 2, height / 2];

  const veil = make("canvas", { class: "sg-brush-veil", width, height, tabindex: "0", role: "application", "aria-label": text("brush_canvas") });
  const frame = make("div", { class: "sg-slider" }, make("img", { src: pictureUrl(id), alt: "" }), veil);
  frame.style.setProperty("--sg-cell-ratio", width / height);
  const size = range("brush_size", 2, 50, 14);
  const feather = range("brush_feather", 0, Math.min(MAX_FEATHER_PX, Math.round(short / 4)), kept?.feather ?? Math.floor(short / FEATHER_SHARE));
  const tools = TOOLS.map((name) => button(`brush_${name}`, () => choose(name)));
  const away = toggle("sg-toggle", "brush_away", (isOn) => (takesAway = isOn));
  const undo = button("brush_undo", () => strokes.pop() && change());
  const clear = button("brush_clear", () => strokes.splice(0).length && change());
  const use = button("brush_use", finish);
  const caption = make("p", { class: "sg-brush-said", role: "status" });
  const bar = make("div", { class: "sg-zoom-tools" }, ...tools, away, undo, clear, size.label, feather.label, use);
  use.classList.add("sg-brush-use");
  const dialog = overlay("brush", make("figure", {}, caption, frame, bar));
  dialog.setAttribute("aria-label", text("brush"));

  function button(key, onclick) {
    return make("button", { class: "sg-toggle", text: text(key), onclick });
  }

  function range(key, min, max, value) {
    const input = make("input", { type: "range", min, max, value });
    return { input, label: make("label", {}, text(key), input) };
  }

  function choose(name) {
    tool = name;
    tools.forEach((each, at) => each.setAttribute("aria-pressed", String(TOOLS[at] === name)));
    size.input.disabled = name !== "brush";
  }

  function begin(point, isAlt) {
    down = { tool, size: (Number(size.input.value) / 100) * short, takesAway: takesAway !== isAlt, points: [point] };
    strokes.push(down);
    draw();
  }

  function move(point) {
    cursor = point;
    if (down) down.points.push(point);
    draw();
  }

  function end() {
    down = null;
    change();
  }

  /** Count the painted pixels; too slow for each move of a pointer. */
  function change() {
    sheet = painted(strokes, width, height);
    tell(shareOf(sheet));
    draw();
  }

  /** Draw the unpainted part darker, and an outline around the current stroke. */
  function draw() {
    if (down) sheet = painted(strokes, width, height);
    const context = veil.getContext("2d");
    context.clearRect(0, 0, width, height);
    if (strokes.length) {
      Object.assign(context, { fillStyle: VEIL, globalCompositeOperation: "source-over" });
      context.fillRect(0, 0, width, height);
      context.globalCompositeOperation = "destination-out";
      context.drawImage(sheet, 0, 0);
      context.globalCompositeOperation = "source-over";
    }
    Object.assign(context, { strokeStyle: "#ff8a57", lineWidth: Math.max(1, short / 256) });
    if (down && tool !== "brush") context.stroke(outline(tool, down.points));
    if (document.activeElement === veil) {
      const mark = new Path2D();
      mark.arc(...cursor, tool === "brush" ? (Number(size.input.value) / 200) * short : short / 64, 0, 2 * Math.PI);
      context.stroke(mark);
    }
    undo.disabled = clear.disabled = !strokes.length;
  }

  function tell(share) {
    percent = Math.max(share > 0 ? 1 : 0, Math.round(100 * share));
    caption.textContent = share ? text("brush_share", { percent }) : text("brush_hint");
  }

  /** Keep the region of this picture; an empty one is removed. */
  function finish() {
    if (percent) regions.set(id, { strokes, width, height, percent, feather: Number(feather.input.value) });
    else regions.delete(id);
    showRegion();
    dialog.close();
    inputOf("sg-vary-1")?.focus();
  }

  function place({ clientX, clientY }) {
    const { left, top, width: wide, height: high } = veil.getBoundingClientRect();
    return [((clientX - left) / wide) * width, ((clientY - top) / high) * height];
  }

  veil.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    veil.setPointerCapture(event.pointerId);
    cursor = place(event);
    begin(cursor, event.altKey);
  });
  veil.addEventListener("pointermove", (event) => event.isPrimary && move(place(event)));
  addListeners(veil, "pointerup pointercancel", () => down && end());
  addListeners(veil, "focus blur", draw);
  dialog.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "z") return undo.click();
    if (event.target !== veil) return undefined;
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const way = ways[event.key];
    if (way) move(cursor.map((at, axis) => Math.min([width, height][axis], Math.max(0, at + way[axis] * KEY_STEP * short))));
    else if (event.key === " ") (down ? end() : begin(cursor, event.altKey));
    else return undefined;
    return event.preventDefault();
  });
  choose("brush");
  change();
  veil.focus();
}

/** The chip under Refine: the painted share, and a button to remove the region. */
function showRegion() {
  const { id } = SeedGrid.pickedNow() ?? {};
  const region = regions.get(id);
  byId("sg-only").querySelector(".sg-chip")?.remove();
  if (!region) return;
  const label = text("only_forget");
  const forget = () => (regions.delete(id), showRegion(), byId("sg-brush").focus());
  const looks = { class: "sg-chip", title: label, "aria-label": label, onclick: forget };
  byId("sg-only").append(make("button", looks, text("only_share", { percent: region.percent }), icon("close")));
}

document.addEventListener("sg-card", showRegion);
