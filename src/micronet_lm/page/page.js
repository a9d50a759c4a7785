// The page: suggestions while typing, the coloured text, writing on, the card. `el`, `count`, `percent` and `picked`
// are those of the server's page.

const SUGGESTIONS = 3;
const READ_AFTER = 150; // milliseconds without a key until the text is coloured
const part = (id) => document.getElementById(id);

function complain(error) {
  part("problem").textContent = error.message;
  part("problem").hidden = false;
}

/** Run something that may fail; its error is a sentence on the page, until the reader does something else. */
async function careful(work, asked = true) {
  try {
    if (asked) part("problem").hidden = true;
    return await work();
  } catch (error) {
    complain(error);
  }
}

async function suggest(transport) {
  const text = part("text").value;
  const found = await transport.suggest(text, SUGGESTIONS);
  const buttons = found.map(({ word, probability }) => {
    const button = el("button", { type: "button", title: percent(probability) }, word, " ");
    button.append(el("small", {}, percent(probability)));
    button.addEventListener("click", () => take(transport, button.dataset));
    Object.assign(button.dataset, { word, replaces: found.replaces });
    return button;
  });
  part("suggestions").replaceChildren(...buttons);
}

function take(transport, { word, replaces }) {
  part("text").value = `${picked(part("text").value, word, replaces)} `;
  part("text").focus();
  changed(transport);
}

// Green for what was expected, red for what was not: one unit is a factor of ten.
function colour(logProbability) {
  if (Number.isNaN(logProbability)) return "transparent";
  const surprise = Math.min(-logProbability / Math.LN10 / 5, 1);
  return `hsl(${120 * (1 - surprise)} 70% 50% / ${0.25 + 0.25 * surprise})`;
}

async function colourText(transport) {
  const text = part("text").value;
  const { tokens, perplexity, unknown } = await transport.score(text);
  const spans = tokens.map(({ word, piece, logProbability }) => {
    const span = el("span", {}, piece);
    span.style.background = colour(logProbability);
    span.title = Number.isNaN(logProbability) ? "the first word" : percent(Math.exp(logProbability));
    if (word === "<unk>") {
      span.className = "unknown";
      span.title += ", a word that the model does not know";
    }
    return span;
  });
  part("reading").replaceChildren(...spans);
  part("summary").textContent =
    tokens.length > 1 ? `perplexity ${perplexity.toFixed(1)}, ${unknown} of ${tokens.length - 1} words unknown` : "";
}

let waiting;
function changed(transport) {
  careful(() => suggest(transport));
  clearTimeout(waiting);
  waiting = setTimeout(() => careful(() => colourText(transport), false), READ_AFTER);
}

async function writeOn(transport) {
  const button = part("write");
  button.disabled = true;
  const options = {
    maxTokens: Number(part("words").value),
    temperature: Number(part("temperature").value),
    seed: Number(part("seed").value),
  };
  try {
    for await (const piece of transport.generate(part("text").value, options)) part("text").value += piece;
  } finally {
    button.disabled = false;
    changed(transport);
  }
}

function showCard({ card, words }) {
  const rows = [["words", count(words)], ...Object.entries(card)].map(([name, value]) => {
    const shown = typeof value === "string" ? value : JSON.stringify(value);
    return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, shown));
  });
  part("card").tBodies[0].replaceChildren(...rows);
}

async function begin() {
  const begun = performance.now();
  const transport = await openTransport();
  showCard(transport);
  part("text").addEventListener("input", () => changed(transport));
  part("text").addEventListener("keydown", (event) => {
    const first = part("suggestions").firstElementChild;
    if (event.key !== "Tab" || event.shiftKey || !first) return;
    event.preventDefault();
    take(transport, first.dataset);
  });
  part("write").addEventListener("click", () => careful(() => writeOn(transport)));
  await suggest(transport);
  part("state").textContent = `Ready after ${Math.round(performance.now() - begun)} ms.`;
  document.documentElement.dataset.ready = performance.now().toFixed(0);
}

begin().catch(complain);
