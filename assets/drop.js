/* Dropping files anywhere on the page hands them to the import field. */
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
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    uncover();
    if (event.target.closest?.("#sg-drop")) return; // the field takes it itself
    event.preventDefault();
    event.stopPropagation();
    const input = byId("sg-drop")?.querySelector("input[type=file]");
    if (!input) return;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }, true);
})();
