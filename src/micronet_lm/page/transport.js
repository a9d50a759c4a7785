// What the page asks, answered by the engine inside the page. A server's page has another one of these.

/** Bytes that the page holds as base64 text. */
function embedded(id) {
  return Uint8Array.from(atob(document.getElementById(id).textContent), (sign) => sign.charCodeAt(0));
}

/** Open the model inside the page. */
async function openTransport() {
  const model = await load(embedded("model"), { wasm: embedded("engine") });
  let session = model.start();
  let read = ""; // what the session has read

  return {
    card: model.card,
    words: model.vocabularySize,

    /** Words for someone who has typed a text: only what was added since the last time is read. */
    async suggest(text, k) {
      if (!text.startsWith(read)) {
        session.close();
        session = model.start();
        read = "";
      }
      session.feed(text.slice(read.length));
      read = text;
      return session.suggest(k);
    },
    async score(text) {
      return model.score(text);
    },
    generate(text, options) {
      return model.generate(text, options);
    },
  };
}
