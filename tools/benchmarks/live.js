/* Type words as one key, and say how long after it four live pictures of them are decoded and seen. */
(words) =>
  new Promise((resolve, reject) => {
    const field = document.querySelector("#sg-prompt textarea");
    field.value = words;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    const start = performance.now();
    const look = () => {
      const cells = [...document.querySelectorAll("#sg-stage [data-cell]")];
      const isThere = ({ dataset, title }) => dataset.state === "live" && title === words;
      if (cells.length === 4 && cells.every(isThere)) requestAnimationFrame(() => resolve((performance.now() - start) / 1000));
      else if (performance.now() - start > 30_000) reject(new Error(`no live pictures of ${words}: ${document.querySelector("#sg-live").title}; ${document.querySelector("#sg-status").textContent}; ${cells.map(({ dataset, title }) => `${dataset.state} ${title}`)}`));
      else requestAnimationFrame(look);
    };
    look();
  })
