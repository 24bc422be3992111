/* Looking closer: a picture, or several that are linked, larger by wheel, pinch, double click or keys, and
   moved by drag or arrows. Scale and place are properties of the box around them, in shares of a picture. */

const STEP = 1.25;
const MOST = 8; // times as large as it fits, or 400 %
const SHARP = 4; // from there on one sees pixels
const SWIPE_PX = 50;

/** Let one look closer at each `.sg-pan` in a box.

    @param changed is told the size, 1 where a pixel of the picture is one of the window, and the scale, 1 where
    all of it is seen.
    @param swiped is told -1 or 1: where all of it is seen, a finger asks for another picture. */
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
  for (const kind of ["pointerup", "pointercancel"]) {
    box.addEventListener(kind, (event) => {
      const way = pointers.delete(event.pointerId) && from !== null ? event.clientX - from : 0;
      if (scale <= 1 && event.pointerType === "touch" && Math.abs(way) > SWIPE_PX) swiped(way < 0 ? 1 : -1);
    });
  }
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
