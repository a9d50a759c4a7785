// What the tests share: the shipped model, and cases that tests/web/test_web.py writes with the native engine.
import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";

export const DEMO = new URL("../../src/micronet_lm/models/demo.safetensors", import.meta.url);
export const demo = readFileSync(DEMO);
export const hash = (numbers) =>
  createHash("sha256").update(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)).digest("hex");

/** Models with what the scalar kernels and Python say of them; none where the tests run by themselves. */
export const cases = process.env.MICRONET_CASES ? JSON.parse(readFileSync(process.env.MICRONET_CASES, "utf8")) : [];
