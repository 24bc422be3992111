/* Keys: Ctrl+Enter generate, 1-9 pick, R refine, B back, Z zoom, F favourite, Esc stop or let go, ? their list.
   While one types, only Ctrl+Enter and Esc count, and Enter in a variation, which refines. Every key
   clicks what a mouse would click. */
(() => {
  const { byId, make, text } = SeedGrid;
  const press = (id) => {
    const button = byId(id);
    if (button && !button.disabled) button.click();
  };
  /** Mark what is in the card, or not. */
  SeedGrid.favourite = () => document.querySelector("#sg-picked .sg-star")?.click();
  const actions = {
    r: () => press("sg-refine"),
    b: () => press("sg-back"),
    z: () => press("sg-zoom"),
    f: SeedGrid.favourite,
    "?": () => help(),
  };

  /** Every key and what it does. */
  function help() {
    const { keys } = SeedGrid;
    const moves = [["1 – 9", "pick_title"], ["← ↑ → ↓", "help_arrows"], ["Enter", "help_enter"]];
    const pressed = keys.map(([, , shown, key, help]) => [shown, help ?? key]);
    const rows = [...moves, ...pressed, ["↑", "help_earlier"]];
    const list = rows.flatMap(([key, what]) => [
      make("dt", {}, make("kbd", { text: key })),
      make("dd", { text: text(what) }),
    ]);
    const title = make("h2", { id: "sg-help-title", text: text("help_title") });
    const dialog = SeedGrid.overlay("help", make("section", {}, title, make("dl", {}, ...list)));
    dialog.id = "sg-help";
    dialog.setAttribute("aria-labelledby", title.id);
  }

  document.addEventListener("click", (event) => event.target.closest?.("#sg-keys") && help());

  function isTyping(target) {
    return target.closest?.("input, textarea, select, [contenteditable='true']") !== null;
  }

  /** Over the page the large view alone hears keys, and they mean the picture that it shows. */
  function pressOver(dialog, key) {
    if (!dialog.matches(".sg-zoom:not(.sg-slides)")) return;
    const tool = { r: "refine", f: "favourite" }[key];
    if (tool) dialog.querySelector(`[data-tool="${tool}"]`).click();
    else if (/^[1-9]$/.test(key)) SeedGrid.zoom(Number(key) - 1);
    else if (key === "z") dialog.close();
    else if (key === "?") help();
  }

  document.addEventListener("keydown", (event) => {
    const over = document.querySelector("dialog[open]");
    const isHeld = event.ctrlKey || event.metaKey || event.altKey || event.isComposing;
    if (over) {
      if (!isHeld && !isTyping(event.target)) pressOver(over, event.key.toLowerCase());
      return;
    }
    const isVarying = Boolean(event.target.closest?.("#sg-variations"));
    const isSent = event.ctrlKey || event.metaKey || isVarying;
    if (event.key === "Enter" && isSent && !event.isComposing) {
      event.preventDefault();
      event.stopPropagation();
      document.activeElement?.blur(); // the next key picks a picture
      const isBusy = document.documentElement.classList.contains("sg-busy");
      if (!isBusy) press(isVarying ? "sg-refine" : "sg-generate");
      return;
    }
    if (isHeld) return;
    if (event.key === "Escape") {
      if (document.documentElement.classList.contains("sg-busy")) press("sg-stop");
      else if (!isTyping(event.target)) SeedGrid.letGo();
      return;
    }
    if (isTyping(event.target)) return;
    if (/^[1-9]$/.test(event.key)) document.querySelector(`#sg-stage [data-cell="${event.key - 1}"]`)?.click();
    else actions[event.key.toLowerCase()]?.();
  }, true);

  /* Gradio opens a list again on the Tab that leaves it, and a long list stops Tab on its way. */
  addEventListener("keydown", (event) => {
    if (event.key !== "Tab" || !event.target.matches?.("[role='combobox']")) return;
    event.stopPropagation();
    byId(event.target.getAttribute("aria-controls"))?.setAttribute("tabindex", "-1");
  }, true);
})();
