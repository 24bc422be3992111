/* Dialogs over the page: their frame, panning and zooming, and comparing a picture with its parent or others. */
import { SeedGrid, addListeners, icon, image, make, pictureUrl, text, thumbUrl, toggle, words } from "./base.js";

/** A modal dialog; Esc and its button close it, and a click outside if nothing is typed or painted in it. */
export function overlay(kind, ...children) {
  document.querySelector("dialog.sg-overlay")?.dispatchEvent(new Event("close"));
  const dialog = make("dialog", { class: `sg-overlay sg-${kind}`, tabindex: "-1" });
  const close = make("button", { class: "sg-close", "aria-label": text("close"), onclick: () => dialog.close() }, icon("close"));
  dialog.append(close, ...children);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && !["brush", "models"].includes(kind)) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  dialog.focus();
  return dialog;
}
/** The arrows of a dialog that shows one of several pictures. */
export const arrows = (go) => Object.entries({ before: -1, after: 1 }).map(([name, step]) => {
  const looks = { class: `sg-arrow sg-arrow-${name}`, "aria-label": text(`zoom_${name}`), onclick: () => go(step) };
  return make("button", looks, icon(name));
});

/** Slide between a picture and its parent, or another one, and show what changed. */
export const compare = (now = SeedGrid.pickedNow(), others = othersOf(now)) => {
  if (others.length === 0) return;
  const before = make("img", { alt: text("compare_before") });
  const after = make("img", { src: pictureUrl(now.id), alt: text("compare_after") });
  const difference = make("canvas", { class: "sg-difference", hidden: "" });
  const frame = make("div", { class: "sg-slider" }, before, after, difference);
  frame.style.setProperty("--sg-cell-ratio", now.width / now.height);
  const caption = make("figcaption");
  const slide = () => frame.style.setProperty("--sg-cut", `${range.value}%`);
  const range = make("input", { type: "range", min: "0", max: "100", value: "50", "aria-label": text("compare_slide"), oninput: slide });
  const redraw = () => difference.hidden || drawDifference(difference, before, after);
  before.addEventListener("load", redraw);
  const differing = toggle("sg-toggle", "compare_difference", (isOn) => {
    difference.hidden = !isOn;
    redraw();
  });
  const side = make("div", { class: "sg-side", hidden: "" }, ...[now, ...others].slice(0, 4).map(framed));
  const beside = toggle("sg-toggle", "compare_beside", (isOn) => {
    side.hidden = !isOn;
    for (const part of [frame, caption, differing, names.firstElementChild, names.lastElementChild]) part.hidden = isOn;
    near.to(null);
  });
  beside.dataset.tool = "beside";
  const near = pan(side);
  const choices = others.map((other) => thumbOf(other, () => against(other)));
  function against(other) {
    before.src = pictureUrl(other.id);
    caption.replaceChildren(other.isParent ? words(now.pieces) : make("bdi", { text: other.prompt }));
    choices.forEach((choice, at) => choice.setAttribute("aria-pressed", String(others[at] === other)));
  }
  frame.append(range);
  const names = make("div", { class: "sg-compare-names" });
  names.append(
    make("span", { class: "sg-compare-others" }, ...choices),
    make("span", { class: "sg-compare-ways" }, differing, beside),
    make("span", { text: text("compare_after") }),
  );
  side.style.setProperty("--sg-cell-ratio", now.width / now.height);
  against(others[0]);
  overlay("compare", make("figure", {}, caption, frame, side, names));
  range.focus();
};

/** Pictures to compare with: the parent first, then the others on the stage. */
function othersOf(now) {
  const parent = now.parent ? [{ id: now.parent, isParent: true, prompt: text("compare_before") }] : [];
  const beside = SeedGrid.stageNow().cells.filter((cell) => cell.state === "done" && !cell.lost && cell.id !== now.id && cell.id !== now.parent);
  return [...parent, ...beside];
}

/** One of several pictures with linked pan and zoom. */
const framed = ({ id, prompt }) => make("div", {}, make("img", { src: pictureUrl(id), alt: prompt ?? "", class: "sg-pan", draggable: "false" }));

function thumbOf({ id, prompt }, choose) {
  return make("button", { title: prompt, "aria-label": prompt, onclick: choose }, image(thumbUrl(id), false));
}

