/* What the next grid begins from: a picture beside the prompt, put there by "Start here" or by
   dropping one, taken away by a click. The field in the settings holds it; this only shows it. */
SeedGrid.starting = ({ element }) => {
  const { make, text, image, thumbUrl, byId } = SeedGrid;
  const inputOf = () => byId("sg-start")?.querySelector("textarea, input");
  let shown = "";

  function write(value) {
    const input = inputOf();
    if (!input) return;
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function show() {
    const start = inputOf()?.value.trim() ?? "";
    if (start === shown) return;
    shown = start;
    const isId = /^[0-9a-f]{32}([0-9a-f]{32})?$/.test(start);
    const label = text("starting_title");
    const chip = make("button", { type: "button", class: "sg-starting", title: label, "aria-label": label, onclick: () => write("") });
    if (isId) chip.append(image(thumbUrl(start), false, { class: "sg-thumb" }));
    chip.append(make("span", { "aria-hidden": "true", text: "×" }));
    element.replaceChildren(...(start ? [chip] : []));
  }

  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, (event) => event.target.closest?.("#sg-start") && show());
  }
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("#sg-begin")) write(SeedGrid.pickedNow()?.id ?? "");
  });
};
