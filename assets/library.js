/* The library dialog: all works, or search results, loaded while scrolling. A click opens a picture in
   its work; deletions can be undone. */
import { SeedGrid } from "./base.js";
import { makeSelection, named, tagRow } from "./selection.js";

/** A grid of items; the browser renders those near the window. */
function cardGrid(makeCard) {
  const node = SeedGrid.make("div", { class: "sg-card-grid" });
  const items = [];
  const placeOf = (wanted) => items.findIndex((item) => item.id === wanted.id);
  return {
    node,
    items,
    /** Replace all items. */
    set(wanted) {
      items.splice(0, items.length, ...wanted);
      node.replaceChildren(...items.map(makeCard));
    },
    append(more) {
      items.push(...more);
      node.append(...more.map(makeCard));
    },
    /** Remove an item; returns its place, for `insert`. */
    remove(item) {
      const at = placeOf(item);
      if (at >= 0) node.children[at].remove();
      if (at >= 0) items.splice(at, 1);
      return at;
    },
    insert(item, at) {
      node.insertBefore(makeCard(item), node.children[at] ?? null);
      items.splice(at, 0, item);
    },
    /** Change an item's data and render it again. */
    redraw(item, changed) {
      const at = placeOf(item);
      if (at < 0) return;
      const card = node.children[at];
      const hadFocus = card.contains(document.activeElement);
      card.replaceWith(makeCard(Object.assign(items[at], changed)));
      if (hadFocus) node.children[at].querySelector("button").focus();
    },
  };
}

/** Undo of the library: restores all pictures of one deletion. */
const undoBar = (restore) => {
  const { make, text } = SeedGrid;
  const STAYS_MS = 20_000;
  const AT_ONCE = 2000;
  const node = make("div", { class: "sg-undo", role: "status", hidden: "" });
  let timer = 0;
  let last = null; // the newest deletion
  const thrown = {}; // the ids of each deletion, by its number

  function hide() {
    node.hidden = true;
    last = null;
  }

  /** The ids are known when the restore is sent, after the deletion's answer. */
  function takeBack() {
    const { number, putBack } = last;
    hide();
    send(() => thrown[number] ?? []);
    putBack();
  }

  function send(idsOf) {
    restore(() => {
      const ids = idsOf();
      if (ids.length > AT_ONCE) send(() => ids.slice(AT_ONCE));
      return { pictures: ids.slice(0, AT_ONCE) };
    });
  }

  /** Hide it after a while, unless it has the pointer or the focus. */
  function wait() {
    clearTimeout(timer);
    timer = setTimeout(() => (node.matches(":hover, :focus-within") ? wait() : hide()), STAYS_MS);
  }

  return {
    node,
    /** Offer to undo the last deletion. */
    offer(number, count, putBack) {
      last = { number, putBack };
      node.replaceChildren(
        make("span", { text: text("library_removed", { number: count }) }),
        make("button", { text: text("library_undo"), onclick: takeBack }),
      );
      node.hidden = false;
      SeedGrid.noteStep({ isThere: () => last?.number === number, undo: takeBack });
      wait();
    },
    /** Note the ids of a deletion. */
    learn({ number, thrown: ids }) {
      thrown[number] = ids;
      if (last?.number === number) node.querySelector("span").textContent = text("library_removed", { number: ids.length });
    },
  };
};

let library = null;

/** Open it with its current content. */
export function openLibrary() {
  library ??= makeLibrary();
  if (!library.dialog.open) library.dialog.showModal();
  library.dialog.focus(); // not the field, which would open a phone's keyboard
  library.ask();
}

