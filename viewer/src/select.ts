// Applies filters to callstacks: which callsites count, and which are shown. The results are columns over
// the nodes, computed in one pass in preorder, so every filter takes milliseconds. Trees (grow.ts) and
// tables (functions.ts) use them.

import type { FilterKind } from "./filter";
import { Kind, type Profile } from "./profile";

/** Filter with its matches: one byte per frame. */
export interface FrameFilter {
  kind: FilterKind;
  hits: Uint8Array;
}

export interface Selection {
  /** 1 if the self values of the node count. */
  kept: Uint8Array;
  /** 1 if the node is not shown; its children and values move to its parent. */
  hidden: Uint8Array;
  /** The node itself, or its nearest shown ancestor; 0 is the root. */
  shown: Int32Array;
  /** Outermost nodes of the pivot; null without a pivot. */
  pivots: Int32Array | null;
}

export interface SelectOptions {
  filters: FrameFilter[];
  /** Whether allocator and runtime frames are shown. */
  allFrames: boolean;
}

/** Applies all filters at once: SS, SFF and P each require a match. */
export function select(profile: Profile, { filters, allFrames }: SelectOptions): Selection {
  const { parent, frame, count } = profile.nodes;
  const { function: functionOf } = profile.frames;
  const { kind } = profile.functions;
  const kept = new Uint8Array(count);
  const hidden = new Uint8Array(count);
  const shown = new Int32Array(count);

  // Per frame: hidden by default or by HF, and a bit for each filter that depends on ancestors.
  // MAX_FILTERS bits fit into an Int32.
  const hide = new Uint8Array(profile.frames.count);
  if (!allFrames) {
    for (let f = 0; f < hide.length; f++) {
      const frameKind = kind[functionOf[f]!]!;
      if (frameKind === Kind.Allocator || frameKind === Kind.Runtime) hide[f] = 1;
    }
  }
  // Filters match what is shown: nearly every callstack has an allocator.
  const unmatched = hide.slice();
  const bits = new Int32Array(profile.frames.count);
  let required = 0;
  let excluded = 0;
  let from = 0;
  let below = 0;
  let pivot = 0;
  let bit = 1;
  for (const filter of filters) {
    if (filter.kind === "HF") {
      for (let f = 0; f < hide.length; f++) hide[f]! |= filter.hits[f]!;
      continue;
    }
    for (let f = 0; f < bits.length; f++) if (filter.hits[f] && !unmatched[f]) bits[f]! |= bit;
    if (filter.kind === "HS") excluded |= bit;
    else if (filter.kind === "CF") below |= bit;
    else required |= bit;
    if (filter.kind === "SFF") from |= bit;
    if (filter.kind === "P") pivot |= bit;
    bit <<= 1;
  }

  // Filters that matched between the root and the node.
  const seen = new Int32Array(count);
  const pivots: number[] = [];
  kept[0] = required === 0 ? 1 : 0;
  hidden[0] = 1;
  for (let node = 1; node < count; node++) {
    const f = frame[node]!;
    const up = parent[node]!;
    const before = seen[up]!;
    const now = before | bits[f]!;
    seen[node] = now;
    if ((now & required) === required && (now & excluded) === 0) kept[node] = 1;
    if (hide[f] || (now & from) !== from || (before & below) !== 0) {
      hidden[node] = 1;
      shown[node] = shown[up]!;
    } else {
      shown[node] = node;
    }
    if (pivot && (now & pivot) === pivot && (before & pivot) !== pivot) pivots.push(node);
  }
  return { kept, hidden, shown, pivots: pivot ? Int32Array.from(pivots) : null };
}
