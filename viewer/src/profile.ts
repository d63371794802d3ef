// The profile in memory: columns that mirror the model of the program (crates/model/src/stacks). They do
// not change after decoding. IDs are indexes. Node 0 is the root. Nodes are in preorder, so the subtree
// of a node is the range from the node to `end[node]`.

import type { DumpFacts, Header } from "./format";

/** Kind of a function; allocators and runtime frames are hidden by default. */
export const enum Kind {
  Plain = 0,
  Allocator = 1,
  Runtime = 2,
  Java = 3,
}

export interface Functions {
  count: number;
  /** Index of a text. */
  name: Int32Array;
  system: Int32Array;
  /** Index of a library. */
  library: Int32Array;
  kind: Uint8Array;
}

export interface Frames {
  count: number;
  function: Int32Array;
  /** Index of a text. */
  file: Int32Array;
  /** 0 if unknown. */
  line: Int32Array;
  inlined: Uint8Array;
}

export interface Nodes {
  count: number;
  parent: Int32Array;
  /** First node after the subtree. */
  end: Int32Array;
  /** -1 for the root. */
  frame: Int32Array;
}

/** One heap of one process at one time: self values of callsites with values. */
export interface Dump {
  facts: DumpFacts;
  nodes: Int32Array;
  /** One column per measure, with 32-bit integers if the values fit. */
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

/** Returns the column of a measure by name; -1 if there is none. */
export function measureOf(dump: Dump, name: string): number {
  return dump.facts.measures.findIndex((measure) => measure.name === name);
}

/** Returns the self values of a measure for every node. */
export function dense(profile: Profile, dump: Dump, measure: number): Float64Array {
  const values = new Float64Array(profile.nodes.count);
  const column = dump.columns[measure];
  if (column) {
    for (let i = 0; i < dump.nodes.length; i++) values[dump.nodes[i]!] = column[i]!;
  }
  return values;
}

/** Converts self values to sums over subtrees, in place. */
export function accumulate(nodes: Nodes, values: Float64Array): Float64Array {
  const { parent } = nodes;
  for (let node = nodes.count - 1; node > 0; node--) values[parent[node]!]! += values[node]!;
  return values;
}
