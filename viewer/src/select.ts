// What filters make of the call stacks: which callsites count, which are shown. Everything here
// is a column over the nodes of the profile, made in one pass in preorder, so that a filter costs
// milliseconds whatever it says. Views (grow.ts) and tables (functions.ts) build on it.

import type { FilterKind } from "./filter";
import { Kind, type Profile } from "./profile";

/** A filter with what it matches: one byte a frame. */
export interface FrameFilter {
  kind: FilterKind;
  hits: Uint8Array;
}

export interface Selection {
  /** 1 where the node's own values count. */
  kept: Uint8Array;
  /** 1 where the node is not shown: its children stand at its parent, its values too. */
  hidden: Uint8Array;
  /** The node itself, or its nearest shown ancestor; 0 is the root, which stands for all. */
  shown: Int32Array;
  /** Outermost nodes of the pivot; null without one. */
  pivots: Int32Array | null;
}

export interface SelectOptions {
  filters: FrameFilter[];
  /** Show allocator and runtime frames too. */
  allFrames: boolean;
}

/** Applies filters. Every kind of filter holds at once: SS, SFF and P each want a match. */
export function select(profile: Profile, { filters, allFrames }: SelectOptions): Selection {
  const { parent, frame, count } = profile.nodes;
  const { function: functionOf } = profile.frames;
  const { kind } = profile.functions;
  const kept = new Uint8Array(count);
  const hidden = new Uint8Array(count);
  const shown = new Int32Array(count);

  // Per frame: hidden by default or by HF, and a bit for each filter that wants to know its
  // ancestors. 24 chips at most fit an Int32.
  const hide = new Uint8Array(profile.frames.count);
  if (!allFrames) {
    for (let f = 0; f < hide.length; f++) {
      const what = kind[functionOf[f]!]!;
      if (what === Kind.Allocator || what === Kind.Runtime) hide[f] = 1;
    }
  }
  const bits = new Int32Array(profile.frames.count);
  let wanted = 0;
  let refused = 0;
  let from = 0;
  let below = 0;
  let pivot = 0;
  let bit = 1;
  for (const filter of filters) {
    if (filter.kind === "HF") {
      for (let f = 0; f < hide.length; f++) hide[f]! |= filter.hits[f]!;
      continue;
    }
    for (let f = 0; f < bits.length; f++) if (filter.hits[f]) bits[f]! |= bit;
    if (filter.kind === "HS") refused |= bit;
    else if (filter.kind === "CF") below |= bit;
    else wanted |= bit;
    if (filter.kind === "SFF") from |= bit;
    if (filter.kind === "P") pivot |= bit;
    bit <<= 1;
  }

  // seen: the filters that matched on the way from the root to the node.
  const seen = new Int32Array(count);
  const pivots: number[] = [];
  kept[0] = wanted === 0 ? 1 : 0;
  hidden[0] = 1;
  for (let node = 1; node < count; node++) {
    const f = frame[node]!;
    const up = parent[node]!;
    const before = seen[up]!;
    const now = before | bits[f]!;
    seen[node] = now;
    if ((now & wanted) === wanted && (now & refused) === 0) kept[node] = 1;
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
