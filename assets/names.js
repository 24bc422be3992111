/* What screen readers and tooltips call things: fields without a visible label, and keys of buttons. */
(() => {
  const { byId, text } = SeedGrid;
  const fields = [
    ["sg-prompt", "prompt_label"],
    ["sg-seeds", "seeds_label"],
    ...[1, 2, 3, 4].map((number) => [`sg-vary-${number}`, "vary_label", number]),
  ];

  /** Button, key as `aria-keyshortcuts` has it, key as one reads it, words, and those of the list of `?`. */
  SeedGrid.keys = [
    ["sg-generate", "Control+Enter", "Ctrl + Enter", "generate"],
    ["sg-refine", "R", "R", "refine"],
    ["sg-back", "B", "B", "back"],
    ["sg-zoom", "Z", "Z", "zoom"],
    ["sg-star", "F", "F", "help_favourite"],
    ["sg-stop", "Escape", "Esc", "stop", "help_stop"],
    ["sg-keys", "?", "?", "help_title"],
  ];

  function nameField([id, key, number]) {
    const input = byId(id)?.querySelector("textarea, input");
    const name = number ? `${text(key)} ${number}` : text(key);
    if (input && input.getAttribute("aria-label") !== name) input.setAttribute("aria-label", name);
  }

  function nameKey([id, key, shown, words]) {
    const button = byId(id);
    if (!button || button.hasAttribute("aria-keyshortcuts")) return;
    button.setAttribute("aria-keyshortcuts", key);
    button.title = `${text(words)} (${shown})`;
    if (button.textContent.trim() === shown) button.setAttribute("aria-label", text(words));
  }

  /** Gradio draws fields when it likes, and anew: look whenever something was drawn, once a frame. */
  let isWaiting = false;
  function nameSoon() {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      fields.forEach(nameField);
      SeedGrid.keys.forEach(nameKey);
    });
  }
  addEventListener("DOMContentLoaded", () => {
    new MutationObserver(nameSoon).observe(document.body, { childList: true, subtree: true });
    nameSoon();
  });
})();
