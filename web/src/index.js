// Packed language models in browsers and Node: see README.md.

import { compile, Instance, MicronetError, read } from "./module.js";

export { MicronetError };

Symbol.dispose ??= Symbol("Symbol.dispose"); // for `using`, where the platform lacks it

// Sessions that nobody holds any more are freed. A model holds its instance, and goes with it.
const forgotten = new FinalizationRegistry(({ instance, free, place }) => instance.get(free, place));

const candidate = (word, _, probability) => ({ word, probability });
const settings = { maxTokens: 50, temperature: 1, topK: 0, topP: 1, seed: 0 };
const PATIENCE = 12; // milliseconds of work until others have their turn

function checkCount(name, value, least) {
  if (!Number.isInteger(value) || value < least || value > 0x7fffffff)
    throw new MicronetError(`${name} must be a whole number of ${least} or more, got ${value}`);
  return value;
}

function checkNumber(name, value) {
  if (typeof value !== "number" || Number.isNaN(value)) throw new MicronetError(`${name} must be a number, got ${value}`);
  return value;
}

/** Open a packed model: its bytes, or where they are. */
export async function load(source, { wasm } = {}) {
  const isBytes = source instanceof ArrayBuffer || ArrayBuffer.isView(source);
  const [module, given] = await Promise.all([compile(wasm), isBytes ? source : read(source)]);
  const bytes = ArrayBuffer.isView(given)
    ? new Uint8Array(given.buffer, given.byteOffset, given.byteLength)
    : new Uint8Array(given);
  return new Model(await Instance.make(module), bytes);
}

/** A packed model. */
export class Model {
  #instance;
  #place;

