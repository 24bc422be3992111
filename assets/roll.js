/* Other seeds for the same words: the die draws as many as there were, "next" goes on after them.
   They are written into the field, as if typed, so that everybody sees what will be painted. */
(() => {
  const { byId, text } = SeedGrid;
  const NUM_SEEDS = 2 ** 32;
  const MOST = 16;

  /** The seeds in the field: "0-3", "7, 11"; none where a part of it is no number. */
  function written(field) {
    const parts = field.value.split(/[,\s]+/).filter(Boolean).map((part) => {
      const [first, last = first] = part.split("-").map((end) => (end === "" ? NaN : Number(end)));
      if (!Number.isInteger(first) || !Number.isInteger(last) || last < first) return [];
      return Array.from({ length: Math.min(last - first + 1, MOST) }, (_, index) => first + index);
    });
    return parts.every((part) => part.length) ? parts.flat() : [];
  }

  function onStage() {
    const cells = SeedGrid.stageNow?.()?.cells ?? [];
    return cells.map((cell) => cell.seed).filter(Number.isInteger);
  }

  function drawn(seeds) {
    return [...crypto.getRandomValues(new Uint32Array(Math.min(seeds.length, MOST)))].join(", ");
  }

  function following(seeds) {
    const past = Math.max(...seeds) + 1;
    const first = past + seeds.length > NUM_SEEDS ? 0 : past;
    return seeds.length > 1 ? `${first}-${first + seeds.length - 1}` : String(first);
  }

  const field = () => byId("sg-seeds")?.querySelector("input, textarea");
  const now = () => [written(field()), onStage(), [0, 1, 2, 3]].find((found) => found.length);

  function paint(choose) {
    const seeds = field();
    seeds.value = choose(now());
    seeds.dispatchEvent(new Event("input", { bubbles: true }));
    byId("sg-generate").click();
  }

  /** "Next" says how many there will be. */
  function label() {
    const [button, number] = [byId("sg-next"), field() ? now().length : 4];
    if (button) button.textContent = number === 4 ? text("next_seeds") : text("next_number", { number });
  }
  document.addEventListener("sg-pick", label);
  document.addEventListener("input", (event) => event.target.closest?.("#sg-seeds") && label());

  document.addEventListener("click", (event) => {
    if (event.target.closest?.("#sg-roll")) paint(drawn);
    if (event.target.closest?.("#sg-next")) paint(following);
  });
})();
