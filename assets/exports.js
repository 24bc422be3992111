/* Ways out for the picture in the card: its round or its whole work as a sheet or a bundle. */
SeedGrid.exports = ({ element }) => {
  const { make, text } = SeedGrid;

  function show(id) {
    if (!id) return element.replaceChildren();
    const link = (scope, kind) =>
      make("dd", {}, make("a", { href: `seedgrid/export/${id}/${scope}.${kind}`, download: "", text: text(`export_${kind}`) }));
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
    box.append(make("summary", { text: text("export_title") }), make("dl", {}, ...cells));
    box.open = Boolean(wasOpen);
    element.replaceChildren(box);
  }

  document.addEventListener("sg-card", (event) => show(event.detail));
};
