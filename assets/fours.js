/* Four variations of one thing, written into the four fields: words, a setting that the picked picture
   has, or a set of this artist's own, kept in this browser. Whoever likes other ones changes the
   fields: what stands there is what is painted. */
SeedGrid.fours = ({ element }) => {
  const { make, text, byId } = SeedGrid;
  const KEPT = "seedgrid-fours";
  const MOST = 24;
  element.classList.add("sg-four-list");

  const inputs = () => [1, 2, 3, 4].map((number) => byId(`sg-vary-${number}`)?.querySelector("textarea, input"));

  function write(lines) {
    inputs().forEach((input, index) => {
      if (!input) return;
      input.value = lines[index] ?? "";
      input.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }

  /** Own sets, as [name, lines]; a browser that keeps nothing has none. */
  function own() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT));
      return Array.isArray(kept) ? kept.filter(([name, lines]) => typeof name === "string" && Array.isArray(lines)) : [];
    } catch {
      return [];
    }
  }

  function keep(sets) {
    try {
      localStorage.setItem(KEPT, JSON.stringify(sets.slice(-MOST)));
    } catch {
      // Nothing is kept, and nothing else is lost.
    }
    show();
  }

  function chip(words, lines, onclick = () => write(lines)) {
    return make("button", { type: "button", class: "sg-chip", title: lines.join("\n"), text: words, onclick });
  }

  function ownChip([name, lines]) {
    const forget = () => keep(own().filter(([other]) => other !== name));
    const label = text("fours_forget", { name });
    const cross = make("button", { type: "button", class: "sg-chip sg-four-forget", "aria-label": label, title: label, text: "×", onclick: forget });
    return make("span", { class: "sg-four-own" }, chip(name, lines), cross);
  }

  /** Ask for a name where the button was; Enter keeps the four that stand in the fields. */
  function ask(button) {
    const field = make("input", { type: "text", maxlength: "40", class: "sg-field", "aria-label": text("fours_name"), placeholder: text("fours_name") });
    field.addEventListener("keydown", (event) => {
      if (!["Enter", "Escape"].includes(event.key) || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation();
      const name = field.value.trim();
      const lines = inputs().map((input) => input?.value ?? "");
      if (event.key === "Enter" && name) keep([...own().filter(([other]) => other !== name), [name, lines]]);
      else show();
      element.querySelector(".sg-four-keep")?.focus();
    });
    button.replaceWith(field);
    field.focus();
  }

  function show() {
    const picked = SeedGrid.pickedNow();
    if (picked?.isEarly) return; // what is offered for a picture comes with its whole card
    const fours = Object.entries(picked?.fours ?? {});
    if (!fours.length) return element.replaceChildren();
    const keeper = chip(text("fours_keep"), [], () => ask(keeper));
    keeper.classList.add("sg-four-keep");
    element.replaceChildren(
      make("span", { text: text("fours_title") }),
      ...fours.map(([name, lines]) => chip(text(`fours_${name}`), lines)),
      ...own().map(ownChip),
      keeper,
    );
  }

  document.addEventListener("sg-card", show);
};
