/* Four variations of one thing, written into the four fields: words, or a setting that the picked
   picture has. Whoever likes other ones changes the fields: what stands there is what is painted. */
SeedGrid.fours = ({ element }) => {
  const { make, text, byId } = SeedGrid;
  element.classList.add("sg-four-list");

  function write(lines) {
    lines.forEach((line, index) => {
      const input = byId(`sg-vary-${index + 1}`)?.querySelector("textarea, input");
      if (!input) return;
      input.value = line;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }

  function show() {
    const fours = Object.entries(SeedGrid.pickedNow()?.fours ?? {});
    const chips = fours.map(([name, lines]) =>
      make("button", { type: "button", class: "sg-chip", title: lines.join("\n"), text: text(`fours_${name}`), onclick: () => write(lines) }),
    );
    element.replaceChildren(...(chips.length ? [make("span", { text: text("fours_title") })] : []), ...chips);
  }

  document.addEventListener("sg-card", show);
};
