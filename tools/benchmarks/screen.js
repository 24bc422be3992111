/* Press Generate for some seeds; the answer comes when four new pictures are decoded. */
(seeds) =>
  new Promise((resolve) => {
    const pictures = () => [...document.querySelectorAll("#sg-stage [data-cell] img")];
    const before = new Set(pictures().map((image) => image.src));
    const watch = new MutationObserver(() => {
      const found = pictures();
      if (found.length !== 4 || found.some((image) => before.has(image.src))) return;
      watch.disconnect();
      Promise.all(found.map((image) => image.decode())).then(resolve);
    });
    watch.observe(document.querySelector("#sg-stage"), { subtree: true, childList: true });
    const field = document.querySelector("#sg-seeds input");
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, seeds);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    document.querySelector("#sg-generate").click();
  })
