/* Words that the model knows, as chips under the prompt. A subject or a style takes the place of the
   one that is there; all other words go into the variations. */
SeedGrid.hints = ({ element, props, watch }) => {
  const { make, text, byId } = SeedGrid;
  const inputOf = (id) => byId(id)?.querySelector("textarea, input");
  let lastVariation = 4;
  document.addEventListener("focusin", (event) => {
    const field = event.target.closest?.("[id^='sg-vary-']");
    if (field) lastVariation = Number(field.id.at(-1)) - 1;
  });

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

  function show(value) {
    const rows = Object.entries(value).map(([kind, words]) =>
      make(
        "div",
        { class: "sg-hint-row" },
        make("span", { class: "sg-hint-kind", text: text(`hints_${kind}`) }),
        ...words.map((word) =>
          make("button", {
            type: "button",
            class: "sg-chip",
            text: word,
            onmousedown: (event) => event.preventDefault(), // the prompt keeps the focus
            onclick: () => use(kind, word, words),
          }),
        ),
      ),
    );
    element.replaceChildren(...rows);
    element.classList.toggle("sg-none", rows.length === 0);
  }

  SeedGrid.follow(props, watch, show);
};
