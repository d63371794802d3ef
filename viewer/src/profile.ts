// The profile in memory: columns that mirror the program's own model (src/stacks), decoded once
// and never changed. Ids are positions. Node 0 is the root; nodes stand in preorder, so the
// subtree of a node is the range from it to `end[node]`.

import type { DumpFacts, Header } from "./format";

/** What a function is to whoever looks for the memory's owner. */
export const enum Kind {
  Plain = 0,
  Allocator = 1,
  Runtime = 2,
  Java = 3,
}

export interface Functions {
  count: number;
  /** Texts. */
  name: Int32Array;
  system: Int32Array;
  /** Libraries. */
  library: Int32Array;
  kind: Uint8Array;
}

export interface Frames {
  count: number;
  function: Int32Array;
  /** Text. */
  file: Int32Array;
  /** 0 where not known. */
  line: Int32Array;
  inlined: Uint8Array;
}

export interface Nodes {
  count: number;
  parent: Int32Array;
  /** First node behind the subtree. */
  end: Int32Array;
  /** -1 of the root. */
  frame: Int32Array;
}

/** One heap of one process at one moment: self values of the callsites that have any. */
export interface Dump {
  facts: DumpFacts;
  nodes: Int32Array;
  /** One a measure; of 32 bits where its values fit. */
  columns: (Float64Array | Int32Array)[];
}

export interface Library {
  path: string;
  buildId: string;
}

export interface Profile {
  header: Header;
  texts: string[];
  libraries: Library[];
  functions: Functions;
  frames: Frames;
  nodes: Nodes;
  dumps: Dump[];
}

/** The column of a measure by its name, or -1. */
export function measureOf(dump: Dump, name: string): number {
  return dump.facts.measures.findIndex((measure) => measure.name === name);
}

/** Self values of a measure for every node. */
export function dense(profile: Profile, dump: Dump, measure: number): Float64Array {
  const values = new Float64Array(profile.nodes.count);
  const column = dump.columns[measure];
  if (column) {
    for (let i = 0; i < dump.nodes.length; i++) values[dump.nodes[i]!] = column[i]!;
  }
  return values;
}

/** Turns self values into those of whole subtrees, in place. */
export function accumulate(nodes: Nodes, values: Float64Array): Float64Array {
  const { parent } = nodes;
  for (let node = nodes.count - 1; node > 0; node--) values[parent[node]!]! += values[node]!;
  return values;
}
