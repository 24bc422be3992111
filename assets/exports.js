/* Ways out for the picture in the card: its round or its whole work as a sheet or a bundle, the tree as a
   picture, a slideshow, a film. */
SeedGrid.exports = ({ element }) => {
  const { make, text, language } = SeedGrid;

  function show(id) {
    if (!id) return element.replaceChildren();
    const link = (scope, kind) =>
      make("dd", {}, make("a", { href: `seedgrid/export/${id}/${scope}.${kind}?lang=${language}`, download: "", text: text(`export_${kind}`) }));
    const column = (scope) => [
      make("dt", { text: text(`export_${scope}`) }),
      make("dd", {}, make("a", { href: `seedgrid/download/${id}/${scope}.zip`, download: "", text: text("export_pictures") })),
      link(scope, "png"),
      link(scope, "pdf"),
      link(scope, "zip"),
      link(scope, "py"),
    ];
    const [left, right] = [column("round"), column("work")];
    const cells = left.flatMap((cell, row) => [cell, right[row]]);
    const wasOpen = element.querySelector("details")?.open;
    const box = make("details", { class: "sg-export" });
    const tree = make("a", { href: `seedgrid/tree/${id}.png?lang=${language}`, download: "", text: text("export_tree") });
    const looks = make("p", { class: "sg-looks" }, tree, later("slides", () => SeedGrid.slideshow(id)), later("film", () => SeedGrid.film(id)));
    box.append(make("summary", { text: text("export_title") }), make("dl", {}, ...cells), looks);
    box.open = Boolean(wasOpen);
    element.replaceChildren(box);
  }

  /** A button whose script comes with its first click. */
  function later(name, look) {
    return make("button", { type: "button", "data-look": name, text: text(`export_${name}`), onclick: () => SeedGrid.later().then(look) });
  }

  document.addEventListener("sg-card", (event) => show(event.detail));
};
