// Trees of boxes, built on demand: a cell stores its callsites and creates its children when they are
// needed. So a million callsites are cheap while they are narrower than a pixel.
//
// Top-down, a cell is a set of callsites with the same key and the same shown parent. Bottom-up, a cell
// is a set of pairs (source, position): the values of the source, at one of its callers.

import type { Keys } from "./keys";
import type { Profile } from "./profile";
import type { Selection } from "./select";
import type { Column, Shown } from "./values";

export interface Cell {
  /** -1 for the root. */
  readonly key: number;
  readonly parent: Cell | null;
  readonly depth: number;
  /** Values in the shown dump, and in the dump that it is compared with. */
  after: number;
  before: number;
  /** Value for the width. */
  weight: number;
  /** Values without those of the children; valid once the children exist. */
  selfAfter: number;
  selfBefore: number;
  /** Largest first; null until needed. */
  children: Cell[] | null;
  /** Keys of an unbranched chain of callees that this box includes. */
  chain: number[];
  /** Callsites, or sources. */
  nodes: number[];
  /** Bottom-up: the current caller of each source. */
  at: number[] | null;
}

export interface GrowOptions {
  /** Whether a recursive function is one box. */
  foldRecursion: boolean;
  /** Whether boxes with a single child share its box. */
  foldChains: boolean;
}

export type Direction = "top-down" | "bottom-up" | "callers" | "callees";

export class Tree {
  readonly root: Cell;
  /** Index of the child for each key; -1 if there is none yet. */
  private readonly slot: Int32Array;

  constructor(
    private readonly profile: Profile,
    private readonly selection: Selection,
    readonly keys: Keys,
    readonly shown: Shown,
    readonly direction: Direction,
    private readonly options: GrowOptions,
  ) {
    this.slot = new Int32Array(keys.count).fill(-1);
    this.root = newCell(-1, null);
    const pivots = selection.pivots;
    if (direction === "callers" || direction === "callees") {
      for (const node of pivots ?? []) this.addTotals(this.root, node);
    } else {
      this.root.after = shown.after.sum;
      this.root.before = shown.before?.sum ?? 0;
      this.root.weight = shown.weight[0]!;
      this.root.nodes = [0];
    }
  }

  /** Returns the children of a cell, and creates them if necessary. */
  children(cell: Cell): Cell[] {
    return cell.children ?? this.createChildren(cell);
  }

  /** Returns the sum of a column over the callsites of a cell. */
  sum(cell: Cell, column: Column): number {
    if (cell === this.root && this.direction !== "callers" && this.direction !== "callees") {
      return column.sum;
    }
    const values = this.direction === "bottom-up" ? column.self : column.total;
    const nodes = cell === this.root ? (this.selection.pivots ?? []) : cell.nodes;
    let sum = 0;
    for (const node of nodes) sum += values[node]!;
    return sum;
  }

  /** Returns the frame of one callsite of a cell; -1 if there is none. */
  frameAt(cell: Cell): number {
    const node = cell.at ? cell.at[0] : cell.nodes[0];
    return node === undefined ? -1 : this.profile.nodes.frame[node]!;
  }

  /** Finds a cell by the hashes of the keys on its path from the root. */
  find(path: number[]): Cell | null {
    let cell = this.root;
    for (const hash of path) {
      const next = this.children(cell).find((child) => this.keys.hash(child.key) === hash);
      if (!next) return null;
      cell = next;
    }
    return cell;
  }

  private createChildren(cell: Cell): Cell[] {
    const made = this.group(cell);
    if (this.options.foldChains && cell.parent) {
      let children = made;
      for (;;) {
        const only = children[0];
        if (children.length !== 1 || !only || only.after !== cell.after || only.before !== cell.before) break;
        cell.chain.push(only.key);
        cell.nodes = only.nodes;
        cell.at = only.at;
        children = this.group(cell, only.key);
      }
      cell.children = children;
      return children;
    }
    cell.children = made;
    return made;
  }

  private group(cell: Cell, key = cell.key): Cell[] {
    const children: Cell[] = [];
    const upwards = this.direction === "bottom-up" || this.direction === "callers";
    if (!cell.parent && this.direction === "bottom-up") this.sources(cell, children);
    else if (!cell.parent && this.direction !== "top-down") this.pivots(cell, children);
    else if (upwards) this.callers(cell, key, children);
    else this.callees(cell, key, children);
    let after = cell.after;
    let before = cell.before;
    for (const child of children) {
      this.slot[child.key] = -1;
      after -= child.after;
      before -= child.before;
    }
    cell.selfAfter = after;
    cell.selfBefore = before;
    const seen = children.filter((child) => child.weight > 0);
    seen.sort((a, b) => b.weight - a.weight || a.key - b.key);
    return seen;
  }

