// The dominator tree as nested rectangles: an area is a retained size. Each rectangle is a link, so the
// keyboard and screen readers find it as well.

import { h } from "../dom";
import { sanitize } from "../names";
import { bytes } from "../units";
import { answers, type Cell } from "./api";
import { oneTabStop } from "./boxes";
import { encode } from "./place";

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Smallest side of a rectangle in px. */
const MIN_SIDE = 4;
/** Smallest sides of a rectangle with a label. */
const LABEL = { width: 60, height: 16 };
/** Border around the contents of a rectangle, and its title. */
const EDGE = 2;
const TITLE = 15;

/** Returns the rectangles of a treemap of that size. */
export function treemap(cells: Cell[], width: number, height: number): HTMLElement {
  const root = h("div", { class: "treemap", role: "group", "aria-label": "Treemap of retained sizes: arrow keys move, Enter opens" });
  const boxes: HTMLElement[] = [];
  root.style.height = `${height}px`;
  const below = new Map<number, number[]>();
  cells.forEach((cell, at) => {
    if (cell.above === null) return;
    const siblings = below.get(cell.above);
    if (siblings) siblings.push(at);
    else below.set(cell.above, [at]);
  });
  const draw = (at: number, box: Box, depth: number): void => {
    const children = below.get(at) ?? [];
    const items = children.map((child) => ({ child, bytes: cells[child]!.bytes }));
    const cell = cells[at]!;
    // The object itself and what has no cell take up their part of the area.
    const own = cell.own_bytes + cell.rest_bytes;
    const all = [...items, { child: -1, bytes: own }].filter((item) => item.bytes > 0);
    for (const { child, box: part } of divided(all, box)) {
      if (child < 0 || part.width < MIN_SIDE || part.height < MIN_SIDE) continue;
      const of = cells[child]!;
      const label = `${sanitize(of.name ?? "")} ${bytes(of.bytes)}`;
      const href = addressOf(of.id!, of.rest > 0 || below.has(child));
      const element = h("a", { class: `cell depth-${depth % 4}`, href, role: href === null ? "img" : null, title: label, "aria-label": label });
      Object.assign(element.style, { left: `${part.x}px`, top: `${part.y}px`, width: `${part.width}px`, height: `${part.height}px` });
      const hasLabel = part.width >= LABEL.width && part.height >= LABEL.height;
      if (hasLabel) element.append(h("span", null, label));
      root.append(element);
      boxes.push(element);
      const title = hasLabel ? TITLE : EDGE;
      const inner = { x: part.x + EDGE, y: part.y + title, width: part.width - 2 * EDGE, height: part.height - title - EDGE };
      if (inner.width >= MIN_SIDE && inner.height >= MIN_SIDE) draw(child, inner, depth + 1);
    }
  };
  if (cells.length > 0) draw(0, { x: 0, y: 0, width, height }, 0);
  oneTabStop(root, boxes);
  return root;
}

/** Returns the address of what an object dominates, or of the object; null if the page has neither. */
function addressOf(id: string, isDominator: boolean): string | null {
  if (isDominator && answers("objects", { dominated: id })) return encode({ view: "dominators", id });
  return answers("object", { id }) ? encode({ view: "object", id }) : null;
}

/** Divides a rectangle by bytes, in rows whose parts are about square, largest first. */
export function divided<Item extends { bytes: number }>(items: Item[], box: Box): (Item & { box: Box })[] {
  const sorted = [...items].sort((a, b) => b.bytes - a.bytes);
  const whole = sorted.reduce((sum, item) => sum + item.bytes, 0);
  const parts: (Item & { box: Box })[] = [];
  if (whole <= 0 || box.width <= 0 || box.height <= 0) return parts;
  const scale = (box.width * box.height) / whole;
  let { x, y, width, height } = box;
  let from = 0;
  while (from < sorted.length) {
    const side = Math.min(width, height);
    let to = from;
    let sum = 0;
    let worst = Infinity;
    while (to < sorted.length) {
      const next = sum + sorted[to]!.bytes * scale;
      const largest = sorted[from]!.bytes * scale;
      const smallest = sorted[to]!.bytes * scale;
      const ratio = Math.max((side * side * largest) / (next * next), (next * next) / (side * side * smallest));
      if (ratio > worst) break;
      [worst, sum, to] = [ratio, next, to + 1];
    }
    const thick = side > 0 ? sum / side : 0;
    let along = 0;
    for (const item of sorted.slice(from, to)) {
      const long = thick > 0 ? (item.bytes * scale) / thick : 0;
      parts.push({
        ...item,
        box: width >= height ? { x, y: y + along, width: thick, height: long } : { x: x + along, y, width: long, height: thick },
      });
      along += long;
    }
    if (width >= height) [x, width] = [x + thick, width - thick];
    else [y, height] = [y + thick, height - thick];
    from = to;
  }
  return parts;
}
