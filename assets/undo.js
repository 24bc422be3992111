/* Undo of the library: restores all pictures of one deletion. */
import { SeedGrid } from "./base.js";

export const undoBar = (restore) => {
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
