/* What is folded away inside the settings, and opening it for whoever looks for a field in there. */
(() => {
  const { byId } = SeedGrid;

  /** Fold or unfold the expert settings. */
  function unfold(isOpen) {
    byId("sg-expert")?.classList.toggle("sg-unfolded", isOpen);
    byId("sg-expert-open")?.setAttribute("aria-expanded", String(isOpen));
  }

  /** Whoever opens what ends below the window sees it from its top. */
  function showAll() {
    const settings = byId("sg-settings");
    requestAnimationFrame(() => requestAnimationFrame(() => settings.scrollIntoView({ block: "nearest" })));
  }

  /** Unfold what hides a field. */
  SeedGrid.reveal = (field) => {
    if (field?.closest("#sg-expert")) unfold(true);
    const settings = byId("sg-settings");
    if (!settings.contains(field) || !field.offsetParent) settings.querySelector("button").click();
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("#sg-expert-open");
    if (button) unfold(!byId("sg-expert").classList.contains("sg-unfolded"));
    if (event.isTrusted && event.target.closest?.("#sg-settings > button, #sg-expert-open")) showAll();
  });
  new MutationObserver(() => {
    const button = byId("sg-expert-open");
    if (button && !button.hasAttribute("aria-expanded")) unfold(false);
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
