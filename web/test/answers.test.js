// The same numbers and words as the native engine and Python.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { load, MicronetError } from "../src/index.js";
import { cases, demo, DEMO, hash } from "./support.js";

for (const { name, path, ids, hashes } of cases) {
  test(`${name}: every bit of ${ids.length} distributions is that of the scalar kernels`, async () => {
    const session = (await load(path)).startIds();
    ids.forEach((id, place) => {
      session.feed([id]);
      assert.equal(hash(session.logDistribution()), hashes[place], `position ${place}`);
    });
  });
}

for (const { name, path, texts } of cases.filter(({ texts }) => texts)) {
  test(`${name}: words, scores and generated text are Python's`, async () => {
    const model = await load(path);
    const near = (found, expected) => {
      assert.deepEqual(found.map(({ word }) => word), expected.map(([word]) => word));
      found.forEach(({ probability }, i) => assert.ok(Math.abs(probability - expected[i][1]) < 1e-5));
    };
    for (const { text, topK, suggest, replaces, complete, score, generate } of texts) {
      near(model.topK(text, 5), topK);
      near(model.suggest(text, 3), suggest);
      assert.equal(model.suggest(text, 3).replaces, replaces);
      near(model.complete(text, "re", 4), complete);
      assert.ok(Math.abs(model.score(text).logProbability - score) < 1e-3 * Math.max(1, Math.abs(score)));
      let written = "";
      for await (const piece of model.generate(text, { maxTokens: 15, temperature: 0.7, seed: 3 })) written += piece;
      assert.equal(written, generate);
    }
  });
}

test("a session reads on, forks, saves and restores", async () => {
  const model = await load(DEMO);
  const session = model.start();
  session.feed("Return a ne");
  const before = session.suggest();
  const saved = session.save();
  const copy = session.fork();
  copy.feed("w dictionary");
  assert.notEqual(copy.tokens, session.tokens);
  assert.deepEqual(session.suggest(), before);
  assert.deepEqual(model.restore(saved).suggest(), before);
  copy.restore(saved);
  assert.deepEqual(copy.suggest(), before);
  copy.close();
  copy.close();
  assert.throws(() => copy.topK(), { name: "MicronetError", message: "the session is closed; start another" });
});

test("errors are sentences, and the model answers after them", async () => {
  const model = await load(demo);
  const expected = model.topK("Return a new");
  const wrong = [
    () => model.topK("a", 0),
    () => model.topK(7),
    () => model.topK("a", 1.5),
    () => model.restore(new Uint8Array(9)),
    () => model.start().topK(),
    () => model.startIds().feed([-1]),
    () => model.startIds().logDistribution(),
  ];
  for (const call of wrong) assert.throws(call, (e) => e instanceof MicronetError && /^[^\n]{10,}$/.test(e.message));
  await assert.rejects(model.generate("a", { temperature: -1 }).next(), /temperature must be above 0/);
  await assert.rejects(load("/nowhere/model"), { kind: "file" });
  assert.deepEqual(model.topK("Return a new"), expected);
  model.close();
  assert.throws(() => model.topK("a"), /the model is closed/);
});

test("it works in a worker", async () => {
  const script = `
    import { parentPort, workerData } from "node:worker_threads";
    import { load } from ${JSON.stringify(new URL("../src/index.js", import.meta.url).href)};
    parentPort.postMessage((await load(workerData)).topK("Return a new"));`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`), { workerData: demo });
  const found = await new Promise((done, fail) => worker.once("message", done).once("error", fail));
  assert.deepEqual(found, (await load(demo)).topK("Return a new"));
});
