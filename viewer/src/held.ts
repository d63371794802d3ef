// Unreleased bytes over time from the profiler's dumps, for comparison with readings.

import type { DumpFacts, Life } from "./format";
import { ofBytes, smallSamples, type Range } from "./noise";
import type { Profile } from "./profile";

export interface UnreleasedDump {
  place: number;
  ms: number;
  dump: DumpFacts;
  bytes: number;
}

/** Range of the dumps of a recording; `to` is exclusive. Other recordings can have the same process IDs. */
export interface DumpRange {
  from: number;
  to: number;
}

/** Returns the dumps with unreleased bytes of one heap of these processes, in chronological order. */
export function unreleasedDumps(profile: Profile, range: DumpRange, lives: Life[], heap: string | null): UnreleasedDump[] {
  const pids = new Set(lives.map((life) => life.pid));
  const unreleased: UnreleasedDump[] = [];
  profile.dumps.forEach(({ facts }, place) => {
    if (place < range.from || place >= range.to) return;
    const space = facts.measures.find(({ view }) => view === "space");
    if (!space || facts.time_ms === null || facts.kind === "allocations-only") return;
    if (!pids.has(facts.pid ?? -1) || facts.heap !== heap) return;
    unreleased.push({ place, ms: facts.time_ms, dump: facts, bytes: space.total });
  });
  return unreleased.sort((a, b) => a.ms - b.ms);
}

/** Returns the heap to compare: that of the shown dump, otherwise the one of malloc. */
export function heapOf(profile: Profile, range: DumpRange, lives: Life[], shown: DumpFacts | undefined): string | null {
  const wanted = [shown?.heap ?? null, "libc.malloc"];
  return wanted.find((heap) => heap !== null && unreleasedDumps(profile, range, lives, heap).length > 0) ?? shown?.heap ?? null;
}

/** Returns the 95% confidence interval of the unreleased bytes of a dump; null if its error is unknown. */
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
