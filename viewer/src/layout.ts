// Layout of the boxes of a flame graph in rows, for a width in pixels. Cells narrower than a pixel are
// merged into one gray box after their siblings, and their children are not visited.

import type { Cell, Tree } from "./grow";

export interface Box {
  cell: Cell;
  tree: Tree;
  x: number;
  width: number;
  /** Number of merged siblings, including this cell; 0 for the box of a single cell. */
  merged: number;
  mergedWeight: number;
  /** Whether it is a caller of the zoomed cell; its width is then meaningless. */
  onPath: boolean;
}

export interface Layout {
  /** From the top of the icicles down. */
  rows: Box[][];
  /** Row of the zoomed cell; the rows above are its callers. */
  focus: number;
  boxes: number;
}

/** Minimum width of a box in CSS pixels. */
const MIN_BOX_WIDTH = 1;

function placeChildren(tree: Tree, start: Box[], rows: Box[][], row: number): number {
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
        if (width < MIN_BOX_WIDTH) {
          let weight = 0;
          for (let rest = i; rest < children.length; rest++) weight += children[rest]!.weight;
          const merged = children.length - i;
          if (weight * scale >= MIN_BOX_WIDTH) {
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

function fullBox(cell: Cell, tree: Tree, width: number, onPath: boolean): Box {
  return { cell, tree, x: 0, width, merged: 0, mergedWeight: 0, onPath };
}

/** Lays out `zoom` and its descendants, with its callers as full rows above. */
export function layout(tree: Tree, zoom: Cell, width: number): Layout {
  const rows: Box[][] = [];
  const above: Cell[] = [];
  for (let at = zoom.parent; at; at = at.parent) above.push(at);
  for (const cell of above.reverse()) rows.push([fullBox(cell, tree, width, true)]);
  const focus = rows.length;
  const boxes = placeChildren(tree, [fullBox(zoom, tree, width, false)], rows, focus);
  return { rows, focus, boxes: boxes + focus };
}

/** Lays out a sandwich: callers above, the pivot, callees below. */
export function layoutSandwich(callees: Tree, callers: Tree, width: number): Layout {
  const up: Box[][] = [];
  const down: Box[][] = [];
  let boxes = placeChildren(callers, [fullBox(callers.root, callers, width, false)], up, 0);
  boxes += placeChildren(callees, [fullBox(callees.root, callees, width, false)], down, 0);
  // Both start with a root and the pivots. The pivots are kept once, the roots are dropped.
  const above = up.slice(2).reverse();
  return { rows: [...above, ...down.slice(1)], focus: above.length, boxes };
}