function makeLibrary() {
  const { make, text, toggle, icon, image, thumbUrl } = SeedGrid;
  const asked = { text: "", model: "", seed: null, since: "", until: "", favourite: false, trashed: false, tag: "", sort: "newest" };
  let number = 0;
  let after = null;
  let isWaiting = false;
  const line = SeedGrid.line();
  let changing = 0; // changes without an answer
  let deletions = 0;
  const TAGS = 2; // shown under a picture

  const words = field("search", "library_search", (value) => (asked.text = value));
  const seed = field("text", "library_seed", (value) => (asked.seed = readSeed(value)));
  const model = field("text", "library_model", (value) => (asked.model = value));
  const since = field("date", "library_since", (value) => (asked.since = value));
  const until = field("date", "library_until", (value) => (asked.until = value ? dayAfter(value) : ""));
  const more = make("div", { class: "sg-filters", hidden: "" }, seed, model, labelled(since), labelled(until));
  const favourites = toggle("sg-pill", "library_favourites", (isOn) => ((asked.favourite = isOn), ask()));
  const thrown = toggle("sg-pill", "library_trash", (isOn) => (selection.end(), (asked.trashed = isOn), ask()));
  const filter = make("button", { class: "sg-pill", text: text("library_filter"), "aria-expanded": "false", onclick: unfold });
  const emptyTrash = make("button", { class: "sg-pill sg-danger", hidden: "", text: text("library_empty_trash"), onclick: empty });
  const grid = cardGrid(card);
  const selection = makeSelection({ shown: () => grid.items, isTrash: () => asked.trashed, change, mark: say });
  const nothing = make("p", { class: "sg-quiet sg-card-grid-empty", hidden: "" });
  const end = make("div", { class: "sg-card-grid-end" });
  const undo = undoBar((wanted) => tell("trash", () => ({ ...wanted(), trashed: false })));
  const tags = tagRow((tag) => ((asked.tag = tag), ask()));
  const order = make("select", { class: "sg-pill sg-order", "aria-label": text("library_sort"), onchange: () => ((asked.sort = order.value), ask()) });
  for (const sort of ["newest", "oldest", "favourites", "words"]) order.append(make("option", { value: sort, text: text(`library_sort_${sort}`) }));
  const title = make("h2", { text: text("library_title") });
  const close = make("button", { class: "sg-close", id: "sg-library-close", "aria-label": text("library_close"), onclick: () => dialog.close() }, icon("close"));
  const said = make("p", { class: "sg-said", role: "alert" });
  const head = make("div", { class: "sg-library-head" }, title, words, favourites, thrown, order, selection.pill, filter, emptyTrash, said);
  const dialog = make("dialog", { class: "sg-works", tabindex: "-1", "aria-label": text("library_title") });

  function field(type, key, change) {
    const input = make("input", { type, class: "sg-field", placeholder: text(key), "aria-label": text(key), maxlength: "200" });
    let timer = 0;
    input.addEventListener("input", () => {
      change(input.value.trim());
      clearTimeout(timer);
      timer = setTimeout(ask, 80);
    });
    return input;
  }

  function labelled(input) {
    return make("label", { class: "sg-dated" }, make("span", { text: input.ariaLabel }), input);
  }

  const readSeed = (value) => (/^\d{1,10}$/.test(value) && Number(value) < 2 ** 32 ? Number(value) : null);

  function dayAfter(day) {
    const next = new Date(`${day}T00:00:00Z`);
    next.setUTCDate(next.getUTCDate() + 1);
    return next.toISOString().slice(0, 10);
  }

  /** Search from the first page. */
  function ask() {
    number += 1;
    isWaiting = true;
    after = null;
    find({ ...asked, number, after: null });
  }

  /** A search is not sent if a newer one waits. */
  const find = (wanted) =>
    line(async () => {
      const isWanted = wanted.number === number;
      if (isWanted && !(await SeedGrid.ask("search", { asked: wanted }))) isWaiting = false; // scrolling on asks again
    });

  function empty() {
    if (confirm(text("library_empty_sure"))) line(() => SeedGrid.ask("empty")).then(ask);
  }

  function unfold() {
    more.hidden = !more.hidden;
    filter.setAttribute("aria-expanded", String(!more.hidden));
  }

  function askMore() {
    if (isWaiting || after === null) return;
    isWaiting = true;
    find({ ...asked, number, after });
  }

  function show(value) {
    if (value.tags) tags.show(value.tags);
    if (value.thrown) return undo.learn(value);
    if (value.number !== number) return;
    if (changing > 0) return ask(); // the answer is older than a change
    isWaiting = false;
    after = value.after;
    if (value.is_more) grid.append(value.items);
    else grid.set(value.items);
    sayIfEmpty();
    if (after !== null && isNear(end)) askMore();
  }

  /** The text of an empty result, and the button to empty the trash. */
  function sayIfEmpty() {
    nothing.hidden = grid.items.length > 0;
    const whole = asked.trashed ? "library_trash_empty" : "library_nothing";
    nothing.textContent = text(isWhole() ? whole : "library_not_found");
    emptyTrash.hidden = !asked.trashed || (isWhole() && grid.items.length === 0);
  }

  const isWhole = () => !(asked.text || asked.model || asked.tag || asked.since || asked.until || asked.favourite || asked.seed !== null);
  const isNear = (node) => node.getBoundingClientRect().top < innerHeight + 900;

  function card(item) {
    const looks = {
      class: "sg-item-open",
      title: item.prompt,
      "aria-label": text("library_go", { words: item.prompt, seed: item.seed }),
      "data-picture-id": item.id,
      onclick: (event) => selection.takes(item, event) || open(item),
    };
    const opener = make(
      "button",
      looks,
      image(thumbUrl(item.id), item.lost, { loading: "lazy", draggable: "false" }),
      item.favourite && icon("star"),
      item.count && make("span", { class: "sg-item-count", "aria-hidden": "true", text: item.count }),
    );
    selection.show(opener);
    const label = text(asked.trashed ? "library_restore" : "library_remove");
    const away = () => change([item], named([item]), !asked.trashed);
    const remove = make("button", { class: "sg-item-remove", title: label, "aria-label": label, onclick: away }, asked.trashed ? "↺" : icon("close"));
    const tags = item.tags.slice(0, TAGS).map((tag) => make("bdi", { class: "sg-item-tag", text: tag }));
    const caption = make(
      "p",
      {},
      ...tags, // first, since long texts are cut at their end
      item.tags.length > TAGS && make("span", { class: "sg-item-tag-count", text: `+${item.tags.length - TAGS}` }),
      item.times > 1 && make("span", { class: "sg-times", text: text("library_times", { number: item.times }) }),
      make("bdi", { text: item.prompt }),
    );
    return make("article", { class: "sg-item" }, opener, remove, caption);
  }

  /** Open a picture in its work. */
  function open({ id }) {
    dialog.close();
    SeedGrid.turn("open", { id });
    scrollTo({ top: 0 });
  }

  /** Send a change after earlier ones; its data are read when it is sent. */
  async function tell(action, wanted) {
    changing += 1;
    const parts = await line(() => SeedGrid.ask(action, { asked: wanted() }).finally(() => (changing -= 1)));
    if (!parts || parts.status?.kind === "error") ask();
    else SeedGrid.lookAgain();
  }

  /** Trash or restore items; shown at once. Undo restores all of one deletion. */
  function change(items, wanted, isTrashed) {
    const question = number;
    const deletion = (deletions += 1);
    tell("trash", () => ({ ...wanted, trashed: isTrashed, number: deletion }));
    const places = items.map((item) => [item, grid.remove(item)]).reverse();
    sayIfEmpty();
    if (!isTrashed) return;
    undo.offer(deletion, items.length, () => {
      if (question !== number) return void ask(); // another search was started meanwhile
      for (const [item, at] of places) if (at >= 0) grid.insert(item, at);
      sayIfEmpty();
    });
  }

  /** Mark items; shown at once. */
  function say(items, wanted, ...changed) {
    tell("mark", () => wanted);
    items.forEach((item, at) => grid.redraw(item, changed[at] ?? changed[0]));
  }

  dialog.addEventListener("scroll", () => isNear(end) && askMore(), { passive: true });
  dialog.append(close, head, more, tags.node, selection.bar, grid.node, nothing, end, undo.node);
  SeedGrid.byId("sg-library").append(dialog);
  SeedGrid.askLibrary = () => dialog.open && ask();
  SeedGrid.shows.library = show;
  return { dialog, ask };
}
