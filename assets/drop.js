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
  /** Say at once what is too large to be sent, and send none of it; true when there was such a file. */
  function refuses(files) {
    const large = [...files].find((file) => file.size > SeedGrid.maxUploadMb * 2 ** 20);
    if (!large) return false;
    const data = { name: large.name, value: Math.ceil(large.size / 2 ** 20), limit: SeedGrid.maxUploadMb };
    SeedGrid.shows.status({ key: "upload_large", kind: "error", field: "drop", data });
    return true;
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
    const input = byId("sg-drop")?.querySelector("input[type=file]");
    if (!input) return;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }, true);
})();
