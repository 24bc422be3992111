/* Press Generate for some seeds; the answer, in milliseconds from the click, is when the noise of the
   seeds was drawn, when the first preview of a step was, and what the steps were told at:
   [noise, preview, [[milliseconds, step], …]]. */
(seeds) =>
  new Promise((resolve) => {
    const show = SeedGrid.shows.stage;
    const pen = CanvasRenderingContext2D.prototype;
    const draw = pen.drawImage;
    const steps = [];
    let [noise, preview] = [null, null];
    const since = () => performance.now() - start;
    SeedGrid.shows.stage = (stage) => {
      const { step } = stage.cells[0];
      if (step && step !== steps.at(-1)?.[1]) steps.push([since(), step]);
      show(stage);
      if (!stage.cells.every((cell) => cell.state === "done")) return;
      SeedGrid.shows.stage = show;
      pen.drawImage = draw;
      SeedGrid.settled().then(() => resolve([noise, preview, steps]));
    };
    // The page draws what it was told of; what a seed stands for in spirit is put there otherwise.
    pen.drawImage = function (...args) {
      draw.apply(this, args);
      if (steps.length) preview ??= since();
      else noise ??= since();
    };
    const field = document.querySelector("#sg-seeds input");
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, seeds);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    const start = performance.now();
    document.querySelector("#sg-generate").click();
  })
