/* Selection of several pictures or works in the library: to mark, compare, download or trash them.
   Shift selects a range; Esc ends it. */
import { SeedGrid } from "./base.js";
import { tagField } from "./tags.js";
import { compare as holdAgainst } from "./zoom.js";

/** Library items as the server's `Chosen`: works, pictures, and pictures that stand for equal ones. */
export const named = (items) => ({
  works: items.filter((item) => item.count).map((item) => item.work),
  pictures: items.filter((item) => !item.count && item.times === 1).map((item) => item.id),
  equals: items.filter((item) => !item.count && item.times > 1).map((item) => item.id),
});

export const makeSelection = ({ shown, isTrash, change, mark }) => {
  const { make, text } = SeedGrid;
  const MOST = 200;
  const chosen = new Map(); // items by their id
  let isOn = false;
  let last = null;
  const pill = make("button", { class: "sg-pill sg-select", "aria-pressed": "false", text: text("library_select"), onclick: () => turn(!isOn) });
  const count = make("span", { class: "sg-selected-count", role: "status" });
  const all = button("all", "library_all", takeAll);
  const favourite = button("favourite", "help_favourite", love);
  const compare = button("compare", "compare", () => holdAgainst(items()[0], items().slice(1)));
  const download = make("a", { class: "sg-pill sg-download", download: "", text: text("library_download") });
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
    for (const item of items()) item.favourite = favourite;
    say();
  }

  /** Tags of a work apply to all its pictures. */
  function retag({ add = [], remove = [] }) {
    const after = (item) => [...item.tags.filter((tag) => !remove.includes(tag)), ...add.filter((tag) => !item.tags.includes(tag))];
    const changes = items().map((item) => ({ tags: after(item) }));
    mark(items(), { ...named(items()), add, remove }, ...changes);
    items().forEach((item, at) => Object.assign(item, changes[at]));
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
    download.href = SeedGrid.own(`seedgrid/download/selected.zip?ids=${ids.join(",")}`);
  }

  /** All items between two. */
  function between(one, other) {
    const [from, to] = [one, other].map((item) => shown().findIndex(({ id }) => id === item.id)).sort((a, b) => a - b);
    return from < 0 ? [other] : shown().slice(from, to + 1);
  }

  document.addEventListener("keydown", (event) => {
    if (!isOn || event.key !== "Escape" || !SeedGrid.over()?.matches(".sg-works")) return;
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