/** The largest channel difference at each pixel, from black to white. */
function drawDifference(canvas, before, after) {
  const [width, height] = [after.naturalWidth, after.naturalHeight];
  const read = (image) => {
    const sheet = new OffscreenCanvas(width, height).getContext("2d");
    sheet.drawImage(image, 0, 0, width, height);
    return sheet.getImageData(0, 0, width, height).data;
  };
  const [old, fresh] = [read(before), read(after)];
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const field = context.createImageData(width, height);
  for (let at = 0; at < old.length; at += 4) {
    const gap = [0, 1, 2].map((channel) => Math.abs(old[at + channel] - fresh[at + channel]));
    field.data.fill(Math.max(...gap), at, at + 3);
    field.data[at + 3] = 255;
  }
  context.putImageData(field, 0, 0);
}

/* Panning and zooming: a picture, or several that are linked, larger by wheel, pinch, double click or keys, and
   moved by drag or arrows. Scale and place are properties of the box around them, in shares of a picture. */
const STEP = 1.25;
const MOST = 8; // times as large as it fits, or 400 %
const SHARP = 4; // from this size on pixels are drawn as squares
const SWIPE_PX = 50;

/** Pan and zoom each `.sg-pan` in a box.

    @param changed gets the size, 1 at one window pixel for a picture's pixel, and the scale, 1 for the whole picture.
    @param swiped gets -1 or 1, when a finger swipes over the whole picture. */
export function pan(box, { changed = () => undefined, swiped = () => undefined } = {}) {
  const pointers = new Map(); // by id, with their last events
  let [scale, x, y] = [1, 0, 0];
  let from = null; // where a finger was put down
  const picture = () => box.querySelector(".sg-pan");
  const whole = () => picture().naturalWidth / picture().offsetWidth || 1;
  const within = (value, least, most) => Math.min(most, Math.max(least, value));

  function show() {
    const most = Math.max(0, (scale - 1) / 2); // so that it covers its box
    [x, y] = [within(x, -most, most), within(y, -most, most)];
    for (const [name, value] of Object.entries({ scale, x, y })) box.style.setProperty(`--sg-pan-${name}`, value);
    const size = scale / whole();
    box.classList.toggle("sg-near", scale > 1);
    box.classList.toggle("sg-sharp", size >= SHARP);
    changed(size, scale);
  }

  function move(right, down) {
    x += right / picture().offsetWidth;
    y += down / picture().offsetHeight;
    show();
  }

  /** Zoom around a point. */
  function zoom(wanted, at = null) {
    const next = within(wanted, Math.min(1, whole()), Math.max(MOST, SHARP * whole()));
    if (at) {
      const { left, top, width, height } = (at.target.closest(".sg-pan") ?? picture()).getBoundingClientRect();
      const [right, down] = [at.clientX - left - width / 2, at.clientY - top - height / 2];
      const away = 1 - next / scale;
      scale = next;
      return move(right * away, down * away);
    }
    scale = next;
    return show();
  }

  box.addEventListener("wheel", (event) => {
    if (event.target.closest("figcaption")) return;
    event.preventDefault();
    zoom(scale * Math.exp(-event.deltaY / 400), event);
  }, { passive: false });
  box.addEventListener("dblclick", (event) => event.target.closest(".sg-pan") && zoom(scale === 1 ? Math.max(2, whole()) : 1, event));
  box.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".sg-pan") || event.button) return;
    event.target.setPointerCapture(event.pointerId);
    from = pointers.size ? null : event.clientX;
    pointers.set(event.pointerId, event);
  });
  box.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const other = [...pointers.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    const [right, down] = [event.clientX - before.clientX, event.clientY - before.clientY];
    pointers.set(event.pointerId, event);
    if (!other) return move(right, down);
    const apart = ({ clientX, clientY }) => Math.hypot(clientX - other.clientX, clientY - other.clientY);
    const middle = { target: event.target, clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 };
    zoom((scale * apart(event)) / apart(before), middle);
    return move(right / 2, down / 2);
  });
  addListeners(box, "pointerup pointercancel", (event) => {
    const way = pointers.delete(event.pointerId) && from !== null ? event.clientX - from : 0;
    if (scale <= 1 && event.pointerType === "touch" && Math.abs(way) > SWIPE_PX) swiped(way < 0 ? 1 : -1);
  });
  box.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    const sizes = { "+": scale * STEP, "=": scale * STEP, "-": scale / STEP, 0: 1 };
    if (event.key in sizes) zoom(sizes[event.key]);
    else if (way && scale > 1) move(...way.map((share) => (share * picture().offsetWidth) / 8));
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  });

  return {
    /** Show all of it, or each pixel at a scale. */
    to: (size) => zoom(size ? size * whole() : 1),
  };
}
