/* Selecting several pictures or works in the library, to download them or to throw them away. */
SeedGrid.selection = (throwAway) => {
  const { make, text } = SeedGrid;
  const MOST = 200;
  const chosen = new Map(); // items by their id
  let isOn = false;
  const pill = make("button", { type: "button", class: "sg-pill sg-select", "aria-pressed": "false", text: text("library_select"), onclick: () => turn(!isOn) });
  const count = make("span", { role: "status" });
  const download = make("a", { class: "sg-pill sg-download", download: "", text: text("library_download") });
  const remove = make("button", { type: "button", class: "sg-pill", text: text("library_remove"), onclick: () => (throwAway([...chosen.values()]), turn(false)) });
  const bar = make("div", { class: "sg-selected", hidden: "" }, count, download, remove);

  function turn(wanted) {
    isOn = wanted;
    chosen.clear();
    pill.setAttribute("aria-pressed", String(isOn));
    document.documentElement.classList.toggle("sg-selecting", isOn);
    for (const node of document.querySelectorAll("#sg-library .sg-item-open")) mark(node);
    say();
  }

  function mark(node) {
    if (isOn) node.setAttribute("aria-pressed", String(chosen.has(node.dataset.pictureId)));
    else node.removeAttribute("aria-pressed");
  }

  function say() {
    bar.hidden = chosen.size === 0;
    count.textContent = text("library_selected", { number: chosen.size });
    const ids = [...chosen.values()].map((item) => (item.count ? `${item.id}*` : item.id));
    download.href = `seedgrid/download/selected.zip?ids=${ids.join(",")}`;
  }

  return {
    pill,
    bar,
    mark,
    /** Take a click on an item; false when one is not selecting. */
    takes(item, node) {
      if (!isOn) return false;
      if (!chosen.delete(item.id) && chosen.size < MOST) chosen.set(item.id, item);
      mark(node);
      say();
      return true;
    },
  };
};