  private child(parent: Cell, key: number, children: Cell[]): Cell {
    const slot = this.slot[key]!;
    if (slot >= 0) return children[slot]!;
    const child = newCell(key, parent);
    this.slot[key] = children.length;
    children.push(child);
    return child;
  }

  /** Adds the total values of a node. */
  private addTotals(cell: Cell, node: number): void {
    const { after, before, weight } = this.shown;
    cell.after += after.total[node]!;
    if (before) cell.before += before.total[node]!;
    cell.weight += weight[node]!;
  }

  private keyOf(node: number): number {
    return this.keys.ofFrame[this.profile.nodes.frame[node]!]!;
  }

  /** Top-down: adds the called frames, skipping hidden ones. */
  private callees(cell: Cell, key: number, children: Cell[]): void {
    const { end } = this.profile.nodes;
    const { hidden } = this.selection;
    const { after, before, weight } = this.shown;
    for (const node of cell.nodes) {
      // The nodes of the subtree are adjacent: after a hidden node come its children; after a child
      // comes the node behind its subtree.
      let next = node + 1;
      const last = end[node]!;
      while (next < last) {
        if (weight[next] === 0 && after.total[next] === 0 && (!before || before.total[next] === 0)) {
          next = end[next]!;
          continue;
        }
        const childKey = this.keyOf(next);
        if (hidden[next] || (this.options.foldRecursion && childKey === key)) {
          next += 1;
          continue;
        }
        const child = this.child(cell, childKey, children);
        child.nodes.push(next);
        this.addTotals(child, next);
        next = end[next]!;
      }
    }
  }

  /** Bottom-up, first level: adds callsites with values, by their nearest shown frame. */
  private sources(root: Cell, children: Cell[]): void {
    const { shown } = this.selection;
    const { after, before, self } = this.shown;
    for (let node = 1; node < self.length; node++) {
      const now = after.self[node]!;
      const then = before ? before.self[node]! : 0;
      if (now === 0 && then === 0) continue;
      const at = shown[node]!;
      if (at === 0) continue;
      const child = this.child(root, this.keyOf(at), children);
      child.nodes.push(node);
      (child.at ??= []).push(at);
      child.after += now;
      child.before += then;
      child.weight += self[node]!;
    }
  }

  private pivots(root: Cell, children: Cell[]): void {
    for (const node of this.selection.pivots ?? []) {
      const child = this.child(root, this.keyOf(node), children);
      child.nodes.push(node);
      if (this.direction === "callers") (child.at ??= []).push(node);
      this.addTotals(child, node);
    }
  }

  /** Bottom-up, further levels: adds the callers. */
  private callers(cell: Cell, key: number, children: Cell[]): void {
    const { parent } = this.profile.nodes;
    const { shown } = this.selection;
    const { after, before, self } = this.shown;
    const whole = this.direction === "callers";
    for (let i = 0; i < cell.nodes.length; i++) {
      const source = cell.nodes[i]!;
      let at = shown[parent[cell.at![i]!]!]!;
      if (this.options.foldRecursion) while (at > 0 && this.keyOf(at) === key) at = shown[parent[at]!]!;
      if (at === 0) continue;
      const child = this.child(cell, this.keyOf(at), children);
      child.nodes.push(source);
      (child.at ??= []).push(at);
      if (whole) {
        this.addTotals(child, source);
      } else {
        child.after += after.self[source]!;
        if (before) child.before += before.self[source]!;
        child.weight += self[source]!;
      }
    }
  }
}

function newCell(key: number, parent: Cell | null): Cell {
  return {
    key,
    parent,
    depth: parent ? parent.depth + 1 : 0,
    after: 0,
    before: 0,
    weight: 0,
    selfAfter: 0,
    selfBefore: 0,
    children: null,
    chain: [],
    nodes: [],
    at: null,
  };
}

/** Returns the cells from the root's child to this one. */
export function pathOf(cell: Cell): Cell[] {
  const path: Cell[] = [];
  for (let at: Cell | null = cell; at && at.parent; at = at.parent) path.push(at);
  return path.reverse();
}
