// The frame of the page: views by the address's hash, the model, the connection and the colours.

import { el } from "./dom.js";
import { connect } from "./transport.js";
import { makeWrite } from "./write.js";
import { makeRead } from "./read.js";
import { makeGenerate } from "./generate.js";
import { makeInside } from "./inside.js";

const notice = document.getElementById("notice");
const dot = document.getElementById("connection");
const view = document.getElementById("view");
const keyForm = document.getElementById("key-form");

const transport = connect((state, sentence) => {
  dot.className = `dot ${state}`;
  dot.firstElementChild.textContent = state === "ready" ? "connected" : "not connected";
  dot.title = dot.firstElementChild.textContent;
  if (state === "ready") {
    if (notice.dataset.kind === "lost") hide();
    if (!started) start();
  } else if (keyForm.hidden) { // a server that waits for its key does answer
    tell(sentence, "lost");
  }
});

let started = false;

function tell(sentence, kind = "refused") {
  notice.textContent = sentence;
  notice.dataset.kind = kind;
  notice.hidden = false;
}

function hide() {
  notice.hidden = true;
  notice.dataset.kind = "";
}

const context = { transport, tell, hide };
const makers = { write: makeWrite, read: makeRead, generate: makeGenerate, inside: makeInside };
let made = {}; // views that were opened, by name: they keep what was typed

function show() {
  const name = location.hash.slice(1) in makers ? location.hash.slice(1) : "write";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (notice.dataset.kind !== "lost") hide();
  made[name] ??= makers[name](context);
  view.replaceChildren(made[name].element);
  document.title = `micronet: ${name}`;
  made[name].shown?.();
}

async function start() {
  try {
    const models = await transport.models();
    started = true;
    keyForm.hidden = true;
    const select = document.getElementById("model");
    select.replaceChildren(...models.map((name) => el("option", { value: name }, name)));
    select.closest("label").hidden = models.length < 2;
    select.onchange = () => {
      transport.choose(select.value);
      const written = made.write;
      made = written ? { write: written } : {};
      show();
    };
    made.inside?.shown?.();
  } catch (error) {
    if (error.status === 401) {
      if (keyForm.hidden) hide();
      else tell("The server did not accept this key: try another one.", "lost");
      keyForm.hidden = false;
      keyForm.querySelector("input").focus();
    } else {
      tell(error.message, "lost");
    }
  }
}

keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  transport.useKey(keyForm.querySelector("input").value);
  start();
});

const THEMES = { system: "◐", light: "☀", dark: "☾" };
const theme = document.getElementById("theme");
function paint(name) {
  document.documentElement.dataset.theme = name;
  theme.textContent = THEMES[name];
  theme.setAttribute("aria-label", `Colours: ${name === "system" ? "as the system" : name}`);
  localStorage.setItem("micronet-theme", name);
}
theme.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  paint(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
});
paint(localStorage.getItem("micronet-theme") in THEMES ? localStorage.getItem("micronet-theme") : "system");

addEventListener("hashchange", () => {
  show();
  view.focus({ preventScroll: true });
});
show();
start();
