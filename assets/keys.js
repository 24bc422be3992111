/* Keys: Ctrl+Enter generate, 1-4 pick, R refine, B back, Z zoom, F favourite, Esc stop. While one
   types, only Ctrl+Enter and Esc count. Every key clicks what a mouse would click. */
(() => {
  const { byId } = SeedGrid;
  const press = (id) => {
    const button = byId(id);
    if (button && !button.disabled) button.click();
  };
  const actions = {
    r: () => press("sg-refine"),
    b: () => press("sg-back"),
    z: () => press("sg-zoom"),
    f: () => favourite(),
  };

  /** Mark what is ringed, also when the card does not show it yet: a hand is quicker than a server. */
  function favourite(triesLeft = 100) {
    const ringed = document.querySelector("#sg-stage [aria-selected='true']")?.dataset.pictureId;
    const isShown = !ringed || SeedGrid.pickedNow()?.id === ringed;
    if (isShown) document.querySelector("#sg-picked .sg-star")?.click();
    else if (triesLeft) setTimeout(() => favourite(triesLeft - 1), 50);
  }

  function isTyping(target) {
    return target.closest?.("input, textarea, select, [contenteditable='true']") !== null;
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.stopPropagation();
      document.activeElement?.blur(); // the next key picks a picture
      if (!document.documentElement.classList.contains("sg-busy")) press("sg-generate");
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
      if (document.documentElement.classList.contains("sg-busy")) press("sg-stop");
      return;
    }
    if (isTyping(event.target)) return;
    if (/^[1-9]$/.test(event.key)) {
      const cell = `[data-cell="${event.key - 1}"]`;
      const zoomed = document.querySelector("dialog.sg-zoom[open]");
      if (zoomed) SeedGrid.zoom(Number(event.key) - 1);
      else document.querySelector(`#sg-stage ${cell}`)?.click();
    } else {
      actions[event.key.toLowerCase()]?.();
    }
  }, true);
})();
