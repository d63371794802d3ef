// Where boxes stand: rows of a flame graph for a width in pixels. Only what is at least a pixel
// wide is visited; what is narrower stands in one grey box at the end of its siblings.

import type { Cell, Tree } from "./grow";

export interface Box {
  cell: Cell;
  tree: Tree;
  x: number;
  width: number;
  /** How many siblings, this one among them, are too narrow to be told apart; 0 of a cell. */
  merged: number;
  mergedWeight: number;
  /** The zoom leads through it: its width says nothing. */
  onPath: boolean;
}

export interface Layout {
  /** From the top of an icicle down. */
  rows: Box[][];
  /** Row of the zoomed cell: what stands above it are its callers. */
  focus: number;
  boxes: number;
}

/** Narrowest box that is told apart, in CSS pixels. */
const NARROWEST = 1;

function spread(tree: Tree, start: Box[], rows: Box[][], row: number): number {
  let boxes = 0;
  let level = start;
  for (let depth = row; level.length > 0; depth++) {
    rows[depth] = level;
    boxes += level.length;
    const next: Box[] = [];
    for (const box of level) {
      if (box.merged > 0) continue;
      const { cell } = box;
      const scale = cell.weight > 0 ? box.width / cell.weight : 0;
      let x = box.x;
      const children = tree.children(cell);
      for (let i = 0; i < children.length; i++) {
        const child = children[i]!;
        const width = child.weight * scale;
        if (width < NARROWEST) {
          let weight = 0;
          for (let rest = i; rest < children.length; rest++) weight += children[rest]!.weight;
          const merged = children.length - i;
          if (weight * scale >= NARROWEST) {
            next.push({ cell: child, tree, x, width: weight * scale, merged, mergedWeight: weight, onPath: false });
          }
          break;
        }
        next.push({ cell: child, tree, x, width, merged: 0, mergedWeight: 0, onPath: false });
        x += width;
      }
    }
    level = next;
  }
  return boxes;
}

function whole(cell: Cell, tree: Tree, width: number, onPath: boolean): Box {
  return { cell, tree, x: 0, width, merged: 0, mergedWeight: 0, onPath };
}

/** Lays out what is below `zoom`, its callers as full rows above. */
export function layout(tree: Tree, zoom: Cell, width: number): Layout {
  const rows: Box[][] = [];
  const above: Cell[] = [];
  for (let at = zoom.parent; at; at = at.parent) above.push(at);
  for (const cell of above.reverse()) rows.push([whole(cell, tree, width, true)]);
  const focus = rows.length;
  const boxes = spread(tree, [whole(zoom, tree, width, false)], rows, focus);
  return { rows, focus, boxes: boxes + focus };
}

/** Lays out a sandwich: callers above, the pivot, what it calls below. */
export function layoutSandwich(callees: Tree, callers: Tree, width: number): Layout {
  const up: Box[][] = [];
  const down: Box[][] = [];
  let boxes = spread(callers, [whole(callers.root, callers, width, false)], up, 0);
  boxes += spread(callees, [whole(callees.root, callees, width, false)], down, 0);
  // Both begin with a root and the pivots: the pivots stand once, the roots don't.
  const above = up.slice(2).reverse();
  return { rows: [...above, ...down.slice(1)], focus: above.length, boxes };
}
