/* The film of a picture, from its noise to its end. */
import { SeedGrid } from "./base.js";
import { overlay } from "./zoom.js";

const { make, text } = SeedGrid;

/** Ask the server; null where it does not tell, which the page has said then. */
async function told(address) {
  const answer = await SeedGrid.send(address).catch(() => null);
  return answer?.ok ? answer.json() : null;
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
