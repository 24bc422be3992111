/* The verdict: whether a picture's recipe gives its very pixels here, and if not, why. */
SeedGrid.verdict = ({ element, props, watch }) => {
  const { make, text } = SeedGrid;

  function show(value) {
    if (!value.id) return element.replaceChildren();
    const box = make("div", { class: "sg-verdict", role: "status" });
    if (value.error) box.append(make("p", { class: "sg-is-difference", text: text(value.error.key, value.error.data) }));
    else if (value.working) box.append(make("p", { text: text(value.total ? "verdict_step" : "verdict_working", value) }));
    else fill(box, value);
    element.replaceChildren(box);
    element.dataset.pictureId = value.id;
  }

  function fill(box, value) {
    box.dataset.verdict = value.verdict;
    box.append(make("strong", { text: text(`verdict_${value.verdict}`) }));
    if (value.verdict === "identical") box.append(make("p", { text: text("verdict_identical_why") }));
    if (value.max_abs_diff) {
      const data = { max: value.max_abs_diff, pixels: value.differing_pixels, psnr: value.psnr_db };
      box.append(make("p", { text: text("verdict_numbers", data) }));
    }
    for (const reason of value.reasons) {
      const kind = reason.is_difference ? "sg-is-difference" : null;
      box.append(make("p", { class: kind, text: text(reason.key, reason.data) }));
    }
    if (value.difference) box.append(make("img", { src: value.difference, alt: text("compare_difference") }));
  }

  // A verdict is about one picture: it goes when another one is in the card.
  document.addEventListener("sg-card", (event) => {
    if (element.dataset.pictureId !== event.detail) element.replaceChildren();
  });
  SeedGrid.follow(props, watch, show);
};
