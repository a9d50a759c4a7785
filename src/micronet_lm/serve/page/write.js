// Write: suggestions above the caret for each keystroke.

import { el, fact, milliseconds, percent } from "./dom.js";
import { caretPlace } from "./caret.js";
import { picked } from "./picking.js";

const SLOTS = 3;

export function makeWrite({ transport, tell, hide }) {
  const text = el("textarea", {
    id: "text",
    rows: 6,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    "aria-describedby": "how",
    placeholder: "Begin to write, for example: Return a new",
  });
  const slots = el("div", { class: "slots", role: "group", "aria-label": "Suggestions", hidden: true });
  const facts = el("div", { class: "facts", "aria-live": "off" });
  let words = []; // what is suggested now
  let replaces = ""; // the end of the text whose place a picked word takes
  let shut = false; // Escape was pressed: Tab moves on, as everywhere
  let keys = 0;
  let pasted = 0;
  let times = { ms: null, model_ms: null };

  const before = () => text.value.slice(0, text.selectionStart);

  async function ask() {
    const asked = before();
    try {
      const answer = await transport.suggest(asked, SLOTS);
      if (!answer) return;
      hide();
      times = answer;
      words = answer.words;
      replaces = answer.replaces;
    } catch (error) {
      words = [];
      tell(error.message);
    }
    show();
  }

  function show() {
    slots.hidden = shut || !words.length || document.activeElement !== text;
    slots.replaceChildren(
      ...words.map((one, place) =>
        el(
          "button",
          {
            type: "button",
            class: "slot",
            tabindex: "-1",
            title: `${percent(one.probability)} (${place ? `Alt+${place + 1}` : "Tab"})`,
            onmousedown: (event) => event.preventDefault(), // the text keeps the caret
            onclick: () => take(place),
          },
          el("span", {}, one.word),
          el("kbd", { "aria-hidden": "true" }, place ? `Alt ${place + 1}` : "Tab"),
        ),
      ),
    );
    const { left, top } = caretPlace(text);
    const most = Math.max(0, text.clientWidth - slots.offsetWidth - 8);
    slots.style.left = `${Math.max(8, Math.min(left - 14, most))}px`;
    slots.style.top = `${top - slots.offsetHeight - 6}px`;
    const length = Math.max(0, text.value.length - pasted);
    const saved = length ? Math.max(0, (length - keys) / length) : 0;
    facts.replaceChildren(
      fact(times.ms === null ? "–" : milliseconds(times.ms), "from key to answer"),
      fact(times.model_ms === null ? "–" : milliseconds(times.model_ms), "of it for the model"),
      fact(`${keys} for ${length}`, "keys for characters"),
      fact(percent(saved), "keystrokes saved", { id: "saved" }),
    );
  }

  function take(place) {
    const one = words[place];
    if (!one) return;
    const head = picked(before(), one.word, replaces);
    const tail = text.value.slice(text.selectionEnd);
    text.value = `${head} ${tail.replace(/^ /, "")}`;
    text.selectionStart = text.selectionEnd = head.length + 1;
    keys += 1;
    shut = false;
    text.focus();
    ask();
  }

  text.addEventListener("beforeinput", (event) => {
    if (event.inputType === "insertFromPaste" || event.inputType === "insertFromDrop")
      pasted += (event.data ?? event.dataTransfer?.getData("text") ?? "").length;
    else keys += Math.max(1, event.data?.length ?? 1);
  });
  text.addEventListener("input", () => {
    shut = false;
    if (!text.value) keys = pasted = 0;
    ask();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      shut = true;
      show();
    } else if (event.key === "Tab" && !event.shiftKey && !slots.hidden) {
      event.preventDefault();
      take(0);
    } else if (event.altKey && event.key >= "1" && event.key <= String(SLOTS) && !slots.hidden) {
      event.preventDefault();
      take(Number(event.key) - 1);
    }
  });
  for (const name of ["click", "keyup"])
    text.addEventListener(name, (event) => /^(Arrow|Home|End|Page)/.test(event.key ?? "Arrow") && ask());
  text.addEventListener("scroll", show);
  text.addEventListener("focus", show);
  text.addEventListener("blur", () => (slots.hidden = true));

  const clear = el(
    "button",
    {
      type: "button",
      class: "quiet",
      onclick: () => {
        text.value = "";
        keys = pasted = 0;
        text.focus();
        ask();
      },
    },
    "Clear",
  );
  const element = el(
    "section",
    { "aria-labelledby": "write-title" },
    el("h1", { id: "write-title" }, "Write"),
    el("p", { class: "lead" }, "The model suggests the next word, or the rest of the one you have begun."),
    el("label", { class: "hidden-label", for: "text" }, "Your text"),
    el("div", { class: "paper" }, text, slots),
    el(
      "p",
      { id: "how", class: "hint" },
      el("kbd", {}, "Tab"), " takes the first word, ",
      el("kbd", {}, "Alt"), " ", el("kbd", {}, "2"), " and ", el("kbd", {}, "3"), " the others; after ",
      el("kbd", {}, "Esc"), " the Tab key moves on.",
    ),
    facts,
    clear,
  );
  return {
    element,
    shown() {
      text.focus({ preventScroll: true });
      ask();
    },
  };
}
