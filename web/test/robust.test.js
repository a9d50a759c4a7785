// Hostile files, and memory that stays flat.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { load, MicronetError } from "../src/index.js";
import { cases, demo } from "./support.js";

/** Open spoiled bytes and use the model; whatever it says is a sentence, and nothing traps. */
async function tried(bytes) {
  try {
    const model = await load(bytes);
    const session = model.startIds();
    session.feed([0, 1, 0]);
    session.logDistribution();
    return "used";
  } catch (error) {
    assert.ok(error instanceof MicronetError, String(error));
    assert.match(error.message, /^[^\n]{10,}$/);
    assert.doesNotMatch(error.message, /the engine stopped/);
    return "refused";
  }
}

const small = cases.find(({ name }) => name === "hostile");

test("truncated files are refused in a sentence", async () => {
  const whole = small ? readFileSync(small.path) : demo;
  const step = Math.max(1, Math.floor(whole.length / 300));
  for (let size = 0; size < whole.length; size += step) assert.equal(await tried(whole.subarray(0, size)), "refused");
});

test("spoiled bytes are refused or do no harm", async () => {
  const whole = small ? readFileSync(small.path) : demo;
  const count = small ? 1500 : 40;
  for (let i = 0; i < count; ++i) {
    const spoiled = Uint8Array.from(whole);
    spoiled[Math.floor((i / count) * whole.length)] ^= 1 << (i * 5) % 8;
    await tried(spoiled);
  }
});

test("sizes that no memory has are refused", async () => {
  const text = new TextDecoder("latin1").decode(demo);
  for (const [from, to] of [["\\\"heads\\\":", "\\\"heads\\\":2147483647"], ["\\\"context\\\":", "\\\"context\\\":2147483647"]]) {
    const at = text.indexOf(from);
    assert.ok(at > 0);
    const end = text.slice(at + from.length).search(/[,}]/) + at + from.length;
    const header = text.slice(8, at) + to + text.slice(end);
    const length = Number(new DataView(demo.buffer, demo.byteOffset).getBigUint64(0, true));
    const bytes = new Uint8Array(8 + header.length);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(length + header.length + 8 - text.length), true);
    for (let i = 0; i < header.length; ++i) bytes[8 + i] = header.charCodeAt(i);
    assert.equal(await tried(bytes), "refused");
  }
});

test("memory stays flat over 10,000 sessions", async () => {
  const model = await load(demo);
  const use = () => {
    const session = model.start();
    session.feed("Return a new ");
    const copy = session.fork();
    copy.close();
    session.close();
  };
  for (let i = 0; i < 100; ++i) use();
  const before = model.memory;
  for (let i = 0; i < 10000; ++i) use();
  assert.equal(model.memory, before);
});

test("errors leave no memory behind", async () => {
  const model = await load(demo);
  const wrong = () => assert.throws(() => model.restore(new Uint8Array(100000)));
  for (let i = 0; i < 50; ++i) wrong();
  const before = model.memory;
  for (let i = 0; i < 2000; ++i) wrong();
  assert.equal(model.memory, before);
});
