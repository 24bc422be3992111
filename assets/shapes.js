/* The shapes of pictures that the model takes, drawn to click: each types its size into the field. */
SeedGrid.shapes = ({ element, props, watch }) => {
  const { make, text, byId } = SeedGrid;
  const input = () => byId("sg-size")?.querySelector("input, textarea");

  function button(shape) {
    const name = shape.ratio || text("shapes_own");
    const frame = make("i", { "aria-hidden": "true" });
    frame.style.aspectRatio = `${shape.width} / ${shape.height}`;
    frame.style[shape.width < shape.height ? "height" : "width"] = "22px";
    return make(
      "button",
      {
        type: "button",
        class: "sg-shape",
        title: text("shapes_title", { name, width: shape.width, height: shape.height }) + (shape.own ? ` · ${text("shapes_own")}` : ""),
        "data-size": shape.size,
        "data-own": shape.own ? "" : null,
        onclick: () => {
          input().value = shape.size;
          input().dispatchEvent(new Event("input", { bubbles: true }));
        },
      },
      make("span", { class: "sg-shape-frame" }, frame),
      make("span", { text: name }),
    );
  }

  /** Press the button of the size in the field; an empty field means the model's own. */
  function mark() {
    const size = input()?.value.trim().toLowerCase().replaceAll(" ", "").replace("×", "x") ?? "";
    for (const each of element.querySelectorAll(".sg-shape")) {
      const isOn = size ? each.dataset.size === size : "own" in each.dataset;
      each.setAttribute("aria-pressed", String(isOn));
    }
  }

  function show(value) {
    element.replaceChildren(...(value.length > 1 ? value.map(button) : []));
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", text("shapes_label"));
    element.classList.add("sg-shape-list");
    mark();
  }

  document.addEventListener("input", (event) => event.target.closest?.("#sg-size") && mark());
  document.addEventListener("focusin", mark); // a link or a dropped picture fills the field unheard
  SeedGrid.follow(props, watch, show);
};
