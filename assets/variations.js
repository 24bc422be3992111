/* Four variations of one thing, written into the four fields: words, or a setting that the picked
   picture has. What stands in the fields is what is painted. */
import { SeedGrid } from "./base.js";

(() => {
  const element = SeedGrid.byId("sg-fours");
  const { make, text } = SeedGrid;
  element.classList.add("sg-four-list");

  function chip(words, lines) {
    const write = () => [1, 2, 3, 4].forEach((number) => SeedGrid.write(SeedGrid.inputOf(`sg-vary-${number}`), lines[number - 1] ?? ""));
    return make("button", { class: "sg-chip", title: lines.join("\n"), text: words, onclick: write });
  }

  function show() {
    const picked = SeedGrid.pickedNow();
    if (picked?.isEarly) return; // what is offered for a picture comes with its whole card
    const fours = Object.entries(picked?.fours ?? {}).map(([name, lines]) => chip(text(`fours_${name}`), lines));
    element.replaceChildren(...(fours.length ? [make("span", { text: text("fours_title") }), ...fours] : []));
  }

  document.addEventListener("sg-card", show);
})();

/* Second rounds: as soon as a picture is picked, a variation that made its round, or that its words
   hold already, gives way to one that was not tried: the artist's own last ones first (this browser
   keeps them), then the model's. What was typed since, or chosen, stays. */
(() => {
  const { bare, byId, make, text, write } = SeedGrid;
  const { recall, keep } = SeedGrid.shortList("seedgrid-variations", 40);
  const inputs = () => [1, 2, 3, 4].map((number) => SeedGrid.inputOf(`sg-vary-${number}`));
  const says = (suffix) => bare(suffix).trim() !== "";

  /** A line such as "guidance 3" is no word to offer for another picture. */
  const settings = new Set(["lora", "hold", ...SeedGrid.fields].flatMap((name) => [name, name.replace(/s$/, "")]));
  const isSetting = (line) => /^\w/.test(line) && settings.has(line.toLowerCase().split(/\W/)[0]);

  /** What Refine was pressed with, where nobody offered it, is the artist's own. */
  function note() {
    const { offers } = SeedGrid.placeNow();
    const lines = inputs().map((input) => input?.value.trim() ?? "");
    const own = lines.filter((line) => says(line) && !offers.includes(line) && !isSetting(line));
    keep([...new Set([...own, ...recall()])]);
  }
  document.addEventListener("click", (event) => event.target.closest?.("#sg-refine") && note(), true);

  /** What may be offered for a picture: nothing that its words hold, nothing that this work tried. */
  function freshFor(prompt, isTried, offers) {
    const isNew = (suffix) => says(suffix) && !prompt.includes(bare(suffix));
    const fresh = [...recall(), ...offers].filter((suffix) => isNew(suffix) && !isTried(suffix));
    return [...new Set([...fresh, ...offers.filter(isNew)])]; // rather than nothing: what was tried
  }

  function offer() {
    const { isFilled, epoch, offers } = SeedGrid.placeNow();
    const stage = SeedGrid.stageNow();
    const picked = stage.cells?.[stage.picked];
    if (!isFilled || stage.epoch !== epoch || !picked?.prompt) return;
    const prompt = bare(picked.prompt);
    const round = stage.cells.filter((cell) => cell.locked);
    const made = (line) => round.some((cell) => bare(cell.words) === bare(line) || bare(cell.prompt).endsWith(bare(line)));
    const work = new Set(SeedGrid.railNow().rounds.flatMap((each) => each.changes.map(bare)));
    const isTried = (line) => made(line) || work.has(bare(line));
    const isSpent = (line) => made(line) || (offers.includes(line) && prompt.includes(bare(line)));
    const fields = inputs().filter(Boolean);
    const spent = fields.filter((input) => says(input.value) && !input.sgTyped && isSpent(input.value.trim()));
    const others = fields.filter((input) => !spent.includes(input)).map((input) => bare(input.value));
    const fresh = freshFor(prompt, isTried, offers).filter((suffix) => !others.includes(bare(suffix)));
    SeedGrid.isOffering = true;
    spent.forEach((input, index) => write(input, fresh[index] ?? ""));
    SeedGrid.isOffering = false;
  }

  /** A model that spoils what it enlarges is not asked to; a network may do it, or else the sentence
      stands where one would look. */
  function offerFinals() {
    const { enlarges, upscalers } = SeedGrid.placeNow();
    const around = byId("sg-around");
    around.querySelector(".sg-why")?.remove();
    around.dataset.answered = ""; // Until then nobody knows, and a button that vanishes is worse than none.
    for (const id of ["sg-final", "sg-final-4"]) byId(id).toggleAttribute("hidden", !enlarges && !upscalers.length);
    if (!enlarges && !upscalers.length) around.append(make("p", { class: "sg-why sg-quiet", text: text("finals_none") }));
    offerUpscalers(around, enlarges ? ["", ...upscalers] : upscalers);
  }

  /** What enlarges: the model itself, or a network that is here. What was chosen stays chosen. */
  function offerUpscalers(around, names) {
    const before = byId("sg-upscaler");
    const chosen = before?.querySelector("select").value;
    before?.remove();
    if (!names.some(Boolean)) return;
    const choices = names.map((name) => make("option", { value: name, text: name || text("upscaler_model") }));
    const list = make("select", {}, ...choices);
    if (names.includes(chosen)) list.value = chosen;
    around.append(make("label", { id: "sg-upscaler" }, make("span", { text: text("upscaler_label") }), list));
  }

  // Typed at this place, by hand: it stays, whatever is picked.
  document.addEventListener("input", (event) => {
    if (event.target.closest?.("#sg-variations")) event.target.sgTyped = event.isTrusted;
  });
  document.addEventListener("sg-filled", () => {
    for (const input of inputs()) if (input) input.sgTyped = false;
    offer();
    offerFinals();
  });
  document.addEventListener("sg-pick", offer);
  SeedGrid.forgetOwn = () => keep([]);
})();
