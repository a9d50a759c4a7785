// Read: every word of a text, coloured by its surprise or by what the cache gave.

import { count, el, fact, percent } from "./dom.js";

const EXAMPLE =
  "Return a new list of the items in the given order.\n" +
  "The items are sorted by their keys, and the order of equal items does not change.\n" +
  "Return a new list of the eggs in the given python.\n" +
  "The eggs are sorted by their spam, and the order of dead eggs does not change.";
const STEPS = [1, 3, 6, 9, 12]; // bits at which the colour changes
const GAINS = [0.1, 0.5, 1.5]; // bits that the cache gave or took

const bits = (logarithm) => -logarithm / Math.LN2;
const step = (bounds, value) => bounds.filter((bound) => value >= bound).length;

export function makeRead({ transport, tell, hide }) {
  const text = el("textarea", { id: "passage", rows: 5, placeholder: "Paste a text here." });
  const output = el("div", {
    class: "passage", role: "group", "aria-label": "The words of the text; arrow keys move between them",
  });
  const detail = el("div", { class: "detail", "aria-live": "polite" });
  const facts = el("div", { class: "facts" });
  const legend = el("div", { class: "legend" });
  const cache = el("input", { type: "checkbox", role: "switch", id: "cache" });
  const button = el("button", { type: "button", class: "main", onclick: read }, "Read it");
  const result = el("div", { class: "result", hidden: true },
    facts,
    el("div", { class: "row" },
      el("label", { class: "switch", for: "cache" }, cache, " Show what the cache did"), legend),
    el("div", { class: "two" }, output, detail));
  const empty = el("p", { class: "empty" },
    "Nothing was read yet. Paste a text, or ",
    el("button", { type: "button", class: "link", onclick: () => { text.value = EXAMPLE; read(); } },
      "take this example"), ".");
  let answer = null;
  let spans = [];

  async function read() {
    if (!text.value.trim()) {
      tell("There is no text to read: paste one first.");
      return;
    }
    button.disabled = true;
    button.textContent = "Reading …";
    try {
      answer = await transport.explain(text.value);
      hide();
      show();
    } catch (error) {
      tell(error.message);
    } finally {
      button.disabled = false;
      button.textContent = "Read it";
    }
  }

  function show() {
    result.hidden = false;
    empty.hidden = true;
    spans = answer.words.map((word, place) => {
      const lines = word.piece.match(/\n/g) ?? [];
      const shown = word.piece.replace(/\n/g, "");
      const span = el("span", {
        class: "word", tabindex: place === 0 ? "0" : "-1", "data-place": place,
        role: "button", "aria-label": label(word),
      }, shown.trimStart() || "⏎");
      return { span, space: /^\s/.test(shown), lines };
    });
    output.replaceChildren(...spans.flatMap(({ span, space, lines }) =>
      [space ? " " : "", span, ...lines.map(() => el("br"))]));
    colour();
    facts.replaceChildren(...numbers());
    detail.replaceChildren(el("p", { class: "hint" },
      "Point at a word, or go to it with the arrow keys, to see what was expected there."));
  }

  function numbers() {
    const honest = answer.bits_per_byte; // null where an unknown word has no probability
    return [
      fact(answer.perplexity.toFixed(1), "perplexity"),
      fact(answer.perplexity_without_cache.toFixed(1), "without the cache"),
      fact(count(answer.tokens), "words predicted"),
      fact(count(answer.unknown), "not in the vocabulary"),
      fact(honest === null ? "–" : honest.toFixed(2), honest === null
        ? "bits per byte: not told, unknown words have no spelling" : "bits per byte"),
    ];
  }

  function colour() {
    const shares = cache.checked;
    spans.forEach(({ span }, place) => {
      const word = answer.words[place];
      span.className = "word";
      if (word.log_probability === null) span.classList.add("first");
      else if (shares) {
        const gain = bits(word.without_cache) - bits(word.log_probability);
        const size = step(GAINS, Math.abs(gain));
        if (size) span.classList.add(`${gain > 0 ? "helped" : "hurt"}-${size}`);
      } else span.classList.add(`surprise-${step(STEPS, bits(word.log_probability))}`);
      if (!word.known) span.classList.add("unknown");
    });
    const mark = (name, about) => el("span", { class: `word ${name}` }, about);
    legend.replaceChildren(...(shares
      ? [mark("hurt-2", "cache hurt"), mark("", "no change"), mark("helped-1", "helped"), mark("helped-3", "much")]
      : [mark("surprise-0", "expected"), mark("surprise-2", "3 bits"), mark("surprise-3", "6"),
        mark("surprise-4", "9"), mark("surprise-5", "12 and more")]),
    ...(answer?.unknown ? [mark("unknown", "not known")] : []));
  }

  function label(word) {
    const shown = word.piece.trim() || "line end";
    if (word.log_probability === null) return `${shown}, the first word, only read`;
    return `${shown}, ${bits(word.log_probability).toFixed(1)} bits`;
  }

  function look(place) {
    const word = answer.words[place];
    const shown = word.piece.trim() || "⏎ (line end)";
    for (const { span } of spans) span.classList.remove("voter", "voter-strong", "looked");
    spans[place].span.classList.add("looked");
    const parts = [el("h2", {}, shown)];
    if (word.log_probability === null) {
      parts.push(el("p", {}, "The first word of a text is only read, not predicted."));
    } else {
      const chance = Math.exp(word.log_probability);
      parts.push(el("p", {}, el("b", {}, `${bits(word.log_probability).toFixed(1)} bits`),
        ` of surprise: ${percent(chance)}${word.known ? "" : ", as a word that is not in the vocabulary"}.`));
      parts.push(el("h3", {}, "Expected here"), bars(word.expected, shown));
      parts.push(...votes(word));
    }
    detail.replaceChildren(...parts);
  }

  function bars(expected, shown) {
    const most = Math.max(...expected.map((one) => one.probability), 1e-9);
    return el("ol", { class: "bars" }, ...expected.map((one) => {
      const bar = el("span", { class: "fill" });
      bar.style.width = `${(100 * one.probability) / most}%`;
      return el("li", one.word === shown ? { class: "hit" } : {}, bar,
        el("span", { class: "name" }, one.word), el("span", { class: "value" }, percent(one.probability)));
    }));
  }

  function votes(word) {
    if (!word.share) return [el("p", { class: "hint" }, "The cache is empty at this place.")];
    const gain = bits(word.without_cache) - bits(word.log_probability);
    const said = Math.abs(gain) < 0.05 ? "changed almost nothing" : gain > 0
      ? `saved ${gain.toFixed(1)} bits` : `cost ${(-gain).toFixed(1)} bits`;
    if (cache.checked)
      for (const { place, part } of word.voters)
        if (part >= 0.05) spans[place]?.span.classList.add(part >= 0.3 ? "voter-strong" : "voter");
    return [
      el("h3", {}, "The cache"),
      el("p", {}, `It ${said}. It has ${percent(word.share)} of the say here and gave this word `,
        `${percent(word.cache)} of its votes. Its votes went to these earlier words`,
        cache.checked ? " (outlined):" : ":"),
      el("ul", { class: "votes" }, ...word.voters.filter(({ part }) => part >= 0.005).map(({ place, part }) =>
        el("li", {}, around(place), " ", el("span", { class: "value" }, percent(part))))),
    ];
  }

  // An earlier word with what stood before it.
  function around(place) {
    const piece = (n) => answer.words[n].piece.replace(/\n/g, " ⏎ ");
    const head = [place - 3, place - 2, place - 1].filter((n) => n >= 0).map(piece).join("");
    return el("span", {}, el("span", { class: "soft" }, `…${head}`), el("b", {}, piece(place)));
  }

  const placeOf = (event) => event.target.closest?.(".passage [data-place]")?.dataset.place;
  for (const name of ["mouseover", "focusin", "click"])
    output.addEventListener(name, (event) => {
      const place = placeOf(event);
      if (place !== undefined) look(Number(place));
    });
  output.addEventListener("keydown", (event) => {
    const here = Number(placeOf(event));
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const there = event.key === "Home" ? 0 : event.key === "End" ? spans.length - 1 : here + move;
    if (!Number.isInteger(there) || !spans[there]) return;
    event.preventDefault();
    spans[here].span.tabIndex = -1;
    spans[there].span.tabIndex = 0;
    spans[there].span.focus();
  });
  cache.addEventListener("change", () => {
    if (!answer) return;
    colour();
    const looked = output.querySelector(".looked") ?? output.querySelector('[tabindex="0"]');
    if (detail.querySelector("h2")) look(Number(looked.dataset.place));
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) read();
  });

  return {
    element: el("section", { "aria-labelledby": "read-title" },
      el("h1", { id: "read-title" }, "Read"),
      el("p", { class: "lead" }, "How surprised is the model, word by word, and what did it expect?"),
      el("label", { class: "hidden-label", for: "passage" }, "Text to read"),
      text,
      el("div", { class: "row" }, button, el("span", { class: "hint" }, "or ", el("kbd", {}, "Ctrl"), " ", el("kbd", {}, "Enter"))),
      empty, result),
  };
}
