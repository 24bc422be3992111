/* Earlier prompts, this browser's own: ArrowUp in the prompt goes back through them as in a terminal,
   and the list under the field can be searched, used and shortened. Nothing of it is sent anywhere. */
(() => {
  const { make, text, byId, icon } = SeedGrid;
  const prompts = SeedGrid.shortList("seedgrid-prompts", 100);
  const { recall } = prompts;
  let at = -1; // how far back ArrowUp has gone; -1 is what was typed
  let typed = "";
  let isWriting = false;
  const input = () => byId("sg-prompt")?.querySelector("textarea, input");

  function keep(texts) {
    prompts.keep(texts);
    draw();
  }

  /** What Generate was pressed with stands first, once. */
  function note() {
    const prompt = input()?.value.trim();
    at = -1;
    if (prompt) keep([prompt, ...recall().filter((each) => each !== prompt)]);
  }

  function write(value) {
    isWriting = true;
    input().value = value;
    input().dispatchEvent(new Event("input", { bubbles: true }));
    input().setSelectionRange(value.length, value.length);
    isWriting = false;
  }

  /** Go back or forward; before the newest one stands what was typed. */
  function go(step) {
    const prompts = recall();
    if (at < 0) typed = input().value;
    const newest = prompts[0] === typed.trim() ? 1 : 0; // what stands there is no earlier one
    const next = at < 0 ? newest : at + step;
    if (next >= prompts.length) return false;
    at = next < newest ? -1 : next;
    write(at < 0 ? typed : prompts[at]);
    return true;
  }

  /** In a prompt of several lines the arrows move in it, until one is on the way back. */
  const isFree = (field) => at >= 0 || field.selectionStart === 0 || field.offsetHeight < 60;
  document.addEventListener("keydown", (event) => {
    const isPlain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.isComposing);
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.target !== input() || !isPlain || !step || (step < 0 && at < 0)) return;
    if (isFree(event.target) && go(step)) event.preventDefault();
  });
  document.addEventListener("input", (event) => {
    if (event.target === input() && !isWriting) at = -1;
  });
  document.addEventListener("click", (event) => event.target.closest?.("#sg-generate") && note(), true);
  document.addEventListener("keydown", (event) => event.key === "Enter" && !event.shiftKey && event.target.closest?.("#sg-prompt, #sg-seeds") && !event.isComposing && note(), true);

  // The list, folded, beneath the words that the model knows.
  const search = make("input", { type: "search", class: "sg-field", maxlength: "200", placeholder: text("history_search"), "aria-label": text("history_search"), oninput: () => draw() });
  const list = make("ul", { class: "sg-history-list", "aria-label": text("history_label") });
  const clear = make("button", { type: "button", class: "sg-history-clear", text: text("history_clear"), onclick: () => (keep([]), SeedGrid.forgetOwn()) });
  const box = make("details", { class: "sg-history" }, make("summary", { text: text("history_label") }), make("div", { class: "sg-history-head" }, search, clear), list);

  function entry(prompt) {
    const use = make("button", { type: "button", class: "sg-history-use", onclick: () => (write(prompt), input().focus()) }, make("bdi", { text: prompt }));
    const forget = make("button", { type: "button", class: "sg-history-forget", "aria-label": text("history_delete", { words: prompt }), onclick: () => keep(recall().filter((each) => each !== prompt)) });
    forget.append(icon("close"));
    return make("li", {}, use, forget);
  }

  function draw() {
    const prompts = recall();
    const wanted = search.value.trim().toLowerCase();
    const found = prompts.filter((each) => each.toLowerCase().includes(wanted));
    box.hidden = prompts.length === 0;
    list.replaceChildren(...(found.length ? found.map(entry) : [make("li", { class: "sg-quiet", text: text("history_none") })]));
  }

  draw();
  /** The list, for the box under the prompt; hidden while there is nothing in it. */
  SeedGrid.history = box;
})();
