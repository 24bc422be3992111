/* The library dialog: all works, or search results, loaded while scrolling. A click opens a picture in
   its work; deletions can be undone. */
import { SeedGrid, byId, icon, image, make, noteStep, shows, text, thumbUrl, toggle } from "./base.js";
import { makeSelection, named, tagRow } from "./selection.js";

const TAGS = 2; // shown under a picture
const UNDO_MS = 20_000; // the undo of a deletion is offered
const MOST_AT_ONCE = 2000; // pictures in a request, as in seedgrid/web/actions/library.py
let library = null;

/** Open it with its current content. */
export function openLibrary() {
  library ??= makeLibrary();
  if (!library.dialog.open) library.dialog.showModal();
  library.dialog.focus(); // not the field, which would open a phone's keyboard
  library.ask();
}

function makeLibrary() {
  let number = 0;
  let after = null;
  let isWaiting = false;
  const enqueue = SeedGrid.makeQueue();
  let changing = 0; // changes without an answer
  let thrown = null; // the ids of the last deletion while it can be undone, as a promise
  let tag = "";
  let [askTimer, undoTimer] = [0, 0];

  const seed = field("text", "seed");
  const more = make("div", { class: "sg-filters", hidden: "" }, seed, field("text", "model"), labelled(field("date", "since")), labelled(field("date", "until")));
  const favourites = toggle("sg-pill", "library_favourites", ask);
  const trash = toggle("sg-pill", "library_trash", () => (selection.end(), ask()));
  const filter = toggle("sg-pill", "library_filter", (isOn) => (more.hidden = !isOn));
  const emptyTrash = make("button", { class: "sg-pill sg-danger", hidden: "", text: text("library_empty_trash"), onclick: empty });
  const grid = make("div", { class: "sg-card-grid" }); // of cards, each with its item
  const items = () => [...grid.children].map(({ item }) => item);
  const cardOf = ({ id }) => [...grid.children].find(({ item }) => item.id === id);
  const selection = makeSelection({ shown: items, isTrash: () => isOn(trash), change, mark });
  const nothing = make("p", { class: "sg-quiet sg-card-grid-empty", hidden: "" });
  const end = make("div", { class: "sg-card-grid-end" });
  const removed = make("span");
  const undo = make("div", { class: "sg-undo", role: "status", hidden: "" }, removed, make("button", { text: text("library_undo"), onclick: putBack }));
  const tags = tagRow((chosen) => ((tag = chosen), ask()));
  const order = make("select", { class: "sg-pill sg-order", name: "sort", "aria-label": text("library_sort") });
  for (const sort of ["newest", "oldest", "favourites", "words"]) order.append(make("option", { value: sort, text: text(`library_sort_${sort}`) }));
  const title = make("h2", { text: text("library_title") });
  const close = make("button", { class: "sg-close", id: "sg-library-close", "aria-label": text("library_close"), onclick: () => dialog.close() }, icon("close"));
  const said = make("p", { class: "sg-said", role: "alert" });
  const head = make("div", { class: "sg-library-head" }, title, field("search", "text", "library_search"), favourites, trash, order, selection.pill, filter, emptyTrash, said);
  const form = make("form", { class: "sg-library-form", oninput: askSoon, onsubmit: (event) => event.preventDefault() }, head, more);
  const dialog = make("dialog", { class: "sg-works", tabindex: "-1", "aria-label": text("library_title") });

  function field(type, name, key = `library_${name}`) {
    return make("input", { type, name, class: "sg-field", placeholder: text(key), "aria-label": text(key), maxlength: "200" });
  }

  function labelled(input) {
    return make("label", { class: "sg-dated" }, make("span", { text: input.ariaLabel }), input);
  }

  function isOn(button) {
    return button.ariaPressed === "true";
  }

  const readSeed = (value) => (/^\d{1,10}$/.test(value) && Number(value) < 2 ** 32 ? Number(value) : null);

  /** When a day begins here, so many days later, in UTC. */
  function instant(day, later = 0) {
    const start = new Date(`${day}T00:00`);
    start.setDate(start.getDate() + later);
    return start.toISOString().slice(0, 23);
  }

  /** The search that the form asks for, as the server's `Query`. */
  function query() {
    const fields = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]));
    const since = fields.since && instant(fields.since);
    const until = fields.until && instant(fields.until, 1);
    return { ...fields, since, until, seed: readSeed(fields.seed), tag, favourite: isOn(favourites), trashed: isOn(trash) };
  }

  function askSoon() {
    clearTimeout(askTimer);
    askTimer = setTimeout(ask, 80);
  }

  /** Search from the first page. */
  function ask() {
    number += 1;
    after = null;
    find();
  }

  /** Ask for a page; a search is not sent if a newer one waits. */
  function find() {
    isWaiting = true;
    const asked = { ...query(), number, after };
    enqueue(async () => {
      const isWanted = asked.number === number;
      if (isWanted && !(await SeedGrid.ask("search", { asked }))) isWaiting = false; // scrolling on asks again
    });
  }

  function empty() {
    if (confirm(text("library_empty_sure"))) enqueue(() => SeedGrid.ask("empty")).then(ask);
  }

  function askMore() {
    if (!isWaiting && after !== null) find();
  }

  function show(value) {
    if (value.tags) tags.show(value.tags);
    if (value.number !== number) return;
    if (changing > 0) return ask(); // the answer is older than a change
    isWaiting = false;
    after = value.after;
    if (!value.is_more) grid.replaceChildren();
    grid.append(...value.items.map(card));
    sayIfEmpty();
    if (isNear(end)) askMore();
  }

  /** The text of an empty result, and the button to empty the trash. */
  function sayIfEmpty() {
    const isEmpty = !grid.hasChildNodes();
    const { sort, trashed, ...conditions } = query();
    const isWhole = Object.values(conditions).every((each) => each === "" || each === null || each === false);
    nothing.hidden = !isEmpty;
    const whole = trashed ? "library_trash_empty" : "library_nothing";
    nothing.textContent = text(isWhole ? whole : "library_not_found");
    emptyTrash.hidden = !trashed || (isWhole && isEmpty);
  }

  const isNear = (node) => node.getBoundingClientRect().top < innerHeight + 900;

  function card(item) {
    const looks = {
      class: "sg-item-open",
      title: item.prompt,
      "aria-label": text("library_go", { words: item.prompt, seed: item.seed }),
      "data-picture-id": item.id,
      onclick: (event) => selection.takes(item, event) || open(item),
    };
    const number = item.count && make("span", { class: "sg-item-count", "aria-hidden": "true", text: item.count });
    const opener = make("button", looks, image(thumbUrl(item.id), item.lost, { loading: "lazy", draggable: "false" }), item.favourite && icon("star"), number);
    selection.show(opener);
    const label = text(isOn(trash) ? "library_restore" : "library_remove");
    const away = () => change([item], named([item]), !isOn(trash));
    const remove = make("button", { class: "sg-item-remove", title: label, "aria-label": `${label}: ${item.prompt}`, onclick: away }, isOn(trash) ? "↺" : icon("close"));
    const tags = item.tags.slice(0, TAGS).map((tag) => make("bdi", { class: "sg-item-tag", text: tag }));
    const more = item.tags.length > TAGS && make("span", { class: "sg-item-tag-count", text: `+${item.tags.length - TAGS}` });
    const times = item.times > 1 && make("span", { class: "sg-times", text: text("library_times", { number: item.times }) });
    // Tags are first, since long texts are cut at their end.
    const caption = make("p", {}, ...tags, more, times, make("bdi", { text: item.prompt }));
    return Object.assign(make("article", { class: "sg-item" }, opener, remove, caption), { item });
  }

  /** Render an item's card again. */
  function redraw(item) {
    const before = cardOf(item);
    const hadFocus = before?.contains(document.activeElement);
    before?.replaceWith(card(item));
    if (hadFocus) cardOf(item).querySelector("button").focus();
  }

  /** Open a picture in its work. */
  function open({ id }) {
    dialog.close();
    SeedGrid.turn("open", { id });
    scrollTo({ top: 0 });
  }

  /** Send a change after earlier ones; the answer, null if it was refused. */
  async function tell(action, asked) {
    changing += 1;
    const parts = await enqueue(() => SeedGrid.ask(action, { asked }).finally(() => (changing -= 1)));
    const isDone = parts && parts.status?.kind !== "error";
    if (isDone) SeedGrid.lookAgain();
    else ask();
    return isDone ? parts : null;
  }

  /** Trash or restore items; shown at once. */
  function change(items, wanted, trashed) {
    for (const item of items) cardOf(item)?.remove();
    sayIfEmpty();
    const answer = tell("trash", { ...wanted, trashed });
    if (trashed) offerUndo(answer.then((parts) => parts?.library.thrown ?? []));
  }

  /** Offer to take back a deletion with all its pictures, which are known after its answer. */
  async function offerUndo(ids) {
    thrown = ids;
    clearTimeout(undoTimer);
    noteStep({ isThere: () => thrown === ids, undo: putBack });
    const number = (await ids).length;
    if (thrown !== ids || number === 0) return; // another one followed, or it was refused
    removed.textContent = text("library_removed", { number });
    undo.hidden = false;
    undoTimer = setTimeout(forgetUndo, UNDO_MS);
  }

  function forgetUndo() {
    thrown = null;
    undo.hidden = true;
  }

  async function putBack() {
    const pictures = [...(await thrown)];
    forgetUndo();
    while (pictures.length) tell("trash", { pictures: pictures.splice(0, MOST_AT_ONCE), trashed: false });
    ask();
  }

  /** Mark items; shown at once. */
  function mark(items, wanted, ...changed) {
    tell("mark", wanted);
    items.forEach((item, at) => redraw(Object.assign(item, changed[at] ?? changed[0])));
  }

  dialog.addEventListener("scroll", () => isNear(end) && askMore(), { passive: true });
  dialog.append(close, form, tags.node, selection.bar, grid, nothing, end, undo);
  byId("sg-library").append(dialog);
  SeedGrid.askLibrary = () => dialog.open && !dialog.scrollTop && ask();
  shows.library = show;
  return { dialog, ask };
}
