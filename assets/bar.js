/* The bar: a prompt of several lines makes it taller, and the pictures give way by so much, so that all
   of them stay in sight. Whoever leaves the prompt sees its beginning. */
(() => {
  const { byId } = SeedGrid;
  const ONE_LINE_PX = 54;

  const watcher = new ResizeObserver(([{ target }]) => {
    const taller = Math.max(0, target.offsetHeight - ONE_LINE_PX);
    document.documentElement.style.setProperty("--sg-taller", `${taller}px`);
  });

  function begin() {
    const bar = byId("sg-bar");
    if (!bar) return void setTimeout(begin, 50);
    watcher.observe(bar);
    bar.addEventListener("focusout", ({ target }) => (target.scrollTop = 0));
  }
  begin();
})();
