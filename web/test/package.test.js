// The package as its users have it: addresses, README.md, types, and the module beside it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";
import { load, MicronetError, Model } from "../src/index.js";
import { demo, DEMO } from "./support.js";

const INDEX = new URL("../src/index.js", import.meta.url);
const text = (address) => readFileSync(new URL(address, import.meta.url), "utf8");

test("a model is loaded from a URL, and what the server refuses is a sentence", async () => {
  const server = createServer((request, answer) => {
    if (request.url === "/demo") answer.end(demo);
    else answer.writeHead(404).end();
  });
  await new Promise((begun) => server.listen(0, "127.0.0.1", begun));
  const base = `http://127.0.0.1:${server.address().port}`;
  const expected = (await load(demo)).topK("Return a new");
  assert.deepEqual((await load(`${base}/demo`)).topK("Return a new"), expected);
  assert.deepEqual((await load(new URL("/demo", base))).topK("Return a new"), expected);
  await assert.rejects(load(`${base}/none`), { kind: "file", message: `${base}/none cannot be fetched: the server says 404` });
  server.closeAllConnections();
  await new Promise((ended) => server.close(ended));
  await assert.rejects(load(`${base}/demo`), { kind: "file", message: /cannot be fetched: / });
});

test("the module imports nothing, and has every function that is called", () => {
  const module = new WebAssembly.Module(readFileSync(new URL("../dist/micronet.wasm", import.meta.url)));
  assert.deepEqual(WebAssembly.Module.imports(module), []);
  const has = new Set(WebAssembly.Module.exports(module).map(({ name }) => name));
  const called = [...(text("../src/index.js") + text("../src/module.js")).matchAll(/"(mn_[a-z_]+)"/g)].map(([, name]) => name);
  assert.ok(called.length > 10);
  assert.deepEqual(called.filter((name) => !has.has(name)), []);
});

test("README.md's example runs, and its comments are true", async () => {
  const [, example] = text("../README.md").match(/```js\n([^]*?)```/);
  const source = example
    .replace('"micronet-lm"', JSON.stringify(INDEX.href))
    .replace('"demo.safetensors"', JSON.stringify(DEMO.href))
    .replace(/^using /m, "const "); // Node 20 does not know the word
  assert.notEqual(source, example);
  await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const model = await load(demo);
  const [, word, probability] = example.match(/word: "(\w+)", probability: ([\d.]+)/);
  const [likeliest] = model.topK("Return a new", 3);
  assert.deepEqual([likeliest.word, likeliest.probability.toFixed(3)], [word, probability]);
  assert.equal(model.suggest("Return a ne").replaces, example.match(/\.replaces is "(\w+)"/)[1]);
});

test("the types have the members of the classes, and the kinds of errors are the header's", async () => {
  const types = text("../src/index.d.ts");
  const members = (name) => {
    const [, body] = types.match(new RegExp(`export class ${name} [^{]*\\{\\n([^]*?)\\n\\}`));
    return [...body.matchAll(/^  (?:readonly )?(\w+)[(:]/gm)].map(([, member]) => member).sort();
  };
  const model = await load(demo);
  for (const one of [model, model.start(), model.startIds()]) {
    const there = [...Object.getOwnPropertyNames(Object.getPrototypeOf(one)), ...Object.keys(one)];
    assert.deepEqual(members(one.constructor.name), there.filter((name) => name !== "constructor").sort());
    assert.equal(typeof one[Symbol.dispose], "function");
    assert.match(types, new RegExp(`class ${one.constructor.name} implements Disposable`));
  }
  assert.deepEqual(members("MicronetError"), ["kind"]);
  assert.ok(new MicronetError("") instanceof Error && model instanceof Model);
  const kinds = [...types.match(/type ErrorKind =(.*);/)[1].matchAll(/"(\w+)"/g)].map(([, kind]) => kind);
  const statuses = [...text("../../native/include/micronet.h").matchAll(/MN_ERROR_(\w+) = (\d+)/g)];
  assert.deepEqual(kinds, statuses.map(([, name]) => name.toLowerCase()));
  assert.deepEqual(statuses.map(([, , number]) => Number(number)), kinds.map((_, i) => i + 1));
  assert.deepEqual([...text("../src/module.js").match(/KINDS = \["",(.*)\]/)[1].matchAll(/"(\w+)"/g)].map(([, kind]) => kind), kinds);
});
