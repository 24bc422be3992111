/* Turns: one question after the other. A hand is quicker than a server: who presses Generate while the
   page still opens, or Back twice, asks from a place that is about to change, and of two answers on
   their way the one that comes last would win. */
(() => {
  /** A line of questions: each `comes` waits until the one before it has had its `answered`. */
  SeedGrid.line = () => {
    let last = Promise.resolve();
    let end = () => undefined;
    return {
      async comes() {
        const before = last;
        let over;
        last = new Promise((resolve) => (over = resolve));
        await before;
        end = over;
      },
      answered: () => end(),
    };
  };

  const NAMES = ["visitor", "work", "round", "picked", "run", "epoch"];
  const line = SeedGrid.line();
  let known = null;

  /** What a question about the place tells: the page state that the answer before it led to, the
      pick where that counts, and the rest as it was read when the question was asked. */
  SeedGrid.turn = async (state, pick = {}, ...said) => {
    await line.comes();
    return [{ ...(known ?? state), ...pick }, ...said];
  };

  /** The question that was sent last has its answer, or failed. */
  SeedGrid.answered = line.answered;

  /** Where the browser is now. */
  SeedGrid.stands = (place) => (known = Object.fromEntries(NAMES.map((name) => [name, place[name]])));
})();
