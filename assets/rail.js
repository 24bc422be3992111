/* The lineage rail: every round of this work as a small grid with the picked pictures ringed, and branches as
   lanes. A click goes to that round. This tab's other works are above and below it, a line each, by time; a click
   opens one again. */
import { SeedGrid, setEnabled, byId, image, inputOf, kept, make, shows, text, thumbUrl, setValue } from "./base.js";

const MOST_PX = 34; // width of the lines
const MOST_WORKS = 20;
const keptWorks = kept("seedgrid-works", () => sessionStorage);
let works = keptWorks.recall() ?? []; // by their last round here, with a picture and the prompt
const list = byId("sg-lineage").firstElementChild;
let current = { epoch: -1, rounds: [] };
let shown = "";

function show(value) {
  if (value.epoch < current.epoch) return;
  current = value;
  note(value);
  setEnabled("sg-back", value.has_parent || Boolean(workBefore()));
  const news = JSON.stringify([value.rounds, value.current, works]);
  if (news === shown) return;
  shown = news;
  // The stage's pictures load before the small ones here.
  Promise.resolve(SeedGrid.settled?.()).then(() => news === shown && draw(value));
}

/** Note the last round of this work, with its picked picture or the first. */
function note({ rounds, current }) {
  const { work } = SeedGrid.state();
  const round = rounds.find(({ id }) => id === current);
  if (!rounds.length) works = keptWorks.keep(works.filter((left) => left.work !== work)); // stopped without a picture
  if (!work || !round) return;
  const { cells, picked } = SeedGrid.stageNow();
  const ringed = round.cells.find(({ id }) => id && id === cells[picked]?.id);
  const cell = ringed ?? round.cells.find((each) => each.picked) ?? round.cells.find(({ id }) => id);
  const left = { work, round: current, picture: cell?.id ?? null, words: rounds[0].words };
  const at = placeOfWork();
  works = (at < 0 ? [...works, left] : works.with(at, left)).slice(-MOST_WORKS);
  keptWorks.keep(works);
}

const placeOfWork = () => works.findIndex(({ work }) => work === SeedGrid.state().work);
const workBefore = () => (placeOfWork() < 0 ? works.at(-1) : works[placeOfWork() - 1]);
const open = ({ round }) => SeedGrid.turn("load", { place: round });

/** Go to the parent's round, or from a first round to the work before. */
const back = () =>
  SeedGrid.turn("back", {}, {}, (parts) => {
    const before = parts?.stage ? null : workBefore();
    return before && ["load", { place: before.round }];
  });

/** Start a new work with an empty prompt. */
async function beginWork() {
  works = keptWorks.keep([]);
  await SeedGrid.turn("load", { start: true });
  setValue(inputOf("sg-prompt"), "");
  inputOf("sg-prompt").focus();
}

/** A folded work; it is removed if its picture was deleted. */
function folded(left) {
  const forget = () => ((works = keptWorks.keep(works.filter((each) => each !== left))), button.parentNode.remove());
  const picture = left.picture && image(thumbUrl(left.picture), false, { loading: "lazy", onerror: forget });
  const looks = { class: "sg-work", "aria-label": text("rail_work", left), title: left.words, "data-work": left.work };
  const button = make("button", { ...looks, onclick: () => open(left) }, picture, make("bdi", { text: left.words }));
  return make("li", {}, button);
}

function draw(value) {
  const lanes = Math.max(0, ...value.rounds.map((round) => round.lane)) + 1;
  const gutter = lanes > 1 ? Math.min(10 + 6 * lanes, MOST_PX) : 0; // within the rail's width
  list.style.setProperty("--sg-gutter", `${gutter}px`);
  list.style.setProperty("--sg-lane", `${gutter / lanes}px`);
  const at = placeOfWork() < 0 ? works.length : placeOfWork();
  const rounds = value.rounds.map((round) => item(round, value.current));
  const rows = [...works.slice(0, at).map(folded), ...rounds, ...works.slice(at + 1).map(folded)];
  rows.forEach((row, index) => (row.style.gridRow = index + 1));
  const had = list.contains(document.activeElement) && document.activeElement.dataset.round;
  list.replaceChildren(...rows, ...(lanes > 1 ? branches(value.rounds, at + 1) : []));
  if (had) list.querySelector(`[data-round="${had}"]`)?.focus();
  ring(SeedGrid.stageNow?.().cells?.[SeedGrid.stageNow().picked]?.id);
  reveal(list.querySelector("[aria-current]"));
}

/** Mark the picked picture of the stage; refined ones are marked already. */
function ring(id) {
  const here = list.querySelector("[aria-current]");
  for (const cell of here?.querySelectorAll("[data-id]") ?? []) cell.classList.toggle("sg-now-picked", cell.dataset.id === id);
}
document.addEventListener("sg-pick", (event) => {
  ring(event.detail);
  if (current.epoch === SeedGrid.stageNow().epoch) note(current);
});

/** Scroll the rail to a round. */
function reveal(round) {
  if (!round) return;
  const [box, frame] = [round.getBoundingClientRect(), list.getBoundingClientRect()];
  if (box.bottom > frame.bottom) list.scrollTop += box.bottom - frame.bottom;
  if (box.top < frame.top) list.scrollTop -= frame.top - box.top;
  if (box.right > frame.right) list.scrollLeft += box.right - frame.right;
  if (box.left < frame.left) list.scrollLeft -= frame.left - box.left;
}

function item(round, current) {
  const plain = round.name.words ?? text(round.name.key, round.name.data);
  const name = round.name.nth ? `${plain} ${round.name.nth}` : plain;
  const cells = round.cells.map((cell) => {
    const marks = [cell.picked && "sg-was-picked", cell.trashed && "sg-is-trashed"].filter(Boolean);
    const attributes = { loading: "lazy", "data-id": cell.id, class: marks.join(" ") };
    return cell.id ? image(thumbUrl(cell.id), cell.lost, attributes) : make("i");
  });
  const looks = {
    class: "sg-round",
    title: round.words,
    "data-round": round.id,
    "aria-label": text("rail_go", { name, words: round.words }),
    "aria-current": round.id === current ? "step" : null,
    onclick: () => SeedGrid.turn("go", { id: round.id }),
  };
  const button = make("button", looks, ...cells);
  button.style.setProperty("--sg-columns", Math.ceil(Math.sqrt(round.cells.length)));
  const row = make("li", { class: "sg-round-row" }, make("span", { class: "sg-round-name", text: name, title: name }), button);
  row.style.setProperty("--sg-to", round.lane);
  return row;
}

/** A line from each round's parent to it, between their rows of the list, whose rounds begin at a row. */
function branches(rounds, first) {
  return rounds.flatMap((round, row) => {
    const parent = rounds.findIndex(({ id }) => id === round.parent);
    if (parent < 0) return [];
    const line = make("li", { class: "sg-branch", "aria-hidden": "true" });
    line.style.gridRow = `${first + parent} / ${first + row}`;
    line.style.setProperty("--sg-from", rounds[parent].lane);
    line.style.setProperty("--sg-to", round.lane);
    return [line];
  });
}

byId("sg-back").addEventListener("click", back);
byId("sg-new").addEventListener("click", beginWork);
SeedGrid.railNow = () => current;
shows.rail = show;
