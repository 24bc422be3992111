/* Type words as one key, and say how long after it four live pictures of them are decoded and seen. */
(words) =>
  new Promise((resolve) => {
    const field = document.querySelector("#sg-prompt textarea");
    field.value = words;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    const start = performance.now();
    const look = () => {
      const cells = [...document.querySelectorAll("#sg-stage [data-cell]")];
      const isThere = ({ dataset, title }) => dataset.state === "live" && title === words;
      if (cells.length === 4 && cells.every(isThere)) requestAnimationFrame(() => resolve((performance.now() - start) / 1000));
      else requestAnimationFrame(look);
    };
    look();
  })
