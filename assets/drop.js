/* Dropping files anywhere on the page hands them to the import field; a model or LoRA to its panel. */
(() => {
  const { make, text, byId } = SeedGrid;
  // Gradio's own words in the field come in no language of ours.
  const label = JSON.stringify(text("drop_label"));
  document.documentElement.style.setProperty("--sg-drop-label", label);
  let depth = 0;
  let veil = null;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

  function cover() {
    veil ??= make("div", { class: "sg-veil" }, make("strong", { text: text("drop_here") }));
    document.body.append(veil);
  }

  function uncover() {
    depth = 0;
    veil?.remove();
  }

  document.addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    depth += 1;
    cover();
  });
  document.addEventListener("dragleave", (event) => {
    if (hasFiles(event) && (depth -= 1) <= 0) uncover();
  });
  document.addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  const field = () => byId("sg-drop")?.querySelector("input[type=file]");

  /** Say at once what cannot be sent, and send none of it; true when there was such a file. */
  function refuses(files) {
    const wrong = [...files].map(troubleOf).find(Boolean);
    if (wrong) SeedGrid.shows.status({ ...wrong, kind: "error", field: "drop" });
    return Boolean(wrong);
  }

  function troubleOf({ name, size }) {
    const kinds = (field()?.accept ?? "").split(/[\s,]+/).filter(Boolean);
    if (kinds.length && !kinds.some((kind) => name.toLowerCase().endsWith(kind))) {
      return { key: "upload_kind", data: { name, kinds: kinds.join(", ") } };
    }
    const data = { name, value: Math.ceil(size / 2 ** 20), limit: SeedGrid.maxUploadMb };
    return data.value > data.limit ? { key: "upload_large", data } : null;
  }

  document.addEventListener("change", (event) => {
    if (!event.target.matches?.("#sg-drop input[type=file]") || !refuses(event.target.files)) return;
    event.target.value = "";
    event.stopImmediatePropagation();
  }, true);
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    uncover();
    const weights = [...event.dataTransfer.files].find((file) => file.name.endsWith(".safetensors"));
    if (weights) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return void SeedGrid.later().then(() => SeedGrid.takeModel(weights));
    }
    if (refuses(event.dataTransfer.files)) {
      event.preventDefault();
      return event.stopImmediatePropagation();
    }
    if (event.target.closest?.("#sg-drop")) return; // the field takes it itself
    event.preventDefault();
    event.stopPropagation();
    const input = field();
    if (!input) return;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }, true);
})();
