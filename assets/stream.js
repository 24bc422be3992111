/* How a run goes: one answer of the server that comes line by line. When the connection breaks off,
   it is taken up again; a newer page state ends it, and so does a server that is gone (away.js). */
SeedGrid.stream = (() => {
  const PAUSE_MS = 2000;
  let current = null;

  /** Listen to the news of a page state; without one, listen no more. */
  async function stream(state) {
    current?.abort();
    current = state ? new AbortController() : null;
    const signal = current?.signal;
    while (signal && !signal.aborted && !(await listen(state, signal))) {
      if (signal.aborted) return;
      SeedGrid.shows.status({ epoch: state.epoch, key: "status_unreachable", kind: "going", data: {} });
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      if (SeedGrid.isAway()) return; // the page opens anew
    }
    if (signal && !signal.aborted) settle(state);
  }

  /** Read to the end; false when the connection broke off before. */
  async function listen(state, signal) {
    try {
      const headers = { "Content-Type": "application/json" };
      const answer = await fetch("seedgrid/follow", { method: "POST", headers, signal, body: JSON.stringify(state) });
      if (!answer.ok) return answer.status < 429; // from there on (too often, in trouble) it is asked again
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return true;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) if (part.startsWith("data: ")) SeedGrid.tell(JSON.parse(part.slice(6)));
      }
    } catch {
      return false;
    }
  }

  /** A server that was started again knows nothing of the run: then nobody works any more. */
  function settle(state) {
    const stage = SeedGrid.stageNow();
    if (!stage.busy || stage.epoch !== state.epoch) return;
    SeedGrid.shows.stage({ ...stage, busy: false });
    SeedGrid.shows.status({ epoch: state.epoch, key: "status_interrupted", kind: "note", data: {} });
  }

  return stream;
})();
