/* The library's tags: a row of them, each opens what has it, and the field that adds one to what is
   selected. Tags come from users, so they are only ever set as text. */
import { SeedGrid } from "./base.js";

export const tagRow = (onChoose) => {
  const { make, text } = SeedGrid;
  const FEW = 16;
  const list = make("datalist", { id: "sg-tags-known" });
  const node = make("div", { class: "sg-tags", role: "group", "aria-label": text("library_tags"), hidden: "" });
  let known = [];
  let chosen = "";
  let showsAll = false;

  function chip({ tag, number }) {
    const looks = { class: "sg-pill sg-tag", "aria-pressed": String(tag === chosen), onclick: () => pick(tag) };
    return make("button", looks, make("bdi", { text: tag }), make("span", { class: "sg-tag-count", text: number }));
  }

  function pick(tag) {
    chosen = tag === chosen ? "" : tag;
    draw();
    onChoose(chosen);
  }

  function draw() {
    const hadFocus = node.contains(document.activeElement) ? [...node.children].indexOf(document.activeElement) : -1;
    // The chosen tag is always shown.
    const shown = showsAll ? known : known.filter(({ tag }, at) => at < FEW || tag === chosen);
    const more = make("button", { class: "sg-pill", text: text("library_more_tags"), onclick: () => ((showsAll = true), draw()) });
    node.replaceChildren(...shown.map(chip));
    if (shown.length < known.length) node.append(more);
    node.append(list);
    node.hidden = known.length === 0;
    node.children[Math.min(hadFocus, node.children.length - 2)]?.focus(); // the last one is the datalist
  }

  return {
    node,
    /** Show these tags, and clear the chosen one if no picture has it any more. */
    show(tags) {
      known = tags;
      list.replaceChildren(...tags.map(({ tag }) => make("option", { value: tag })));
      const isGone = chosen && !tags.some(({ tag }) => tag === chosen);
      if (isGone) chosen = "";
      draw();
      if (isGone) onChoose("");
    },
  };
};

/** The tags of the selection: a field to add one, and a button to remove each common one. */
export const tagField = (onChange) => {
  const { make, text } = SeedGrid;
  const input = make("input", { class: "sg-field", list: "sg-tags-known", maxlength: "40", placeholder: text("library_tag"), "aria-label": text("library_tag") });
  const shared = make("span", { class: "sg-shared-tags" });
  const form = make("form", { class: "sg-tag-form", onsubmit: add }, input, shared);

  function add(event) {
    event.preventDefault();
    const tag = input.value.trim().replace(/^#/, "");
    if (tag) onChange({ add: [tag] });
    input.value = "";
  }

  function chip(tag) {
    const off = () => (onChange({ remove: [tag] }), input.focus());
    const looks = { class: "sg-pill sg-tag", "aria-label": text("library_untag", { tag }), onclick: off };
    return make("button", looks, make("bdi", { text: tag }), SeedGrid.icon("close"));
  }

  return {
    node: form,
    show(items) {
      const [first, ...others] = items;
      const tags = first?.tags.filter((tag) => others.every((item) => item.tags.includes(tag))) ?? [];
      shared.replaceChildren(...tags.map(chip));
    },
  };
};
