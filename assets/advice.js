/* Advice at the fields, before a click: words that the model does not know, sizes that it was not
   made for, settings without effect. The server says what; here it is put where it belongs. */
(() => {
  const { make, text, byId } = SeedGrid;
  const PAUSE_MS = 250;
  let timer = 0;
  let shown = "";
  let asked = "";
  let isOut = false;
  let advise = null;

  function askSoon() {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  }

  const typed = () => ({ fields: SeedGrid.typed(), vary: SeedGrid.seen({ vary: [1, 2, 3, 4].map((number) => `sg-vary-${number}`) }) });

  /** One question at a time: of two that overlap, the older one may be answered last. */
  function ask() {
    if (isOut || !advise) return;
    isOut = true;
    asked = JSON.stringify(typed());
    advise(JSON.parse(asked));
  }

  /** It was answered, or refused; what was typed meanwhile is asked for now. */
  function advised() {
    isOut = false;
    if (JSON.stringify(typed()) !== asked) askSoon();
  }

  function show(all) {
    const news = JSON.stringify(all);
    if (news === shown) return;
    shown = news;
    for (const note of document.querySelectorAll(".sg-advice")) note.remove();
    for (const each of all) place(each);
  }

  function place({ field, key, data }) {
    const at = byId({ vary: "sg-variations", prompt: "sg-hints" }[field] ?? `sg-${field}`);
    const note = make("p", { class: "sg-advice", role: "status" }, make("span", { text: text(key, data) }));
    if (key === "error_words_unknown") {
      note.append(
        button("advice_words", () => SeedGrid.openHints()),
        button("advice_model", openModels),
      );
    }
    if (field === "prompt") at?.prepend(note);
    else at?.append(note);
  }

  function button(key, onclick) {
    // The prompt would lose its focus to the press, and the words that open close again.
    return make("button", { type: "button", class: "sg-link", text: text(key), onmousedown: (event) => event.preventDefault(), onclick });
  }

  /** The way to another model: the settings, at their list of models. */
  function openModels() {
    SeedGrid.reveal(byId("sg-model"));
    setTimeout(() => {
      byId("sg-model")?.scrollIntoView({ block: "center" });
      byId("sg-model")?.querySelector("input")?.focus();
    }, 150);
  }

  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, (event) => {
      if (event.target.closest?.("#sg-top, #sg-panel")) askSoon();
    });
  }
  document.addEventListener("sg-words", askSoon);
  SeedGrid.adviser = (component) => (advise = component.advise);
  SeedGrid.advised = advised;
  SeedGrid.shows.advice = show;
})();
