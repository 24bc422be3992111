/* The server is away: the page says so in its own words, keeps what was typed (place.js), and opens
   anew as soon as somebody answers, once. Gradio's own message, in English alone, is not shown. */
(() => {
  const { make, text } = SeedGrid;
  const PAUSE_MS = 1500;
  const WENT = "seedgrid-went";
  const page = new URL(".", location.href).pathname;
  const ask = window.fetch.bind(window);
  let banner = null;

  window.fetch = async (target, options) => {
    const answer = await ask(target, options).catch((error) => {
      if (isOf(page, target) && error.name === "TypeError") away();
      throw error;
    });
    if (!answer.ok && isOf(`${page}gradio_api/`, target)) refused(answer.status);
    return answer;
  };

  function isOf(path, target) {
    const address = new URL(target.url ?? target, location.href);
    return address.origin === location.origin && address.pathname.startsWith(path);
  }

  /** A server that stands but does not take a question: too many at once, too much, or a fault. */
  function refused(code) {
    SeedGrid.shows.status?.({ key: "status_refused", kind: "error", data: { code } });
  }

  let isLeaving = false;
  addEventListener("beforeunload", () => (isLeaving = true));

  async function away() {
    if (banner || isLeaving) return;
    note(SeedGrid.stageNow?.().busy ? "busy" : "idle");
    banner = make("div", { id: "sg-away", role: "alert" }, make("strong", { text: text("away_title") }), make("span", { text: text("away_text") }));
    document.body.append(banner);
    document.documentElement.classList.add("sg-is-away");
    while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    location.reload();
  }

  /** What the page that opens anew must know: whether a run went on when the server went. */
  function note(value) {
    try {
      const was = sessionStorage.getItem(WENT);
      if (value) sessionStorage.setItem(WENT, value);
      else sessionStorage.removeItem(WENT);
      return was;
    } catch {
      return null; // a browser that keeps nothing is not told
    }
  }

  /** The page stands again. A run that nobody knows any more went with its server, and so did a
      place without a finished picture: it was no wrong address. */
  function back(epoch) {
    const went = note(null);
    setTimeout(() => {
      const said = SeedGrid.statusNow();
      const isLost = said === "place_unknown" ? went : !said && went === "busy" && !SeedGrid.stageNow().busy;
      if (isLost) SeedGrid.shows.status({ epoch, key: "status_interrupted", kind: "note", data: {} });
    });
  }

  const answers = () => ask("seedgrid/assets/icon.svg", { cache: "no-store" }).then((answer) => answer.ok, () => false);

  SeedGrid.away = away;
  SeedGrid.refused = refused;
  SeedGrid.isAway = () => Boolean(banner);
  SeedGrid.back = back;
})();
