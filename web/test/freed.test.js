// Sessions that end without `close`: by `using`, or because nobody holds them any more.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { load } from "../src/index.js";
import { demo } from "./support.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
const turn = () => new Promise((resume) => setTimeout(resume)); // what was collected is freed in a turn of its own

// Apart, so that no variable of a test holds the last session.
const textSession = (model) => model.start().feed("Return a new ");
const idSession = (model) => model.startIds().feed([0, 1, 2]);
const restored = (model) => {
  const session = model.start();
  session.feed("Return a new ");
  session.restore(session.save());
};

for (const [name, use] of Object.entries({ textSession, idSession, restored })) {
  test(`forgotten sessions are freed: ${name}`, async () => {
    const model = await load(demo);
    const forget = async (rounds) => {
      for (let round = 0; round < rounds; ++round) {
        for (let i = 0; i < 50; ++i) use(model);
        collect();
        await turn();
      }
    };
    await forget(3);
    const before = model.memory;
    await forget(20);
    assert.ok(model.memory <= 1.2 * before, `${before} bytes became ${model.memory}`);
  });
}

test("what `using` disposes of is closed", async () => {
  const model = await load(demo);
  const [session, ids] = [model.start(), model.startIds()];
  for (const one of [session, ids]) {
    one[Symbol.dispose]();
    one[Symbol.dispose]();
  }
  assert.throws(() => session.feed("a"), /the session is closed/);
  assert.throws(() => ids.feed([0]), /the session is closed/);
  model[Symbol.dispose]();
  assert.throws(() => model.topK("a"), /the model is closed/);
});
