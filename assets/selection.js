/* Selection of several pictures or works in the library: to mark, compare, download or trash them; and
   the library's tags. Shift selects a range; Esc ends it. */
import { icon, make, topDialog, withVisitor, text } from "./base.js";
import { compare as holdAgainst } from "./zoom.js";

/** A row of the library's tags: each opens what has it. Tags come from users, so they are only ever set as text. */
export const tagRow = (onChoose) => {
  const list = make("datalist", { id: "sg-tags-known" });
  const node = make("div", { class: "sg-tags", role: "group", "aria-label": text("library_tags"), hidden: "" });
  let known = [];
  let chosen = "";

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
    node.replaceChildren(...known.map(chip), list);
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
const tagField = (onChange) => {
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
    return make("button", looks, make("bdi", { text: tag }), icon("close"));
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

/** Library items as the server's `Chosen`: works, pictures, and pictures that stand for equal ones. */
export const named = (items) => ({
  works: items.filter((item) => item.count).map((item) => item.work),
  pictures: items.filter((item) => !item.count && item.times === 1).map((item) => item.id),
  equals: items.filter((item) => !item.count && item.times > 1).map((item) => item.id),
});

export const makeSelection = ({ shown, isTrash, change, mark }) => {
  const MOST = 200;
  const chosen = new Map(); // items by their id
  let isOn = false;
  let last = null;
  const pill = make("button", { class: "sg-pill sg-select", "aria-pressed": "false", text: text("library_select"), onclick: () => turn(!isOn) });
  const count = make("span", { class: "sg-selected-count", role: "status" });
  const all = button("all", "library_all", takeAll);
  const favourite = button("favourite", "help_favourite", love);
  const compare = button("compare", "compare", () => holdAgainst(items()[0], items().slice(1)));
  const download = make("a", { class: "sg-pill sg-download", target: "_blank", text: text("library_download") });
  const remove = button("remove", "library_remove", throwAway);
  const tags = tagField(retag);
  const tools = make("div", { class: "sg-selected-tools" }, favourite, compare, download, remove);
  const bar = make("div", { class: "sg-selected", hidden: "" }, count, all, tags.node, tools);

  function button(name, key, onclick) {
    return make("button", { class: "sg-pill", "data-tool": name, text: text(key), onclick });
  }

  const items = () => [...chosen.values()];
  const areLoved = () => chosen.size > 0 && items().every((item) => item.favourite);

  function throwAway() {
    change(items(), named(items()), !isTrash());
    turn(false);
    pill.focus();
  }

  /** Of a work the cover is marked, which is the shown picture. */
  function love() {
    const favourite = !areLoved();
    mark(items(), { pictures: items().map((item) => item.id), favourite }, { favourite });
    say();
  }

  /** Tags of a work apply to all its pictures. */
  function retag({ add = [], remove = [] }) {
    const after = (item) => [...item.tags.filter((tag) => !remove.includes(tag)), ...add.filter((tag) => !item.tags.includes(tag))];
    mark(items(), { ...named(items()), add, remove }, ...items().map((item) => ({ tags: after(item) })));
    say();
  }

  function takeAll() {
    const isAll = isFull();
    chosen.clear();
    if (!isAll) for (const item of shown().slice(0, MOST)) chosen.set(item.id, item);
    draw();
  }

  const isFull = () => chosen.size > 0 && chosen.size >= Math.min(MOST, shown().length);

  function turn(wanted) {
    isOn = wanted;
    last = null;
    chosen.clear();
    pill.setAttribute("aria-pressed", String(isOn));
    document.documentElement.classList.toggle("sg-selecting", isOn);
    draw();
  }

  function draw() {
    document.querySelectorAll("#sg-library .sg-item-open").forEach(show);
    say();
  }

  const show = (node) => (node.ariaPressed = isOn ? chosen.has(node.dataset.pictureId) : null);

  function say() {
    bar.hidden = !isOn;
    for (const part of [tags.node, tools]) part.hidden = chosen.size === 0;
    all.textContent = text(isFull() ? "library_none" : "library_all");
    remove.textContent = text(isTrash() ? "library_restore" : "library_remove");
    const number = items().reduce((sum, item) => sum + (item.count ?? 1), 0);
    count.textContent = text(number > chosen.size ? "library_selected_works" : "library_selected", { number, works: chosen.size });
    tags.show(items());
    favourite.setAttribute("aria-pressed", String(areLoved()));
    compare.disabled = chosen.size < 2 || items().some((item) => item.lost);
    const ids = items().map((item) => (item.count ? `${item.id}*` : item.id));
    download.href = withVisitor(`seedgrid/download/selected.zip?ids=${ids.join(",")}`);
  }

  /** All items between two. */
  function between(one, other) {
    const [from, to] = [one, other].map((item) => shown().findIndex(({ id }) => id === item.id)).sort((a, b) => a - b);
    return from < 0 ? [other] : shown().slice(from, to + 1);
  }

  document.addEventListener("keydown", (event) => {
    if (!isOn || event.key !== "Escape" || !topDialog()?.matches(".sg-works")) return;
    event.preventDefault(); // keep it open
    turn(false);
  });

  return {
    pill,
    bar,
    show,
    end: () => isOn && turn(false),
    /** Handle a click on an item; false if selection is off. */
    takes(item, event) {
      if (!isOn) return false;
      const wanted = event.shiftKey && last ? between(last, item) : [item];
      if (wanted.length === 1 && chosen.has(item.id)) chosen.delete(item.id);
      else for (const each of wanted) if (chosen.size < MOST) chosen.set(each.id, each);
      last = item;
      draw();
      return true;
    },
  };
};
