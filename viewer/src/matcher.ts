// Which names match a pattern. Literals are looked for here and now. Regular expressions, which
// may come with a link and may be made to take forever, run in a worker that is ended when it
// takes too long.

import type { Pattern } from "./filter";

/** How long one regular expression may take, in ms. */
const PATIENCE = 2000;

/** Runs in the worker, from its own text: uses nothing from here. */
const WORKER = `"use strict";
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

/** A list of names, one an id, and a cache of what matched. */
export class Matcher {
  private lower: (string[] | null)[] = [null, null];
  private readonly cache = new Map<string, Uint8Array>();
  private worker: Worker | null = null;
  private next = 0;

  constructor(
    /** Names of functions and paths of libraries, by id. */
    private readonly names: string[],
    private readonly libraries: string[],
  ) {}

  /** One byte a function (or library): 1 where it matches. */
  async match(pattern: Pattern): Promise<Uint8Array> {
    const ready = this.ready(pattern);
    if (ready) return ready;
    const hits = await this.search(pattern);
    this.remember(pattern, hits);
    return hits;
  }

  /** What can be said at once: literals, and what was looked for before. */
  ready(pattern: Pattern): Uint8Array | null {
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
    const worker = this.started();
    const id = this.next++;
    const { source, flags } = pattern.regex!;
    return new Promise((resolve, reject) => {
      const done = (): void => {
        clearTimeout(timer);
        worker.removeEventListener("message", answer);
        worker.removeEventListener("error", failed);
      };
      const stop = (why: string): void => {
        done();
        worker.terminate();
        if (this.worker === worker) this.worker = null;
        reject(new PatternError(why));
      };
      const answer = (event: MessageEvent<{ id: number; hits: Uint8Array }>): void => {
        if (event.data.id !== id) return;
        done();
        resolve(event.data.hits);
      };
      const failed = (): void => stop("the browser cannot run the regular expression");
      const timer = setTimeout(() => stop(`the regular expression took longer than ${PATIENCE / 1000} s; simplify it`), PATIENCE);
      worker.addEventListener("message", answer);
      worker.addEventListener("error", failed);
      worker.postMessage({ id, source, flags, list: pattern.library ? 1 : 0 });
    });
  }

  private started(): Worker {
    if (this.worker) return this.worker;
    let worker: Worker;
    try {
      const url = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
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
