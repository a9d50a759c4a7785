// Generate: the model writes on; text comes as it is written.

import { el, fact } from "./dom.js";

export function makeGenerate({ transport, tell, hide }) {
  const prompt = el("textarea", { id: "prompt", rows: 2, value: "Return a new", spellcheck: "false" });
  const output = el("div", { class: "story", role: "log", "aria-label": "The text that was written", tabindex: "0" });
  const facts = el("div", { class: "facts" });
  const empty = el("p", { class: "empty" }, "Nothing was written yet. Choose how, then press Generate.");
  let stopping = null;

  const settings = {
    temperature: slider("Temperature", "temperature", 0, 2, 0.05, 0.7, "low: likely words; high: daring ones"),
    top_p: slider("Top p", "top-p", 0.05, 1, 0.05, 0.95, "the share of likely words to choose from"),
    max_tokens: slider("Words", "words", 5, 400, 5, 80, "how many to write"),
  };
  const seed = el("input", { id: "seed", type: "number", min: 0, step: 1, value: "0" });
  const another = el("button", {
    type: "button", class: "quiet", "aria-label": "Another seed",
    onclick: () => { seed.value = Math.floor(Math.random() * 1e6); run(); },
  }, "Another");
  const button = el("button", { type: "submit", class: "main" }, "Generate");

  function slider(name, id, min, max, by, value, about) {
    const input = el("input", { id, type: "range", min, max, step: by });
    input.value = value;
    const shown = el("output", { for: id }, String(value));
    input.addEventListener("input", () => (shown.textContent = input.value));
    const element = el("div", { class: "field" }, el("label", { for: id }, name, " ", shown), input,
      el("span", { class: "hint" }, about));
    return { element, get value() { return Number(input.value); } };
  }

  async function run() {
    stopping?.abort();
    const own = (stopping = new AbortController());
    const began = performance.now();
    let pieces = 0;
    let first = null;
    empty.hidden = true;
    const written = el("span", { class: "written" });
    output.replaceChildren(el("span", { class: "soft" }, prompt.value), written, el("span", { class: "cursor", "aria-hidden": "true" }));
    button.textContent = "Stop";
    try {
      const whole = seed.value.trim() === "" ? null : Number(seed.value);
      await transport.generate(
        {
          prompt: prompt.value,
          max_tokens: settings.max_tokens.value,
          temperature: settings.temperature.value,
          top_p: settings.top_p.value,
          seed: whole,
        },
        (piece) => {
          first ??= performance.now() - began;
          pieces += 1;
          written.append(piece);
        },
        own.signal,
      );
      hide();
    } catch (error) {
      if (error.name !== "AbortError") tell(error.message);
    }
    if (own !== stopping) return;
    stopping = null;
    button.textContent = "Generate";
    output.querySelector(".cursor")?.remove();
    if (!pieces) {
      output.replaceChildren();
      empty.hidden = false;
      return;
    }
    const seconds = (performance.now() - began) / 1000;
    facts.replaceChildren(
      fact(String(pieces), "words written"),
      fact(`${Math.round(1000 * seconds)} ms`, "in all"),
      fact(`${first.toFixed(0)} ms`, "to the first word"),
      fact(String(Math.round(pieces / seconds)), "words per second"),
    );
  }

  const form = el("form", {
    class: "wishes",
    onsubmit: (event) => {
      event.preventDefault();
      if (stopping) stopping.abort();
      else run();
    },
  },
  el("div", { class: "field wide" }, el("label", { for: "prompt" }, "Begin with"), prompt),
  settings.temperature.element, settings.top_p.element, settings.max_tokens.element,
  el("div", { class: "field" }, el("label", { for: "seed" }, "Seed"),
    el("div", { class: "row" }, seed, another),
    el("span", { class: "hint" }, "the same seed writes the same text; none: another each time")),
  el("div", { class: "field wide row" }, button));

  prompt.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });

  return {
    element: el("section", { "aria-labelledby": "generate-title" },
      el("h1", { id: "generate-title" }, "Generate"),
      el("p", { class: "lead" }, "The model writes on in the manner of the texts that it was made from. It knows no facts."),
      form, empty, output, facts),
  };
}
