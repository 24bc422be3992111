/* The library's door. What is behind it, and other things that few look for at the start, comes in one
   file with the first click that asks for something there. */
(() => {
  const { make, text, byId } = SeedGrid;
  let coming = null;

  /** Fetch the scripts that come later, once. */
  SeedGrid.later = () =>
    (coming ??= new Promise((come, fail) => {
      const script = make("script", { src: SeedGridConfig.later, onload: come, onerror: fail });
      document.head.append(script);
    }).catch(() => {
      coming = null;
      SeedGrid.away();
      return new Promise(() => {}); // what waits for it goes with the page, which opens anew
    }));

  document.addEventListener("click", async (event) => {
    if (!event.target.closest?.("#sg-models")) return;
    await SeedGrid.later();
    SeedGrid.showModels();
  });

  /** Closed until somebody opens it: nobody's pictures are in the page before this visitor asks. */
  SeedGrid.library = (parts) => {
    const { element } = parts;
    const opener = make("button", { type: "button", class: "sg-library-closed" });
    opener.append(make("strong", { text: text("library_title") }), make("span", { text: text("library_closed") }));
    element.replaceChildren(opener);

    async function unfold() {
      await SeedGrid.later();
      if (opener.isConnected) SeedGrid.openLibrary(parts);
    }

    opener.addEventListener("click", unfold);
    document.addEventListener("click", async (event) => {
      if (!event.target.closest?.("#sg-library-open")) return;
      await unfold();
      byId("sg-library").scrollIntoView({ behavior: "smooth", block: "start" });
    });
    // On a phone the button at the thumb belongs to the stage: it goes while one is in the library.
    new IntersectionObserver(
      (seen) => document.documentElement.classList.toggle("sg-in-library", seen.at(-1).isIntersecting),
      { rootMargin: "-50% 0px -50% 0px" },
    ).observe(element);
  };
})();
