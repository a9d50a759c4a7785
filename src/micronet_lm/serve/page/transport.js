// How the page reaches a model. This is the only module that knows of a server; a page that runs the
// engine itself replaces it by a module with the same interface:
//
//   connect(onState) -> transport     onState("ready" | "lost", sentence) tells of the connection
//
//   transport.models()                -> Promise of names, the default first
//   transport.choose(name)            answers come from this model from now on
//   transport.suggest(text, k)        -> Promise of {words: [{word, probability}], replaces, ms}:
//                                        `replaces` is the end of the text whose place a word takes
//   transport.explain(text)           -> Promise of {words: [{piece, known, log_probability,
//                                        without_cache, share, cache, voters: [{place, part}],
//                                        expected: [{word, probability}]}], tokens, unknown,
//                                        perplexity, perplexity_without_cache, bits_per_byte or null}
//   transport.generate(wish, onPiece, signal)
//                                     wish: {prompt, max_tokens, temperature, top_p, top_k, seed};
//                                     calls onPiece(text) as text is written -> Promise of its end
//   transport.card()                  -> Promise of the model's card (GET /card)
//   transport.useKey(key)             a server's key, where one is needed
//
// Every Promise may be rejected with a Refused, whose message is a sentence for people.

export class Refused extends Error {
  constructor(sentence, status = 0) {
    super(sentence);
    this.status = status;
  }
}

const LOST = "The server does not answer. This page tries again by itself.";
const KEY = "micronet-key";

export function connect(onState) {
  let model = null;
  let key = sessionStorage.getItem(KEY);
  const typing = socketFor(onState, () => ({ model, key }));

  async function ask(path, body, signal) {
    const headers = { "content-type": "application/json" };
    if (key) headers.authorization = `Bearer ${key}`;
    let reply;
    try {
      const way = body ? { method: "POST", body: JSON.stringify({ ...body, model }) } : {};
      reply = await fetch(path, { ...way, headers, signal });
    } catch (error) {
      throw failed(error);
    }
    if (reply.ok) return reply;
    const told = await reply.json().catch(() => null);
    throw new Refused(told?.error?.message ?? `The server refused this (${reply.status}).`, reply.status);
  }

  // What to throw when the browser could not send a request, or not receive the whole answer.
  function failed(error) {
    if (error instanceof Refused || error.name === "AbortError") return error;
    onState("lost", LOST);
    typing.retry();
    return new Refused(LOST);
  }

  async function asked(path, body) {
    const reply = await ask(path, body);
    return reply.json().catch((error) => { throw failed(error); });
  }

  return {
    async models() {
      return (await asked("/v1/models")).data.map((one) => one.id);
    },
    choose(name) {
      model = name;
      typing.restart();
    },
    suggest: (text, k) => typing.suggest(text, k),
    explain: (text) => asked("/v1/explain", { text }),
    card: () => asked(`/card${model ? `?model=${encodeURIComponent(model)}` : ""}`),
    async generate(wish, onPiece, signal) {
      const reply = await ask("/v1/completions", { ...wish, stream: true }, signal);
      try {
        for await (const event of events(reply.body)) {
          if (event.error) throw new Refused(event.error.message);
          for (const choice of event.choices) if (choice.text) onPiece(choice.text);
        }
      } catch (error) {
        throw failed(error);
      }
    },
    useKey(given) {
      key = given;
      sessionStorage.setItem(KEY, given);
      typing.restart();
    },
  };
}

// The events of a stream, as objects.
async function* events(body) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    held += decoder.decode(value, { stream: true });
    const lines = held.split("\n\n");
    held = lines.pop();
    for (const line of lines) {
      const data = line.replace(/^data: /, "");
      if (data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

// A WebSocket that answers keystrokes and comes back when it was lost. Only the newest text is asked
// for: while an answer is on its way, texts in between are left out.
function socketFor(onState, chosen) {
  let socket = null;
  let last = []; // characters of the text that the server has
  let number = 0;
  let waiting = null; // {id, began, resolve, reject}
  let next = null; // the newest question that was not sent yet
  let pause = 250;
  let timer = 0;

  function open() {
    clearTimeout(timer);
    const { model, key } = chosen();
    const place = new URL("/v1/type", location.href);
    place.protocol = place.protocol.replace("http", "ws");
    if (model) place.searchParams.set("model", model);
    const ways = ["micronet"];
    if (key) ways.push(`key.${btoa(key).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")}`);
    const own = (socket = new WebSocket(place, ways));
    last = [];
    own.onopen = () => {
      onState("ready", "");
      if (waiting) {
        next ??= waiting; // the answer was lost with the connection
        waiting = null;
      }
      send();
    };
    own.onmessage = (event) => {
      if (own !== socket) return;
      pause = 250; // not when it opens: a refusal comes after that
      answered(JSON.parse(event.data));
    };
    own.onclose = (event) => {
      if (own !== socket) return;
      socket = null;
      onState("lost", event.reason || LOST);
      timer = setTimeout(open, pause);
      pause = Math.min(4000, pause * 2);
    };
  }

  function answered(answer) {
    if (!waiting || answer.id !== waiting.id) return;
    const { resolve, reject, began } = waiting;
    waiting = null;
    if (answer.error) reject(new Refused(answer.error));
    else resolve({ words: answer.words, replaces: answer.replaces, model_ms: answer.ms, ms: performance.now() - began });
    send();
  }

  function send() {
    if (!next || waiting || socket?.readyState !== WebSocket.OPEN) return;
    waiting = { ...next, id: ++number, began: performance.now() };
    next = null;
    const now = Array.from(waiting.text); // whole characters, as the server counts them
    let keep = 0;
    while (keep < last.length && keep < now.length && last[keep] === now[keep]) keep += 1;
    last = now;
    socket.send(JSON.stringify({ id: waiting.id, keep, text: now.slice(keep).join(""), k: waiting.k }));
  }

  open();
  return {
    suggest(text, k) {
      next?.resolve(null); // somebody typed on: nobody waits for that one
      return new Promise((resolve, reject) => {
        next = { text, k, resolve, reject };
        send();
      });
    },
    retry() {
      if (socket?.readyState === WebSocket.OPEN) socket.close();
    },
    restart() {
      const old = socket;
      socket = null;
      old?.close();
      open();
    },
  };
}
