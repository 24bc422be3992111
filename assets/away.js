/* The server is away: the page says so in its own words, keeps what was typed (place.js), and opens
   anew as soon as somebody answers. Gradio's own message, in English alone, is not shown. */
(() => {
  const { make, text } = SeedGrid;
  const PAUSE_MS = 1500;
  const ours = `${new URL(".", location.href).pathname}gradio_api/`;
  const ask = window.fetch.bind(window);
  let banner = null;

  window.fetch = async (target, options) => {
    try {
      return await ask(target, options);
    } catch (error) {
      if (isOurs(target) && error.name === "TypeError") away();
      throw error;
    }
  };

  /** Uploads and events; how a run goes has a message of its own (stream.js). */
  function isOurs(target) {
    const address = new URL(target.url ?? target, location.href);
    return address.origin === location.origin && address.pathname.startsWith(ours);
  }

  let isLeaving = false;
  addEventListener("beforeunload", () => (isLeaving = true));

  async function away() {
    if (banner || isLeaving) return;
    banner = make("div", { id: "sg-away", role: "alert" }, make("strong", { text: text("away_title") }), make("span", { text: text("away_text") }));
    document.body.append(banner);
    document.documentElement.classList.add("sg-is-away");
    while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    location.reload();
  }

  const answers = () => ask("seedgrid/assets/icon.svg", { cache: "no-store" }).then((answer) => answer.ok, () => false);
})();
