/* In the page itself, before all else: the visitor's language, and with it the one script of ours.
   Gradio asks navigator.language once and does not know plain "zh". */
(() => {
  const config = window.SeedGridConfig;
  const { languages } = config;
  const asked = new URLSearchParams(location.search).get("__lang");
  const wishes = [asked, config.language, ...(navigator.languages ?? [navigator.language])];
  const found = wishes
    .filter(Boolean)
    .map((wish) => wish.toLowerCase().split(/[-_]/)[0])
    .find((wish) => Object.hasOwn(languages, wish));
  config.language = found ?? "en";
  const { tag, script } = languages[config.language];
  Object.defineProperty(navigator, "language", { get: () => tag });
  document.documentElement.lang = tag;
  // Gradio's scripts must find ours: only what is written here runs before what stands below.
  document.write(`<${"script"} src="${script}"></${"script"}>`);
})();
