// Inside: what the file holds, what it costs, and how it was made.

import { brief, bytes, count, el, fact } from "./dom.js";

const STEPS = {
  // The card has the recipe of the last stage, which may have trained nothing more.
  train: ["Train", (s) => (s.steps > 1 ? `${count(s.steps)} steps, ` : "") + `windows of ${count(s.window)} tokens`],
  distill: ["Distil", (s) => `from a teacher's ${s.top_k ?? ""} likeliest words`],
  prune: ["Prune", (s) => `${Math.round(100 * s.sparsity)} % of the weights removed`],
  cache: ["Cache", (s) => `the last ${count(s.size)} words, share ${Number(s.lam).toFixed(2)}`],
  hebbian: ["Hebbian softmax", () => "rare words move toward their contexts"],
  quantize: ["Quantize", (s) => `${s.bits}-bit weights, ${s.activation_bits ?? s.bits}-bit activations`],
};

export function makeInside({ transport, tell }) {
  const body = el("div", {}, el("p", { class: "empty" }, "Opening the model's card …"));
  let done = false;

  async function load() {
    if (done) return;
    try {
      const card = await transport.card();
      body.replaceChildren(...parts(card));
      done = true;
    } catch (error) {
      tell(error.message);
      body.replaceChildren(el("p", { class: "empty" }, "The card cannot be shown now."));
    }
  }

  function parts(card) {
    const about = card.card;
    const perplexity = Object.entries(about.perplexity ?? {});
    const parameters = Object.values(card.accounting)[0] && about.accounting?.paper?.parameters;
    return [
      el("div", { class: "facts large" },
        fact(bytes(card.file.bytes), "one file, words included"),
        fact(count(card.model.vocabulary), "words"),
        parameters ? fact(brief(parameters), "parameters") : null,
        ...perplexity.map(([split, value]) => fact(value.toFixed(1), `perplexity, ${split}`)),
        fact(`${card.model.layers} × ${card.model.width}`, "layers × width"),
        fact(card.cache ? count(card.cache.size) : "none", "words in the cache")),
      el("div", { class: "cards" }, whereBytesAre(card), costs(card), pipeline(card), shape(card)),
      el("details", {}, el("summary", {}, "The card as it is in the file"),
        el("pre", { tabindex: "0" }, JSON.stringify(about, null, 2))),
    ];
  }

  function whereBytesAre(card) {
    const rows = Object.entries(card.parts).map(([name, size]) => [name, size / 8]);
    rows.push(["words", card.file.vocabulary], ["header and card", card.file.header]);
    if (card.file.spelling) rows.push(["spelling of unknown words", card.file.spelling]);
    return figure("Bytes by part", `of the file's ${count(card.file.bytes)}`,
      rows.sort((one, other) => other[1] - one[1]), bytes);
  }

  function costs(card) {
    const rules = Object.keys(card.accounting);
    if (!rules.length)
      return el("article", {}, el("h2", {}, "Costs by layer"),
        el("p", { class: "empty" }, "The card does not tell how often its bins are used, so the costs are not known."));
    const place = el("div");
    const columns = {
      storage: ["Storage", "32-bit parameters", (layer) => layer.storage],
      operations: ["Operations", "per token", (layer) => layer.operations],
      score: ["Score", "of the challenge", (layer) => layer.storage / 159e6 + layer.operations / 318e6],
    };
    let chosen = { rules: rules[0], column: "storage" };
    function draw() {
      const account = card.accounting[chosen.rules];
      const [, unit, value] = columns[chosen.column];
      const write = chosen.column === "score" ? (number) => number.toFixed(5) : brief;
      const total = chosen.column === "score" ? account.score : account[chosen.column];
      place.replaceChildren(
        el("p", { class: "hint" }, el("b", {}, write(total)), ` ${unit}, in all`),
        bars(account.layers.map((layer) => [layer.name, value(layer)]), write));
    }
    const select = (name, options, key) =>
      el("label", { class: "choice" }, el("span", { class: "hidden-label" }, name),
        el("select", { onchange: (event) => { chosen[key] = event.target.value; draw(); } },
          ...options.map(([value, shown]) => el("option", { value }, shown))));
    draw();
    return el("article", {}, el("h2", {}, "Costs by layer"),
      el("div", { class: "row" },
        select("What", Object.entries(columns).map(([key, [name]]) => [key, name]), "column"),
        select("Rules", rules.map((name) => [name, `rules: ${name}`]), "rules")),
      place);
  }

  function pipeline(card) {
    const { recipe = {}, corpus = {}, made_by: command } = card.card;
    const steps = [["Corpus", [corpus.source, corpus.train_tokens && `${count(corpus.train_tokens)} tokens`, corpus.tokenizer && `tokenizer ${corpus.tokenizer}`].filter(Boolean).join(", ")]];
    for (const [key, [name, told]] of Object.entries(STEPS))
      if (recipe[key]) steps.push([name, told(recipe[key])]);
    if (card.ngrams) steps.push(["N-grams", `a table with a share of ${Number(card.ngrams.share).toFixed(2)}`]);
    if (card.file.spelling) steps.push(["Spelling", "letters of words outside the vocabulary"]);
    steps.push(["Pack", `${bytes(card.file.bytes)} in one file`]);
    return el("article", {}, el("h2", {}, "How it was made"),
      command ? el("p", { class: "hint" }, el("code", {}, command)) : null,
      el("ol", { class: "pipeline" }, ...steps.map(([name, about]) =>
        el("li", {}, el("b", {}, name), el("span", {}, about)))));
  }

  function shape(card) {
    const model = card.model;
    const rows = {
      "attention reaches back": `${model.context} words`,
      "heads": `${model.heads}, keys of ${model.key_width}`,
      "feed-forward width": count(model.ffn_width),
      "bins of the vocabulary": [0, ...model.cutoffs, model.vocabulary].slice(1).map(count).join(" / "),
      "their embedding widths": model.embedding_widths.join(" / "),
      "weights that are not zero": density(card),
      "engine": card.engine,
    };
    return el("article", {}, el("h2", {}, "Shape"),
      el("dl", {}, ...Object.entries(rows).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
  }

  function density(card) {
    const sum = (key) => card.tensors.reduce((total, tensor) => total + tensor[key], 0);
    return `${((100 * sum("nonzeros")) / sum("size")).toFixed(1)} %`;
  }

  function figure(title, about, rows, write) {
    return el("article", {}, el("h2", {}, title), el("p", { class: "hint" }, about), bars(rows, write));
  }

  function bars(rows, write) {
    const most = Math.max(...rows.map(([, value]) => value), 1e-9);
    return el("ul", { class: "bars" }, ...rows.map(([name, value]) => {
      const bar = el("span", { class: "fill" });
      bar.style.width = `${(100 * value) / most}%`;
      return el("li", {}, bar, el("span", { class: "name" }, name), el("span", { class: "value" }, write(value)));
    }));
  }

  return {
    element: el("section", { "aria-labelledby": "inside-title" },
      el("h1", { id: "inside-title" }, "Inside"),
      el("p", { class: "lead" }, "What the file holds, what it costs to store and to run, and how it was made."),
      body),
    shown: load,
  };
}
