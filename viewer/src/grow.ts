// Trees of boxes, grown where somebody looks: a cell knows which callsites it stands for, and
// makes its children when asked. A million callsites cost nothing until they are a pixel wide.
//
// Top-down, a cell is a set of callsites with one key and one shown parent. Bottom-up, a cell is
// a set of (source, position): values of the source, at the caller it has been followed up to.

import type { Keys } from "./keys";
import type { Profile } from "./profile";
import type { Selection } from "./select";
import type { Column, Shown } from "./values";

export interface Cell {
  /** -1 of the root. */
  readonly key: number;
  readonly parent: Cell | null;
  readonly depth: number;
  /** Of the shown dump; of the one it is compared to. */
  after: number;
  before: number;
  /** What its width is made of. */
  weight: number;
  /** Values that no child has; known once grown. */
  selfAfter: number;
  selfBefore: number;
  /** Heaviest first; null until asked for. */
  children: Cell[] | null;
  /** Keys of an unbranched chain below that is shown in this box. */
  chain: number[];
  /** Callsites, or sources. */
  nodes: number[];
  /** Bottom-up: where each source has been followed up to. */
  at: number[] | null;
}

export interface GrowOptions {
  /** A function that calls itself is one box. */
  foldRecursion: boolean;
  /** Boxes with nothing but one child share its box. */
  foldChains: boolean;
}

export type Direction = "top-down" | "bottom-up" | "callers" | "callees";

export class Tree {
  readonly root: Cell;
  /** Per key the child that is being filled; -1 where none. */
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
      for (const node of pivots ?? []) this.count(this.root, node);
    } else {
      this.root.after = shown.after.sum;
      this.root.before = shown.before?.sum ?? 0;
      this.root.weight = shown.weight[0]!;
      this.root.nodes = [0];
    }
  }

  /** The children of a cell, grown if need be. */
  children(cell: Cell): Cell[] {
    return cell.children ?? this.grow(cell);
  }

  /** A column summed over what a cell stands for. */
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

  /** A callsite a cell stands for, for what its frame knows. */
  frameAt(cell: Cell): number {
    const node = cell.at ? cell.at[0] : cell.nodes[0];
    return node === undefined ? -1 : this.profile.nodes.frame[node]!;
  }

  /** Finds a cell by the hashes of the keys on the way from the root. */
  find(path: number[]): Cell | null {
    let cell = this.root;
    for (const hash of path) {
      const next = this.children(cell).find((child) => this.keys.hash(child.key) === hash);
      if (!next) return null;
      cell = next;
    }
    return cell;
  }

  private grow(cell: Cell): Cell[] {
    const made = this.spread(cell);
    if (this.options.foldChains && cell.parent) {
      let children = made;
      for (;;) {
        const only = children[0];
        if (children.length !== 1 || !only || only.after !== cell.after || only.before !== cell.before) break;
        cell.chain.push(only.key);
        cell.nodes = only.nodes;
        cell.at = only.at;
        children = this.spread(cell, only.key);
      }
      cell.children = children;
      return children;
    }
    cell.children = made;
    return made;
  }

  private spread(cell: Cell, key = cell.key): Cell[] {
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

  /** Adds what a node and all below it hold. */
  private count(cell: Cell, node: number): void {
    const { after, before, weight } = this.shown;
    cell.after += after.total[node]!;
    if (before) cell.before += before.total[node]!;
    cell.weight += weight[node]!;
  }

  private keyOf(node: number): number {
    return this.keys.ofFrame[this.profile.nodes.frame[node]!]!;
  }

  /** Top-down: called frames, looking through those that are hidden. */
  private callees(cell: Cell, key: number, children: Cell[]): void {
    const { end } = this.profile.nodes;
    const { hidden } = this.selection;
    const { after, before, weight } = this.shown;
    for (const node of cell.nodes) {
      // The nodes of the subtree stand in a row: one that is looked through is followed by its
      // own children, one that is taken is skipped with all below it.
      let next = node + 1;
      const last = end[node]!;
      while (next < last) {
        if (weight[next] === 0 && after.total[next] === 0 && (!before || before.total[next] === 0)) {
          next = end[next]!;
          continue;
        }
        const its = this.keyOf(next);
        if (hidden[next] || (this.options.foldRecursion && its === key)) {
          next += 1;
          continue;
        }
        const child = this.child(cell, its, children);
        child.nodes.push(next);
        this.count(child, next);
        next = end[next]!;
      }
    }
  }

  /** Bottom-up, first level: where values are, by their nearest shown frame. */
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
      this.count(child, node);
    }
  }

  /** Bottom-up, further levels: who called. */
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
        this.count(child, source);
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

/** The cells from the root's child to this one. */
export function pathOf(cell: Cell): Cell[] {
  const path: Cell[] = [];
  for (let at: Cell | null = cell; at && at.parent; at = at.parent) path.push(at);
  return path.reverse();
}
