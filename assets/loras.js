/* The LoRAs in the models panel. What is chosen stands in the prompt, `<lora:foxes:0.8>`, as in other
   tools: it can be read, changed and sent on there. Loaded with the panel. Knows no model. */
import { SeedGrid } from "./base.js";

const { make, text } = SeedGrid;
const TAG = / ?<lora:([^:<>\n]+)(?::([^:<>\n]+))?>/gi;
const MOST = 4;
const say = (key, data) => text(`models_${key}`, data);

const field = () => SeedGrid.inputOf("sg-prompt");
const prompt = () => field()?.value ?? "";

const write = (words) => SeedGrid.write(field(), words);

const isOf = (name, tag) => tag.trim().toLowerCase() === name.toLowerCase();

/** The scale of a LoRA in the prompt; null if it is not there. */
function scaleOf(name) {
  const found = [...prompt().matchAll(TAG)].find((tag) => isOf(name, tag[1]));
  return found ? (found[2] ?? "1").trim() : null;
}

const without = (name) => prompt().replace(TAG, (tag, named) => (isOf(name, named) ? "" : tag)).trim();
const put = (name, scale) => write(`${without(name)} <lora:${name}:${scale}>`.trim());

/** Insert words before the tags at the end. */
function putWords(words) {
  const at = prompt().search(TAG);
  const [said, tags] = at < 0 ? [prompt(), ""] : [prompt().slice(0, at), prompt().slice(at)];
  write([said.trim(), words].filter(Boolean).join(", ") + tags);
}

function scaleField(item, changed) {
  const label = say("lora_scale", { name: item.id });
  const input = make("input", { type: "number", class: "sg-models-scale", min: -MOST, max: MOST, step: 0.1, value: scaleOf(item.id) ?? "1", "data-key": `scale ${item.id}`, "aria-label": label, title: label });
  input.addEventListener("change", () => {
    const scale = Math.min(MOST, Math.max(-MOST, Number(input.value)));
    input.value = input.value === "" || Number.isNaN(scale) ? "1" : String(scale);
    if (scaleOf(item.id) !== null) put(item.id, input.value);
    changed();
  });
  return make("span", { class: "sg-models-scaled" }, make("span", { "aria-hidden": "true", text: say("lora_scale_short") }), input);
}

function chips(item, changed) {
  if (!item.words.length) return null;
  const box = make("div", { class: "sg-models-words" }, make("span", { text: say("lora_words") }));
  const has = SeedGrid.bare(prompt().replace(TAG, ""));
  for (const words of item.words) {
    const isThere = has.includes(SeedGrid.bare(words));
    const label = say("lora_put", { words });
    const use = () => (isThere || putWords(words), changed());
    box.append(make("button", { class: "sg-models-chip", "data-key": `words ${item.id} ${words}`, "aria-pressed": String(isThere), "aria-label": label, title: label, text: words, onclick: use }));
  }
  return box;
}

/** One row for each LoRA; `tools` are the panel's helpers. */
export const loraRows = (items, tools) => {
  SeedGrid.triggerWords = () => items.filter(({ id }) => scaleOf(id) !== null).flatMap((item) => item.words);
  return items.map((item) => {
    const isUsed = scaleOf(item.id) !== null;
    const scale = scaleField(item, tools.changed);
    const key = isUsed ? "lora_out" : "use";
    const turn = () => (isUsed ? write(without(item.id)) : put(item.id, scale.querySelector("input").value), tools.changed());
    const use = tools.button(key, item.id, turn);
    use.dataset.key = `lora ${item.id}`; // The same key for both labels.
    const facts = [item.made_for || say("lora_any"), tools.size(item.num_bytes), item.licence, item.hub_id];
    const buttons = [scale, use, item.deletable && tools.remove && tools.button("delete", item.id, () => tools.remove(item), "sg-models-danger")];
    const made = tools.row(item.id, facts, isUsed ? [tools.badge(say("in_use"), "used")] : [], buttons.filter(Boolean));
    const words = chips(item, tools.changed);
    if (words) made.querySelector(".sg-models-text").append(words);
    return made;
  });
};
