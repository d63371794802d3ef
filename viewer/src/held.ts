// What the profiler's own dumps say was held over time: the line that readings are compared with.

import type { DumpFacts, Life } from "./format";
import { ofBytes, smallSamples, type Range } from "./noise";
import type { Profile } from "./profile";

export interface Held {
  place: number;
  ms: number;
  dump: DumpFacts;
  bytes: number;
}

/** Places of the dumps of a recording: another one's processes may have the same ids. */
export interface Among {
  from: number;
  to: number;
}

/** Dumps that know what is held, of one heap of these lives, each with its moment. */
export function heldOver(profile: Profile, among: Among, lives: Life[], heap: string | null): Held[] {
  const pids = new Set(lives.map((life) => life.pid));
  const held: Held[] = [];
  profile.dumps.forEach(({ facts }, place) => {
    if (place < among.from || place >= among.to) return;
    const space = facts.measures.find(({ view }) => view === "space");
    if (!space || facts.time_ms === null || facts.kind === "allocations-only") return;
    if (!pids.has(facts.pid ?? -1) || facts.heap !== heap) return;
    held.push({ place, ms: facts.time_ms, dump: facts, bytes: space.total });
  });
  return held.sort((a, b) => a.ms - b.ms);
}

/** The heap whose dumps are compared: that of the dump that is shown, else malloc's. */
export function heapOf(profile: Profile, among: Among, lives: Life[], shown: DumpFacts | undefined): string | null {
  const wanted = [shown?.heap ?? null, "libc.malloc"];
  return wanted.find((heap) => heap !== null && heldOver(profile, among, lives, heap).length > 0) ?? shown?.heap ?? null;
}

/** The 95 % interval of all that a dump holds; null where nothing can be said of its error. */
export function rangeOf(profile: Profile, place: number): Range | null {
  const { facts, columns } = profile.dumps[place]!;
  const find = (name: string): number => facts.measures.findIndex(({ view }) => view === name);
  const [space, objects] = [columns[find("space")], columns[find("objects")]];
  if (!space || !objects || !facts.interval || facts.kind === "at-maximum") return null;
  const original = facts.orig_interval || facts.interval;
  const sampling = { interval: Math.max(facts.interval, original), original };
  const sum = { bytes: 0, samples: 0, small: 0 };
  const known = columns[facts.measures.findIndex((measure) => measure.small_of === "space")];
  for (let row = 0; row < space.length; row++) {
    sum.bytes += space[row]!;
    sum.samples += objects[row]!;
    if (known) sum.small += known[row]!;
    else sum.small += space[row] !== 0 ? smallSamples(space[row]!, objects[row]!, sampling) : Math.max(0, objects[row]!);
  }
  return ofBytes(sum, sampling);
}