  /** Use `load`. */
  constructor(instance, bytes) {
    this.#instance = instance;
    const file = instance.allocate(bytes.byteLength); // stays: the words are read from it
    instance.bytes(file, bytes.byteLength).set(bytes);
    this.#place = instance.withText("auto\0", (kernels) =>
      instance.make("mn_model_open_bytes", file, bytes.byteLength, kernels),
    );
    this.metadata = JSON.parse(instance.text("mn_model_metadata", this.#place));
    this.card = this.metadata.card;
    this.vocabularySize = instance.get("mn_model_vocabulary_size", this.#place);
  }

  /** Bytes of memory that the model and its sessions have taken. */
  get memory() {
    return this.#open.size;
  }

  get #open() {
    if (!this.#instance) throw new MicronetError("the model is closed; load it again", "state");
    return this.#instance;
  }

  /** The k likeliest next words after a text. */
  topK(text, k = 5) {
    return this.#after(text, (session) => session.topK(k));
  }

  /** Those that begin with a prefix, in small letters or capitals. */
  complete(text, prefix, k = 5) {
    return this.#after(text, (session) => session.complete(prefix, k));
  }

  /** The k likeliest words for someone who has typed a text; `replaces` is the end of it that a pick replaces. */
  suggest(text, k = 3) {
    const session = this.start();
    try {
      session.feed(text);
      return session.suggest(k);
    } finally {
      session.close();
    }
  }

  /** Every token of a text with its log-probability; NaN for the first, which nothing predicts. */
  score(text) {
    const instance = this.#open;
    const tokens = instance.withText(text, (place, size) =>
      instance.words("mn_model_score_text", [this.#place, place, size, 1], (word, piece, logProbability) => ({
        word,
        piece,
        logProbability,
      })),
    );
    const scored = tokens.slice(1);
    const logProbability = scored.reduce((sum, token) => sum + token.logProbability, 0);
    return {
      tokens,
      logProbability,
      perplexity: Math.exp(-logProbability / scored.length),
      unknown: scored.filter(({ word }) => word === "<unk>").length,
    };
  }

  /** Write on after a text; the same seed gives the same words, as in Python. */
  async *generate(text = "", options = {}) {
    const session = this.start();
    try {
      session.feed(text);
      if (!session.tokens) session.feed("\n"); // after nothing, what follows a line's end
      yield* session.generate(options);
    } finally {
      session.close();
    }
  }

  /** Begin a text that is read piece by piece. */
  start() {
    const instance = this.#open;
    return new Session(instance, this.#place, instance.make("mn_text_start", this.#place));
  }

  /** Return a session that was saved, here or by Python. */
  restore(saved) {
    const instance = this.#open;
    return instance.with(saved, (place, size) =>
      new Session(instance, this.#place, instance.make("mn_text_restore", this.#place, place, size)),
    );
  }

  /** A session by word ids, for those who have their own. */
  startIds() {
    const instance = this.#open;
    return new IdSession(instance, this.#place, instance.make("mn_session_start", this.#place), this.vocabularySize);
  }

  /** The word of an id, and the id of a word; undefined where there is none. */
  word(id) {
    return this.#open.text("mn_model_word", this.#place, checkCount("id", id, 0));
  }
  find(word) {
    const instance = this.#open;
    const id = instance.withText(word, (place, size) => instance.get("mn_model_find", this.#place, place, size));
    return id < 0 ? undefined : id;
  }

  /** Give the memory back; sessions end with their model. */
  close() {
    this.#instance = undefined; // the instance has nothing but this model
  }
  [Symbol.dispose]() {
    this.close();
  }

  #read(text) {
    const instance = this.#open;
    return instance.withText(text, (place, size) =>
      new Session(instance, this.#place, instance.make("mn_text_read", this.#place, place, size)),
    );
  }

  #after(text, ask) {
    const session = this.#read(text);
    try {
      return ask(session);
    } finally {
      session.close();
    }
  }
}

/** A text that is read piece by piece and can be asked at any time. */
export class Session {
  #instance;
  #model;
  #place;

  /** Use `Model.start`. */
  constructor(instance, model, place) {
    [this.#instance, this.#model, this.#place] = [instance, model, place];
    forgotten.register(this, { instance, free: "mn_text_free", place }, this);
  }

  get #text() {
    if (!this.#place) throw new MicronetError("the session is closed; start another", "state");
    return this.#place;
  }

  /** How many tokens were read. */
  get tokens() {
    return this.#instance.count("mn_text_tokens", this.#text);
  }

  /** Read more text: letters, words or pages. */
  feed(text) {
    const place = this.#text;
    this.#instance.withText(text, (from, size) => this.#instance.call("mn_text_feed", place, from, size));
  }

  /** Take the last word for whole, as white space after it would. */
  settle() {
    this.#instance.call("mn_text_settle", this.#text);
  }

  topK(k = 5) {
    return this.#instance.words("mn_text_next", [this.#text, checkCount("k", k, 1)], candidate);
  }

  complete(prefix, k = 5) {
    const place = this.#text;
    return this.#instance.withText(prefix, (from, size) =>
      this.#instance.words("mn_text_complete", [place, from, size, checkCount("k", k, 1)], candidate),
    );
  }

  suggest(k = 3) {
    return this.#instance.words("mn_text_suggest", [this.#text, checkCount("k", k, 1)], candidate, (words, list) =>
      Object.assign(words, { replaces: this.#instance.text("mn_words_replaces", list) }),
    );
  }

  /** Choose word after word and read each; what comes are pieces of text with their spaces. */
  async *generate(options = {}) {
    const { maxTokens, temperature, topK, topP, seed } = { ...settings, ...options };
    checkCount("maxTokens", maxTokens, 0);
    checkCount("topK", topK, 0);
    if (!Number.isSafeInteger(seed) || seed < 0) throw new MicronetError(`seed must be a whole number of 0 or more, got ${seed}`);
    const chosen = [checkNumber("temperature", temperature), topK, checkNumber("topP", topP)];
    this.#instance.call("mn_text_seed", this.#text, BigInt(seed));
    let begun = performance.now();
    for (let i = 0; i < maxTokens; ++i) {
      const [piece] = this.#instance.words("mn_text_write", [this.#text, ...chosen], (text) => text);
      yield piece;
      if (performance.now() - begun < PATIENCE) continue;
      await new Promise((resume) => setTimeout(resume));
      begun = performance.now();
    }
  }

  /** A second session that has read the same. */
  fork() {
    return new Session(this.#instance, this.#model, this.#instance.make("mn_text_fork", this.#text));
  }

  /** All of it as bytes, for `restore` of the same model. */
  save() {
    return this.#instance.save("mn_text_save", this.#text);
  }

  /** Go back to what was saved. */
  restore(saved) {
    const before = this.#text;
    this.#place = this.#instance.with(saved, (place, size) =>
      this.#instance.make("mn_text_restore", this.#model, place, size),
    );
    forgotten.unregister(this);
    forgotten.register(this, { instance: this.#instance, free: "mn_text_free", place: this.#place }, this);
    this.#instance.get("mn_text_free", before);
  }

  close() {
    if (!this.#place) return;
    forgotten.unregister(this);
    this.#instance.get("mn_text_free", this.#place);
    this.#place = 0;
  }
  [Symbol.dispose]() {
    this.close();
  }
}

/** A session by word ids; the numbers of the engine as they are. */
export class IdSession {
  #instance;
  #model;
  #place;
  #words;

  constructor(instance, model, place, words) {
    [this.#instance, this.#model, this.#place, this.#words] = [instance, model, place, words];
    forgotten.register(this, { instance, free: "mn_session_free", place }, this);
  }

  feed(ids) {
    const numbers = Int32Array.from(ids);
    this.#instance.with(new Uint8Array(numbers.buffer), (place) =>
      this.#instance.call("mn_session_feed_many", this.#open, place, numbers.length),
    );
  }

  /** Natural log-probabilities of all words. */
  logDistribution() {
    const place = this.#instance.allocate(4 * this.#words);
    try {
      this.#instance.call("mn_session_log_distribution", this.#open, place);
      return this.#instance.view(Float32Array, place, this.#words).slice();
    } finally {
      this.#instance.free(place);
    }
  }

  get #open() {
    if (!this.#place) throw new MicronetError("the session is closed; start another", "state");
    return this.#place;
  }

  close() {
    if (!this.#place) return;
    forgotten.unregister(this);
    this.#instance.get("mn_session_free", this.#place);
    this.#place = 0;
  }
  [Symbol.dispose]() {
    this.close();
  }
}
