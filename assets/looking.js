/* Looking: a slideshow of a tree in the large view, and the film of a picture from its noise to its end. */
import { SeedGrid } from "./base.js";
import { arrows, overlay } from "./zoom.js";

const { make, text, image, pictureUrl } = SeedGrid;
const EACH_MS = 3000;

/** Show all pictures of a tree in the order in which they were made. Space plays and pauses, arrows go
    on and back, Esc ends it. Who wants less motion presses Play first. */
export const slideshow = async (id) => {
  const slides = await told(`seedgrid/tree/${id}.json`);
  if (slides?.length) play(slides, Math.max(0, slides.findIndex((slide) => slide.id === id)));
};

/** Ask the server; null where it does not tell, which the page has said then. */
async function told(address) {
  const answer = await SeedGrid.send(address).catch(() => null);
  return answer?.ok ? answer.json() : null;
}

function play(slides, first) {
  let at = first;
  let timer = null;
  const figure = make("figure");
  const [before, after] = arrows(go);
  const button = make("button", { class: "sg-toggle", "data-tool": "play", onclick: () => turn(timer === null) });
  const tools = make("div", { class: "sg-zoom-tools" }, button);
  const dialog = overlay("zoom", figure, before, after);
  dialog.classList.add("sg-slides");
  dialog.setAttribute("aria-label", text("slides_title"));

  function draw() {
    const slide = slides[at];
    dialog.style.setProperty("--sg-cell-ratio", slide.width / slide.height);
    const place = make("span", { class: "sg-place", text: `${at + 1} / ${slides.length}` });
    const caption = make("figcaption", {}, make("bdi", { text: slide.prompt }), place);
    figure.replaceChildren(image(pictureUrl(slide.id), false, { alt: slide.prompt }), caption, tools);
    new Image().src = pictureUrl(slides[(at + 1) % slides.length].id); // it is there when it is its turn
  }

  /** Go on, round and round; whoever goes by hand looks as long as they like. */
  function go(step, isByHand = true) {
    if (isByHand) turn(false);
    at = (at + step + slides.length) % slides.length;
    draw();
  }

  function turn(isOn) {
    clearInterval(timer);
    timer = isOn ? setInterval(() => go(1, false), EACH_MS) : null;
    button.textContent = text(isOn ? "slides_pause" : "slides_play");
  }

  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) go(step);
    else if (event.key === " " && event.target !== button) turn(timer === null);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("close", () => clearInterval(timer));
  draw();
  turn(!matchMedia("(prefers-reduced-motion: reduce)").matches);
}

/** Say what a film of a picture costs, and make it when that is wanted. Closing stops it. */
export const film = async (id) => {
  const cost = await told(`seedgrid/film/${id}.json`);
  if (!cost) return;
  const { steps, seconds } = cost;
  const stop = new AbortController();
  const said = make("p", { role: "status", text: text("film_cost", { steps }) });
  if (seconds !== null) said.append(` ${text("film_seconds", { seconds: Math.max(1, Math.ceil(seconds)) })}`);
  const shown = make("div", { class: "sg-film-shown" });
  const choices = ["webp", "gif"].map((kind) => make("button", { class: "sg-toggle", "data-kind": kind, text: text(`film_${kind}`), onclick: () => shoot(kind) }));
  const tools = make("div", { class: "sg-zoom-tools" }, ...choices);
  const title = make("h2", { text: text("film_title") });
  const dialog = overlay("film", make("section", {}, title, shown, said, tools));
  dialog.setAttribute("aria-label", text("film_title"));
  let url = null;
  dialog.addEventListener("close", () => {
    stop.abort();
    if (url) URL.revokeObjectURL(url);
  });
  choices[0].focus();

  async function shoot(kind) {
    for (const choice of choices) choice.disabled = true;
    said.textContent = text("film_working");
    try {
      const headers = { "Content-Type": "application/json" };
      const made = await fetch(SeedGrid.own("seedgrid/film"), { method: "POST", headers, signal: stop.signal, body: JSON.stringify({ id, kind }) });
      if (!made.ok) throw await reason(made);
      show(kind, await made.blob(), made.headers.get("X-SeedGrid-Same") === "true");
    } catch (trouble) {
      if (stop.signal.aborted) return;
      said.textContent = text("film_failed", { reason: trouble.said ?? text("status_unreachable") });
      for (const choice of choices) choice.disabled = false;
    }
  }

  async function reason(film) {
    const told = await film.json().catch(() => null);
    return { said: told ? text(told.key, told.data) : String(film.status) };
  }

  function show(kind, blob, isSame) {
    url = URL.createObjectURL(blob);
    shown.replaceChildren(make("img", { src: url, alt: text("film_title") }));
    said.textContent = isSame ? "" : text("film_other");
    const save = make("a", { class: "sg-toggle", href: url, download: `seedgrid-film-${id.slice(0, 8)}.${kind}`, text: text("film_save") });
    tools.replaceChildren(save);
    save.focus();
  }
};
