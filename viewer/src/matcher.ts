// Matches patterns with names. Literals are matched immediately. Regular expressions run in a worker with
// a timeout, because a link can contain one that never ends.

import type { Pattern } from "./filter";

/** Timeout of a regular expression in ms. */
const REGEX_TIMEOUT_MS = 2000;

/** Source of the worker; it cannot use definitions of this module. */
const WORKER_SOURCE = `"use strict";
let lists = [];
onmessage = ({ data }) => {
  if (data.lists) { lists = data.lists; return; }
  const regex = new RegExp(data.source, data.flags);
  const names = lists[data.list];
  const hits = new Uint8Array(names.length);
  for (let i = 0; i < names.length; i++) if (regex.test(names[i])) hits[i] = 1;
  postMessage({ id: data.id, hits }, [hits.buffer]);
};`;

export class PatternError extends Error {}

/** Lists of names by ID, and a cache of their matches. */
export class Matcher {
  private lower: (string[] | null)[] = [null, null];
  private readonly cache = new Map<string, Uint8Array>();
  private worker: Worker | null = null;
  private next = 0;

  constructor(
    /** Names of functions by ID; then paths of libraries by ID. */
    private readonly names: string[],
    private readonly libraries: string[],
  ) {}

  /** Returns one byte per function or library: 1 if it matches. */
  async match(pattern: Pattern): Promise<Uint8Array> {
    const known = this.matchNow(pattern);
    if (known) return known;
    const hits = await this.search(pattern);
    this.remember(pattern, hits);
    return hits;
  }

  /** Returns matches that are available immediately: of literals and cached patterns. */
  matchNow(pattern: Pattern): Uint8Array | null {
    const known = this.cache.get(pattern.source);
    if (known) return known;
    if (pattern.literal === null) return null;
    const list = pattern.library ? 1 : 0;
    const names = (this.lower[list] ??= this.list(list).map((name) => name.toLowerCase()));
    const hits = new Uint8Array(names.length);
    for (let i = 0; i < names.length; i++) if (names[i]!.includes(pattern.literal)) hits[i] = 1;
    this.remember(pattern, hits);
    return hits;
  }

  private list(list: number): string[] {
    return list === 1 ? this.libraries : this.names;
  }

  private remember(pattern: Pattern, hits: Uint8Array): void {
    if (this.cache.size > 64) this.cache.clear();
    this.cache.set(pattern.source, hits);
  }

  private search(pattern: Pattern): Promise<Uint8Array> {
    const worker = this.startedWorker();
    const id = this.next++;
    const { source, flags } = pattern.regex!;
    return new Promise((resolve, reject) => {
      const done = (): void => {
        clearTimeout(timer);
        worker.removeEventListener("message", answer);
        worker.removeEventListener("error", failed);
      };
      const stop = (reason: string): void => {
        done();
        worker.terminate();
        if (this.worker === worker) this.worker = null;
        reject(new PatternError(reason));
      };
      const answer = (event: MessageEvent<{ id: number; hits: Uint8Array }>): void => {
        if (event.data.id !== id) return;
        done();
        resolve(event.data.hits);
      };
      const failed = (): void => stop("the browser cannot run the regular expression");
      const timer = setTimeout(() => stop(`the regular expression took longer than ${REGEX_TIMEOUT_MS / 1000} s; simplify it`), REGEX_TIMEOUT_MS);
      worker.addEventListener("message", answer);
      worker.addEventListener("error", failed);
      worker.postMessage({ id, source, flags, list: pattern.library ? 1 : 0 });
    });
  }

  private startedWorker(): Worker {
    if (this.worker) return this.worker;
    let worker: Worker;
    try {
      const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
      worker = new Worker(url);
      URL.revokeObjectURL(url);
    } catch {
      throw new PatternError("this browser does not support workers, which regular expressions need; use plain text");
    }
    worker.postMessage({ lists: [this.names, this.libraries] });
    this.worker = worker;
    return worker;
  }
}
