/* Words that the model knows, as chips under the prompt. A subject or a style takes the place of the
   one that is there; all other words go into the variations. */
SeedGrid.hints = ({ element, props, watch }) => {
  const { make, text, bare, byId } = SeedGrid;
  const inputOf = (id) => byId(id)?.querySelector("textarea, input");
  let lastVariation = 4;
  document.addEventListener("focusin", (event) => {
    const field = event.target.closest?.("[id^='sg-vary-']");
    if (field) lastVariation = Number(field.id.at(-1)) - 1;
  });

  const hasSome = () => chips().length > 0 || !SeedGrid.history.hidden;
  // Open while one types the prompt; gone as soon as pictures are asked for, so as not to hide them.
  const open = (isOpen) => {
    byId("sg-hints").classList.toggle("sg-open", isOpen);
    if (isOpen) mark();
  };
  document.addEventListener("input", (event) => event.target.closest?.("#sg-prompt, #sg-variations") && mark());
  document.addEventListener("focusin", (event) => {
    open(event.target.closest?.("#sg-prompt, #sg-hints") !== null && hasSome());
  });
  document.addEventListener("pointerdown", (event) => {
    if (event.target.closest?.("#sg-prompt")) open(hasSome());
    else if (!event.target.closest?.("#sg-hints")) open(false);
  });
  document.addEventListener("keydown", (event) => {
    const isChip = event.target.closest?.("#sg-hints");
    if (event.key === "Escape" && isChip) inputOf("sg-prompt").focus();
    else if (event.key === "Enter" && isChip) return;
    if (event.key === "Enter" || event.key === "Escape") open(false);
  }, true);
  // Tab leads from row to row and then to the seeds, arrows to every word.
  const chips = () => [...element.querySelectorAll(".sg-chip")];
  element.addEventListener("keydown", (event) => SeedGrid.rove(event, chips) && event.preventDefault());
  element.addEventListener("focusin", (event) => {
    const row = event.target.closest(".sg-hint-words");
    for (const each of row?.children ?? []) each.tabIndex = each === event.target ? 0 : -1;
  });

  SeedGrid.openHints = () => {
    inputOf("sg-prompt")?.focus();
    open(element.children.length > 0);
  };

  function type(input, value) {
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function use(kind, word, words) {
    if (kind !== "subjects" && kind !== "styles") {
      lastVariation = (lastVariation % 4) + 1;
      const input = inputOf(`sg-vary-${lastVariation}`);
      if (input) type(input, `, ${word}`);
      return;
    }
    const input = inputOf("sg-prompt");
    const there = words
      .filter((other) => input.value.toLowerCase().includes(other.toLowerCase()))
      .sort((one, other) => other.length - one.length)[0];
    if (there) {
      const at = input.value.toLowerCase().indexOf(there.toLowerCase());
      type(input, input.value.slice(0, at) + word + input.value.slice(at + there.length));
    } else {
      const glue = kind === "styles" && !word.startsWith("in ") ? ", " : " ";
      type(input, `${input.value.trimEnd()}${input.value.trim() ? glue : ""}${word}`);
    }
  }

  /** Mark the words that stand in a field already. */
  function mark() {
    const inFields = [...document.querySelectorAll("#sg-prompt textarea, #sg-variations input")];
    const said = inFields.map((input) => bare(input.value));
    for (const node of element.querySelectorAll(".sg-chip")) {
      const isSaid = said.some((words) => words.includes(bare(node.textContent)));
      node.setAttribute("aria-pressed", String(isSaid));
    }
  }

  function chip(kind, word, words) {
    return make("button", {
      type: "button",
      class: "sg-chip",
      tabindex: "-1",
      text: word,
      onmousedown: (event) => event.preventDefault(), // the prompt keeps the focus
      onclick: () => use(kind, word, words),
    });
  }

  function show(value) {
    const rows = Object.entries(value).map(([kind, words]) =>
      make(
        "div",
        { class: "sg-hint-row" },
        make("span", { class: "sg-hint-kind", text: text(`hints_${kind}`, { message: kind }) }),
        make("div", { class: "sg-hint-words" }, ...words.map((word) => chip(kind, word, words))),
      ),
    );
    element.replaceChildren(...rows, SeedGrid.history);
    for (const row of element.querySelectorAll(".sg-hint-words")) row.firstElementChild?.setAttribute("tabindex", "0");
    element.classList.add("sg-hint-list");
    if (byId("sg-prompt")?.contains(document.activeElement)) open(true); // it was waited for
    document.dispatchEvent(new Event("sg-words")); // another model knows other words
  }

  SeedGrid.follow(props, watch, show);
};
