/* The card grid: any number of cards in a grid, of which only those near the window are in the page. A
   card's node is kept while it is near, so that its picture is fetched once. Knows no library. */
import { SeedGrid } from "./base.js";

export const cardGrid = (makeCard) => {
  const { make } = SeedGrid;
  const MARGIN_ROWS = 4;
  const node = make("div", { class: "sg-card-grid" });
  const nodes = new Map(); // of the items that are in the page
  let items = [];
  let isPlanned = false;

  /** How many cards stand in a row, and how far one row is from the next. */
  function measure() {
    const style = getComputedStyle(node);
    const columns = Math.max(1, style.gridTemplateColumns.split(" ").length);
    const card = node.firstElementChild?.getBoundingClientRect();
    const height = card?.height || node.clientWidth / columns + 40;
    return { columns, row: height + parseFloat(style.rowGap) };
  }

  function draw() {
    isPlanned = false;
    const { columns, row } = measure();
    const rows = Math.ceil(items.length / columns);
    const top = node.getBoundingClientRect().top;
    const within = (at) => Math.min(Math.max(at, 0), rows);
    const first = within(Math.floor(-top / row) - MARGIN_ROWS);
    const last = within(Math.ceil((innerHeight - top) / row) + MARGIN_ROWS);
    place(items.slice(first * columns, last * columns));
    node.style.paddingTop = `${first * row}px`;
    node.style.paddingBottom = `${(rows - last) * row}px`;
  }

  /** Put these items into the page, in order; what stands right is not touched. */
  function place(wanted) {
    const near = new Set(wanted);
    for (const [item, card] of nodes) {
      if (near.has(item)) continue;
      card.remove();
      nodes.delete(item);
    }
    let next = node.firstElementChild;
    for (const item of wanted) {
      const card = nodes.get(item) ?? makeCard(item);
      nodes.set(item, card);
      if (card === next) next = next.nextElementSibling;
      else node.insertBefore(card, next);
    }
  }

  const placeOf = (wanted) => items.findIndex((item) => item.id === wanted.id);

  function plan() {
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(draw);
  }

  addEventListener("scroll", plan, { passive: true });
  new ResizeObserver(plan).observe(node);

  return {
    node,
    /** Show these items, and nothing else. */
    set(wanted) {
      items = [...wanted];
      draw();
      if (items.length) draw(); // now a card can be measured
    },
    append(more) {
      items.push(...more);
      draw();
    },
    /** Take an item out; gives its place, for `insert`. */
    remove(item) {
      const at = placeOf(item);
      if (at >= 0) items.splice(at, 1);
      draw();
      return at;
    },
    insert(item, at) {
      items.splice(at, 0, item);
      draw();
    },
    /** Change what an item says, and make its card again. */
    redraw(item, changed) {
      const here = items[placeOf(item)];
      if (!here) return;
      Object.assign(here, changed);
      const card = nodes.get(here);
      const hadFocus = card?.contains(document.activeElement);
      card?.remove();
      nodes.delete(here);
      draw();
      if (hadFocus) nodes.get(here)?.querySelector("button").focus();
    },
    get items() {
      return items;
    },
    get size() {
      return items.length;
    },
  };
};
