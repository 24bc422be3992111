/* The status line under the stage, and messages at the field they are about. */
SeedGrid.status = ({ element, props, watch }) => {
  const { make, text, byId } = SeedGrid;
  const line = make("p", { class: "sg-status-line", role: "status", "aria-live": "polite" });
  element.replaceChildren(line);
  let epoch = -1;

  function show(value) {
    if (value.epoch < epoch) return;
    epoch = value.epoch;
    line.textContent = value.key ? text(value.key, value.data) : "";
    line.dataset.kind = value.kind;
    line.dataset.key = value.key ?? "";
    document.documentElement.classList.toggle("sg-remembered", value.kind === "remembered");
    clearFields();
    if (value.field) complain(value.field, text(value.key, value.data));
  }

  function clearFields() {
    for (const note of document.querySelectorAll(".sg-field-error")) note.remove();
    for (const field of document.querySelectorAll("[data-sg-wrong]")) {
      delete field.dataset.sgWrong;
      field.querySelector("input, textarea")?.removeAttribute("aria-invalid");
    }
  }

  /** Put the sentence at its field, open what hides the field, and take it away when one types. */
  function complain(name, sentence) {
    const field = byId(`sg-${name}`) ?? byId("sg-prompt");
    const input = field.querySelector("input, textarea");
    const settings = byId("sg-settings");
    if (settings.contains(field) && field.offsetParent === null) {
      settings.querySelector("button")?.click();
    }
    field.dataset.sgWrong = "";
    field.append(make("p", { class: "sg-field-error", role: "alert", text: sentence }));
    input?.setAttribute("aria-invalid", "true");
    input?.addEventListener("input", clearFields, { once: true });
    setTimeout(() => input?.focus(), 60); // the fold needs a moment to open
  }

  SeedGrid.follow(props, watch, show);
};
