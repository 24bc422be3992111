/* The status line under the stage, and messages at the field they are about. */
SeedGrid.status = ({ element, props, watch, folder }) => {
  const { make, text, byId } = SeedGrid;
  const line = make("p", { class: "sg-status-line", role: "status", "aria-live": "polite" });
  const ways = make("div", { class: "sg-status-ways", hidden: "" });
  element.replaceChildren(line, ways);
  let epoch = -1;
  let isMarked = false;
  // The fields of the page; an error about anything else stands in the status line alone.
  const PLACES = new Set([...SeedGrid.fields, "vary", "drop"]);

  function show(value) {
    if (value.epoch < epoch) return;
    epoch = value.epoch ?? epoch;
    line.textContent = value.key ? text(value.key, value.data) : "";
    line.dataset.kind = value.kind;
    line.dataset.key = value.key ?? "";
    document.documentElement.classList.toggle("sg-remembered", value.kind === "remembered");
    offer(value);
    clearFields();
    if (PLACES.has(value.field)) complain(value.field, text(value.key, value.data));
    else if (value.kind === "error" || value.kind === "note") line.scrollIntoView({ block: "nearest" });
  }

  /** What can be done about it, where there is something. */
  function offer(value) {
    const button = (key, onclick) => make("button", { type: "button", class: "sg-pill", text: text(key), onclick });
    const name = "status_folder_other";
    const other = make("input", { class: "sg-field", maxlength: "500", placeholder: text(name), "aria-label": text(name) });
    const found = {
      error_folder_read_only: () => [button("status_folder_again", () => folder({ folder: "" })), other, button("status_folder_use", () => folder({ folder: other.value }))],
      error_picture_without_recipe: () => [button("drop_describe", () => byId("sg-prompt").querySelector("textarea").focus()), button("library_open", () => byId("sg-library-open").click())],
    };
    found.error_folder_refuses = found.error_folder_read_only;
    ways.replaceChildren(...(found[value.key]?.() ?? []));
    ways.hidden = !ways.children.length;
  }

  function clearFields() {
    if (!isMarked) return; // at every step of a run: not a look through the whole page
    isMarked = false;
    for (const note of document.querySelectorAll(".sg-field-error")) note.remove();
    for (const field of document.querySelectorAll("[data-sg-wrong]")) {
      delete field.dataset.sgWrong;
      field.querySelector("input, textarea")?.removeAttribute("aria-invalid");
    }
  }

  /** Put the sentence at its field; a folded field is opened first, and needs a moment for that. */
  function complain(name, sentence, isOpened = false) {
    const field = byId(`sg-${name === "vary" ? "vary-1" : name}`);
    if (field?.offsetParent) return mark(field, sentence);
    if (isOpened) return undefined; // the status line says it as well
    SeedGrid.reveal(field ?? byId("sg-settings"));
    setTimeout(() => complain(name, sentence, true), 120);
  }

  function mark(field, sentence) {
    isMarked = true;
    const input = field.querySelector("input, textarea");
    field.dataset.sgWrong = "";
    field.append(make("p", { class: "sg-field-error", role: "alert", text: sentence }));
    input?.setAttribute("aria-invalid", "true");
    input?.addEventListener("input", clearFields, { once: true });
    if (input?.getAttribute("role") !== "combobox") input?.focus(); // a list would open over the rest
  }

  SeedGrid.statusNow = () => line.dataset.key ?? "";
  SeedGrid.shows.status = show;
  SeedGrid.follow(props, watch, show);
};
