// Self and total sums by key, such as function or library. A callstack counts only once for a key, even
// if the key recurs in it.

import type { Keys } from "./keys";
import type { Profile } from "./profile";
import type { Selection } from "./select";
import type { Column } from "./values";

export interface Sums {
  self: Float64Array;
  total: Float64Array;
}

/** Returns the sums of a column by key. */
export function sumsByKey(profile: Profile, selection: Selection, keys: Keys, column: Column): Sums {
  const { count, end, frame } = profile.nodes;
  const { hidden, shown } = selection;
  const self = new Float64Array(keys.count);
  const total = new Float64Array(keys.count);
  const open = new Int32Array(keys.count);
  const stack: number[] = [];
  for (let node = 1; node < count; node++) {
    if (column.total[node] === 0 && column.self[node] === 0) continue;
    while (stack.length > 0 && end[stack[stack.length - 1]!]! <= node) {
      open[keys.ofFrame[frame[stack.pop()!]!]!]! -= 1;
    }
    const own = column.self[node]!;
    const at = shown[node]!;
    if (own !== 0 && at !== 0) self[keys.ofFrame[frame[at]!]!]! += own;
    if (hidden[node]) continue;
    const key = keys.ofFrame[frame[node]!]!;
    if (open[key] === 0) total[key]! += column.total[node]!;
    open[key]! += 1;
    stack.push(node);
  }
  return { self, total };
}

/** Returns the self values of a column by key. */
export function selfByKey(profile: Profile, selection: Selection, keys: Keys, column: Column): Float64Array {
  const { count, frame } = profile.nodes;
  const { shown } = selection;
  const self = new Float64Array(keys.count);
  for (let node = 1; node < count; node++) {
    const own = column.self[node]!;
    const at = shown[node]!;
    if (own !== 0 && at !== 0) self[keys.ofFrame[frame[at]!]!]! += own;
  }
  return self;
}

/** Returns the sum of a column over callstacks with a shown, matching frame. Each callstack counts once. */
export function matchedSum(
  profile: Profile,
  selection: Selection,
  frameHits: Uint8Array,
  column: Column,
): number {
  const { count, end, frame } = profile.nodes;
  const { hidden } = selection;
  let sum = 0;
  for (let node = 1; node < count; ) {
    if (!hidden[node] && frameHits[frame[node]!]) {
      sum += column.total[node]!;
      node = end[node]!;
    } else {
      node += 1;
    }
  }
  return sum;
}

/** Converts matches of functions or libraries to matches of frames. */
export function hitsByFrame(profile: Profile, hits: Uint8Array, library: boolean): Uint8Array {
  const { count, function: functionOf } = profile.frames;
  const { library: libraryOf } = profile.functions;
  const byFrame = new Uint8Array(count);
  for (let frame = 0; frame < count; frame++) {
    const id = functionOf[frame]!;
    byFrame[frame] = hits[library ? libraryOf[id]! : id]!;
  }
  return byFrame;
}
