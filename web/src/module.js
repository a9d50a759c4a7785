// The engine's WebAssembly module: instances, memory, and errors as exceptions.

const KINDS = ["", "file", "format", "argument", "state", "memory", "number", "kernels"];
const MESSAGE = 512; // bytes of mn_error's message
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An error of the engine; its message is one sentence. */
export class MicronetError extends Error {
  constructor(message, kind = "argument") {
    super(message);
    this.name = "MicronetError";
    this.kind = kind;
  }
}

/** Return the bytes at an address: a URL, or the path of a file in Node. */
export async function read(source) {
  const text = String(source);
  const isNode = typeof process === "object" && process.versions?.node;
  if (isNode && !/^(https?|data|blob):/.test(text)) {
    const { readFile } = await import("node:fs/promises");
    try {
      return await readFile(source instanceof URL || text.startsWith("file:") ? new URL(text) : text);
    } catch (error) {
      throw new MicronetError(`${text} cannot be read: ${error.message}`, "file");
    }
  }
  let answer;
  try {
    answer = await fetch(source);
  } catch (error) {
    throw new MicronetError(`${text} cannot be fetched: ${error.message}`, "file");
  }
  if (!answer.ok) throw new MicronetError(`${text} cannot be fetched: the server says ${answer.status}`, "file");
  return new Uint8Array(await answer.arrayBuffer());
}

const compiled = new Map(); // by address, so that many models compile the module once

/** Compile the engine: from bytes, from a module that is compiled already, or from an address. */
export async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  const address = source ?? new URL("../dist/micronet.wasm", import.meta.url);
  const key = String(address);
  if (!compiled.has(key)) compiled.set(key, read(address).then((bytes) => WebAssembly.compile(bytes)));
  try {
    return await compiled.get(key);
  } catch (error) {
    compiled.delete(key);
    throw error;
  }
}

/** One instance of the engine with its own memory, for one model. */
export class Instance {
  #exports;
  #error; // room for an mn_error
  #out; // room for what functions give: two numbers of 8 bytes
  #stopped = "";

  constructor(exports) {
    this.#exports = exports;
    this.#error = this.allocate(4 + MESSAGE);
    this.#out = this.allocate(16);
  }

  static async make(module) {
    const { exports } = await WebAssembly.instantiate(module, {});
    exports.__wasm_call_ctors();
    return new Instance(exports);
  }

  /** Bytes of memory that the instance has taken from the system. */
  get size() {
    return this.#exports.memory.buffer.byteLength;
  }

  bytes(place, size) {
    return new Uint8Array(this.#exports.memory.buffer, place, size);
  }

  view(Type, place, count) {
    return new Type(this.#exports.memory.buffer, place, count);
  }

  allocate(size) {
    const place = this.#exports.malloc(Math.max(size, 1));
    if (!place) throw new MicronetError(`there is no memory for ${size} bytes; close other models`, "memory");
    return place >>> 0;
  }

  free(place) {
    this.#exports.free(place);
  }

  /** Call a function that cannot fail. */
  get(name, ...values) {
    this.#check();
    return this.#exports[name](...values);
  }

  /** Call a function that returns a status; throw its error. */
  call(name, ...values) {
    this.#check();
    let status;
    try {
      status = this.#exports[name](...values, this.#error);
    } catch (error) {
      // Never an error of a model or a text: those are statuses. Whatever it was, memory may be damaged.
      this.#stopped = `the engine stopped in ${name}: ${error.message}; load the model again`;
      throw new MicronetError(this.#stopped, "memory");
    }
    if (status === 0) return;
    const message = this.bytes(this.#error + 4, MESSAGE);
    throw new MicronetError(decoder.decode(message.slice(0, message.indexOf(0))), KINDS[status]);
  }

  /** The same for functions that give an address through a pointer before the error. */
  make(name, ...values) {
    this.call(name, ...values, this.#out);
    return this.view(Uint32Array, this.#out, 1)[0];
  }

  /** The same for functions that give a number of 64 bits. */
  count(name, ...values) {
    this.call(name, ...values, this.#out);
    return Number(this.view(BigUint64Array, this.#out, 1)[0]);
  }

  /** Run something with a copy of bytes in the engine's memory. */
  with(bytes, use) {
    const place = this.allocate(bytes.byteLength);
    try {
      this.bytes(place, bytes.byteLength).set(bytes);
      return use(place, bytes.byteLength);
    } finally {
      this.free(place);
    }
  }

  withText(text, use) {
    if (typeof text !== "string") throw new MicronetError(`a text must be a string, got ${typeof text}`);
    return this.with(encoder.encode(text), use);
  }

  /** Text whose address a function gives, and its size through a pointer at the end. */
  text(name, ...values) {
    const place = this.get(name, ...values, this.#out);
    return place ? decoder.decode(this.bytes(place, this.view(Uint32Array, this.#out, 1)[0])) : undefined;
  }

  /** Words that a function makes, each through `item(text, piece, number)`, all through `whole(words, list)`. */
  words(name, values, item, whole = (words) => words) {
    const list = this.make(name, ...values);
    try {
      const words = Array.from({ length: this.get("mn_words_count", list) }, (_, i) =>
        item(
          this.text("mn_words_text", list, i),
          this.text("mn_words_piece", list, i),
          this.get("mn_words_number", list, i),
        ),
      );
      return whole(words, list);
    } finally {
      this.get("mn_words_free", list);
    }
  }

  /** Bytes of something that is saved. */
  save(name, thing) {
    this.call(name, thing, 0, this.#out);
    const size = this.view(Uint32Array, this.#out, 1)[0];
    const place = this.allocate(size);
    try {
      this.call(name, thing, place, this.#out);
      return this.bytes(place, size).slice();
    } finally {
      this.free(place);
    }
  }

  #check() {
    if (this.#stopped) throw new MicronetError(this.#stopped, "memory");
  }
}
