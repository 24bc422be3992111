/* The undo of the library: gives all of a deletion back at once, and only that. */
SeedGrid.undo = (restore) => {
  const { make, text } = SeedGrid;
  const STAYS_MS = 20_000;
  const AT_ONCE = 2000;
  const node = make("div", { class: "sg-undo", role: "status", hidden: "" });
  let timer = 0;
  let last = null; // the newest deletion: its number, what was asked for, the ids that went

  function hide() {
    node.hidden = true;
    last = null;
  }

  /** Send the ids back; before the answer named them, what was asked for. */
  function takeBack() {
    const { asked, ids, putBack } = last;
    hide();
    if (ids === null) restore(asked);
    else for (let at = 0; at < ids.length; at += AT_ONCE) restore({ pictures: ids.slice(at, at + AT_ONCE) });
    putBack();
  }

  /** Hide it after a while, but not from under a pointer or the focus. */
  function wait() {
    clearTimeout(timer);
    timer = setTimeout(() => (node.matches(":hover, :focus-within") ? wait() : hide()), STAYS_MS);
  }

  return {
    node,
    /** Offer to take back what was just thrown away. */
    offer(number, asked, count, putBack) {
      last = { number, asked, ids: null, putBack };
      node.replaceChildren(
        make("span", { text: text("library_removed", { number: count }) }),
        make("button", { type: "button", text: text("library_undo"), onclick: takeBack }),
      );
      node.hidden = false;
      wait();
    },
    /** Learn which pictures a deletion threw away. */
    learn({ number, thrown }) {
      if (last?.number !== number) return;
      last.ids = thrown;
      node.querySelector("span").textContent = text("library_removed", { number: thrown.length });
    },
  };
};
