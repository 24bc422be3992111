/* The undo of the library: gives all of a deletion back at once, and only that. */
SeedGrid.undo = (restore) => {
  const { make, text } = SeedGrid;
  const STAYS_MS = 20_000;
  const AT_ONCE = 2000;
  const node = make("div", { class: "sg-undo", role: "status", hidden: "" });
  let timer = 0;
  let last = null; // the newest deletion: its number, and the ids that went, once they are known
  let awaited = null; // the number of one that is taken back before its answer has come

  function hide() {
    node.hidden = true;
    last = null;
  }

  function takeBack() {
    const { number, ids, putBack } = last;
    hide();
    if (ids === null) awaited = number;
    else send(ids);
    putBack();
  }

  function send(ids) {
    for (let at = 0; at < ids.length; at += AT_ONCE) restore({ pictures: ids.slice(at, at + AT_ONCE) });
  }

  /** Hide it after a while, but not from under a pointer or the focus. */
  function wait() {
    clearTimeout(timer);
    timer = setTimeout(() => (node.matches(":hover, :focus-within") ? wait() : hide()), STAYS_MS);
  }

  return {
    node,
    /** Offer to take back what was just thrown away. */
    offer(number, count, putBack) {
      last = { number, ids: null, putBack };
      node.replaceChildren(
        make("span", { text: text("library_removed", { number: count }) }),
        make("button", { type: "button", text: text("library_undo"), onclick: takeBack }),
      );
      node.hidden = false;
      wait();
    },
    /** Learn which pictures a deletion threw away. */
    learn({ number, thrown }) {
      if (awaited === number) return void ((awaited = null), send(thrown));
      if (last?.number !== number) return;
      last.ids = thrown;
      node.querySelector("span").textContent = text("library_removed", { number: thrown.length });
    },
  };
};
