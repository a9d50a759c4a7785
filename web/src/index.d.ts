/** What kind of error: the names of the statuses in micronet.h. */
export type ErrorKind = "file" | "format" | "argument" | "state" | "memory" | "number" | "kernels";

/** An error of the engine; its message is one sentence. */
export class MicronetError extends Error {
  readonly kind: ErrorKind;
}

export interface Candidate {
  readonly word: string;
  readonly probability: number;
}

/** Words for someone who types. */
export type Suggestions = Candidate[] & {
  /** The word that is being typed, empty where the next one begins: a picked word takes its place. */
  readonly replaces: string;
};

export interface ScoredToken {
  /** The token as the model knows it: `<unk>` for words that it does not. */
  readonly word: string;
  /** What it adds to the text, its space included. */
  readonly piece: string;
  /** Natural logarithm; NaN for the first token. */
  readonly logProbability: number;
}

export interface Scores {
  readonly tokens: readonly ScoredToken[];
  readonly logProbability: number;
  readonly perplexity: number;
  /** How many scored tokens are `<unk>`. */
  readonly unknown: number;
}

export interface GenerateOptions {
  /** 50 where it is left out. */
  maxTokens?: number;
  /** 1; with 0 always the likeliest word. */
  temperature?: number;
  /** 0, all words. */
  topK?: number;
  /** 1, all words. */
  topP?: number;
  /** 0; the same seed gives the same words, as in Python. */
  seed?: number;
}

export interface LoadOptions {
  /** The engine, where it is not found beside the package: its bytes, a compiled module, or an address. */
  wasm?: BufferSource | WebAssembly.Module | URL | string;
}

/** Open a packed model: its bytes, a URL, or in Node the path of a file. */
export function load(source: BufferSource | URL | string, options?: LoadOptions): Promise<Model>;

/** A packed model, with an engine of its own. */
export class Model implements Disposable {
  private constructor();
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly card: Readonly<Record<string, unknown>>;
  readonly vocabularySize: number;
  /** Bytes of memory that the model and its sessions have taken. */
  readonly memory: number;
  topK(text: string, k?: number): Candidate[];
  complete(text: string, prefix: string, k?: number): Candidate[];
  suggest(text: string, k?: number): Suggestions;
  score(text: string): Scores;
  generate(text?: string, options?: GenerateOptions): AsyncGenerator<string, void, void>;
  start(): Session;
  restore(saved: Uint8Array): Session;
  startIds(): IdSession;
  word(id: number): string | undefined;
  find(word: string): number | undefined;
  close(): void;
  [Symbol.dispose](): void;
}

/** A text that is read piece by piece and can be asked at any time. */
export class Session implements Disposable {
  private constructor();
  readonly tokens: number;
  feed(text: string): void;
  settle(): void;
  topK(k?: number): Candidate[];
  complete(prefix: string, k?: number): Candidate[];
  suggest(k?: number): Suggestions;
  generate(options?: GenerateOptions): AsyncGenerator<string, void, void>;
  fork(): Session;
  save(): Uint8Array;
  restore(saved: Uint8Array): void;
  close(): void;
  [Symbol.dispose](): void;
}

/** A session by word ids. */
export class IdSession implements Disposable {
  private constructor();
  feed(ids: Iterable<number>): void;
  logDistribution(): Float32Array;
  close(): void;
  [Symbol.dispose](): void;
}
