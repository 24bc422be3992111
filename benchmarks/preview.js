/* Press Generate for some seeds; the answer is when the first preview was drawn, and what the steps
   were told at: [milliseconds, [[milliseconds, step], …]], from the click. */
(seeds) =>
  new Promise((resolve) => {
    const tell = SeedGrid.tell;
    const steps = [];
    let drawn = null;
    const since = () => performance.now() - start;
    const watch = new MutationObserver(() => (drawn ??= since()));
    SeedGrid.tell = (news) => {
      const cells = news.stage?.cells ?? [];
      const step = cells[0]?.step;
      if (step && step !== steps.at(-1)?.[1]) steps.push([since(), step]);
      tell(news);
      if (!cells.length || !cells.every((cell) => cell.state === "done")) return;
      SeedGrid.tell = tell;
      watch.disconnect();
      SeedGrid.settled().then(() => resolve([drawn, steps]));
    };
    const field = document.querySelector("#sg-seeds input");
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, seeds);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    const start = performance.now();
    document.querySelector("#sg-generate").click();
    // The noise has a canvas of another size, drawn with the answer to the click.
    const begin = () => watch.observe(document.querySelector("#sg-stage"), { subtree: true, attributeFilter: ["height"] });
    const noise = new MutationObserver(() => {
      if (document.documentElement.classList.contains("sg-busy")) (noise.disconnect(), setTimeout(begin));
    });
    noise.observe(document.documentElement, { attributeFilter: ["class"] });
  })
